package faultproxy

import (
	"strconv"
	"strings"
	"time"

	"github.com/sf2loki/sf2loki-ha/internal/boottime"
)

// Loss is how a request or an answer is lost, as its caller sees it.
type Loss int

// The losses.
const (
	Delivered Loss = iota
	// Reset closes the connection.
	Reset
	// Silence says nothing until the caller gives up.
	Silence
)

// Fault is what happens to one request; parts of it can be combined. The zero
// value is none.
type Fault struct {
	// LateRequest and LateAnswer are delays.
	LateRequest, LateAnswer time.Duration
	// HoldBack lets a later request for the same object pass first; it is the
	// longest time to wait for one. A write waits for a write.
	HoldBack time.Duration
	// LoseRequest: the store never sees the request. LoseAnswer: the caller never
	// sees the answer.
	LoseRequest, LoseAnswer Loss
	// CutAnswer ends the answer in the midst of its body.
	CutAnswer bool
	// Refuse answers with that status, in the words of the service, instead of
	// the store.
	Refuse int
	// Replay sends the request to the store once more, that long after the first
	// one was answered or lost on the way back. Nobody is told the second answer.
	Replay time.Duration
}

const heldBack = "held back"

// String names the fault for people; "" is none.
func (f Fault) String() string {
	var parts []string
	add := func(yes bool, text string) {
		if yes {
			parts = append(parts, text)
		}
	}
	add(f.LateRequest > 0, "late request ("+f.LateRequest.Round(time.Millisecond).String()+")")
	add(f.HoldBack > 0, heldBack)
	add(f.LoseRequest == Reset, "lost request, closed")
	add(f.LoseRequest == Silence, "lost request, silent")
	add(f.Refuse != 0, "refused "+strconv.Itoa(f.Refuse))
	add(f.LateAnswer > 0, "late answer ("+f.LateAnswer.Round(time.Millisecond).String()+")")
	add(f.LoseAnswer == Reset, "lost answer, closed")
	add(f.LoseAnswer == Silence, "lost answer, silent")
	add(f.CutAnswer, "cut answer")
	add(f.Replay > 0, "replayed")
	return strings.Join(parts, " + ")
}

// Rule is a fault and whom it hits.
type Rule struct {
	// Replica, Op and Key must be those of the request; "" is any. A Key that ends
	// with * is the beginning of one.
	Replica string
	Op      Op
	Key     string
	// If, where it is set, must agree as well.
	If func(Request) bool

	// Skip is how many such requests pass before the fault, Times how many it
	// hits then; 0 is all. For is how long the rule stands; 0 is to the end.
	Skip, Times int
	For         time.Duration

	Fault Fault
}

// rule is a Rule at work.
type rule struct {
	Rule
	seen  int
	until boottime.Instant
}

// hits counts the request if it matches, and reports whether it gets the fault.
func (r *rule) hits(q Request, now boottime.Instant) bool {
	switch {
	case now >= r.until,
		r.Replica != "" && r.Replica != q.Replica,
		r.Op != "" && r.Op != q.Op,
		!keyMatches(r.Key, q.Key),
		r.If != nil && !r.If(q):
		return false
	}
	r.seen++
	return r.seen > r.Skip && (r.Times == 0 || r.seen <= r.Skip+r.Times)
}

func keyMatches(pattern, key string) bool {
	if prefix, ok := strings.CutSuffix(pattern, "*"); ok {
		return strings.HasPrefix(key, prefix)
	}
	return pattern == "" || pattern == key
}

// decide says what happens to a request. The caller holds the mutex.
func (p *Proxy) decide(q Request) Fault {
	kind := q.Replica + "\x00" + string(q.Op) + "\x00" + q.Key
	n := p.counts[kind]
	p.counts[kind]++
	now, hit := boottime.Now(), (*rule)(nil)
	for _, r := range p.rules { // each counts for itself
		if r.hits(q, now) && hit == nil {
			hit = r
		}
	}
	switch {
	case hit != nil:
		return hit.Fault
	case p.random != nil:
		return p.random.Fault(q, n)
	}
	return Fault{}
}
