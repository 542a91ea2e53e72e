package faultproxy

import (
	"hash/fnv"
	"math/rand/v2"
	"net/http"
	"time"
)

// Random is faults by chance. Each probability is that of one request.
type Random struct {
	Seed uint64
	// LoseRequest and LoseAnswer: half of them with a closed connection, half in
	// silence.
	LoseRequest, LoseAnswer float64
	// LateRequest and LateAnswer: by up to MaxDelay.
	LateRequest, LateAnswer float64
	// HoldBack: by up to MaxDelay.
	HoldBack float64
	// Replay: up to MaxDelay later.
	Replay float64
	// Refuse: with Refusal.
	Refuse float64

	MaxDelay time.Duration
	// Refusal is the status. Default 503.
	Refusal int
	// Only, where it is set, says which requests are hit at all.
	Only func(Request) bool
}

// Fault says what happens to the nth request of its kind at its door, from 0: the
// same for the same seed, in whatever order requests of other kinds arrive.
func (r *Random) Fault(q Request, n int) Fault {
	if r.Only != nil && !r.Only(q) {
		return Fault{}
	}
	h := fnv.New64a()
	for _, part := range []string{q.Replica, string(q.Op), q.Key} {
		_, _ = h.Write([]byte(part + "\x00"))
	}
	rng := rand.New(rand.NewPCG(r.Seed, h.Sum64()+uint64(n)*0x9e3779b97f4a7c15))
	// Every number is drawn, whatever the others are: a probability that is
	// changed leaves the other faults where they were.
	draw := func(p float64) bool { return rng.Float64() < p }
	delay := func() time.Duration { return time.Duration(rng.Float64() * float64(r.MaxDelay)) }
	loss := func() Loss { return []Loss{Reset, Silence}[rng.IntN(2)] }

	var f Fault
	if yes, d := draw(r.LateRequest), delay(); yes {
		f.LateRequest = d
	}
	if yes, d := draw(r.LateAnswer), delay(); yes {
		f.LateAnswer = d
	}
	if yes, d := draw(r.HoldBack), delay(); yes {
		f.HoldBack = d
	}
	if yes, d := draw(r.Replay), delay(); yes {
		f.Replay = max(d, time.Millisecond)
	}
	if yes, l := draw(r.LoseRequest), loss(); yes {
		f.LoseRequest = l
	}
	if yes, l := draw(r.LoseAnswer), loss(); yes {
		f.LoseAnswer = l
	}
	if draw(r.Refuse) {
		if f.Refuse = r.Refusal; f.Refuse == 0 {
			f.Refuse = http.StatusServiceUnavailable
		}
	}
	return f
}
