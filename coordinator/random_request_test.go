package coordinator

import (
	"fmt"
	"time"

	"github.com/sf2loki/sf2loki-ha/cas"
)

// requestObject is the request object of the simulated store.
type requestObject struct {
	n       int // versions so far; 0: it never existed
	exists  bool
	request Request
	written int64 // real time
	problem error
}

func (o *requestObject) version() cas.Version { return cas.Version(fmt.Sprint("q", o.n)) }

func (o *requestObject) read(now int64) RequestState {
	if !o.exists {
		return RequestState{}
	}
	return RequestState{Request: o.request, Version: o.version(), Age: time.Duration(now - o.written), Problem: o.problem}
}

func (o *requestObject) write(now int64, r Request, old cas.Version) error {
	if o.exists != (old != "") || o.exists && old != o.version() {
		return cas.Conflict
	}
	o.n++
	o.exists, o.request, o.written, o.problem = true, r, now, nil
	return nil
}

// holdLeft is how long the hold in the object still lasts.
func (o *requestObject) holdLeft(now int64) time.Duration {
	if !o.exists || o.request.Hold == nil {
		return 0
	}
	return max(0, o.request.Hold.For-time.Duration(now-o.written))
}

// settle takes out what would end a term later, so that a leader can be expected
// to stay. A hold runs out.
func (o *requestObject) settle(now int64) {
	if s := o.read(now); o.exists {
		_ = o.write(now, s.Request.Aged(s.Age).WithStepDown(nil).WithHandover(nil), s.Version)
	}
}

// petition is somebody who writes the request object.
func (s *sim) petition() {
	o, rng := &s.store.requests, s.rng
	state := o.read(s.now)
	r, id := state.Request.Aged(state.Age), fmt.Sprint("asked", o.n)
	target := Target{Epoch: s.store.now.rec.Epoch, Term: s.store.now.rec.Term}
	what := ""
	switch rng.IntN(7) {
	case 0, 1:
		length := time.Duration(rng.Int64N(int64(20 * time.Second)))
		what, r = fmt.Sprint("a hold for ", length), r.WithHold(&Hold{ID: id, For: length + time.Millisecond})
	case 2:
		what, r = "the end of the hold", r.WithHold(nil)
	case 3:
		what, r = fmt.Sprintf("a step-down of %+v", target), r.WithStepDown(&StepDown{ID: id, Target: target})
	case 4:
		target = Target{Incarnation: s.store.now.rec.Incarnation}
		if target.Incarnation == "" {
			return
		}
		what, r = fmt.Sprintf("a step-down of %+v", target), r.WithStepDown(&StepDown{ID: id, Target: target})
	case 5:
		what, r = "a handover to nobody", r.WithHandover(&Handover{ID: id, Incarnation: "gone", Revision: "r9", Target: target})
	default:
		if rng.IntN(2) == 0 {
			o.exists = false
			s.note("operator", "deletes the request object")
			return
		}
		_ = o.write(s.now, Request{}, state.Version)
		o.problem = errJunk
		s.note("operator", "writes junk into the request object")
		return
	}
	s.note("operator", "asks for %s", what)
	_ = o.write(s.now, r, state.Version)
}
