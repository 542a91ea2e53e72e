package sim

import (
	"fmt"
	"time"

	"github.com/sf2loki/sf2loki-ha/coordinator"
)

// write is a write of somebody who is no replica: unconditional.
func (w *world) write(r *register, o object) {
	o.byHand = true
	r.put(w.now, o)
	w.wrote(r)
}

// asked is what the request object of a group says now, with the time that has
// passed taken off.
func (w *world) asked(g *group) coordinator.Request {
	now := w.bucket.open(g.requests()).now
	if !now.exists {
		return coordinator.Request{}
	}
	r, _ := coordinator.ParseRequest(now.data)
	return r.Aged(time.Duration(w.now - now.written))
}

func (w *world) ask(g *group, r coordinator.Request) {
	w.write(w.bucket.open(g.requests()), object{exists: true, data: r.Marshal()})
}

// petition is somebody who writes the request object.
func (w *world) petition() {
	g := w.groups[w.rng.IntN(len(w.groups))]
	o, lease := w.bucket.open(g.requests()), w.bucket.open(g.lease).now.rec
	r, id := w.asked(g), fmt.Sprint("asked", o.n)
	target := coordinator.Target{Epoch: lease.Epoch, Term: lease.Term}
	what := ""
	switch w.rng.IntN(7) {
	case 0, 1:
		length := w.upTo(20 * time.Second).Truncate(time.Millisecond)
		what, r = fmt.Sprint("a hold for ", length), r.WithHold(&coordinator.Hold{ID: id, For: length + time.Millisecond, Reason: "sim", By: "sim"})
	case 2:
		what, r = "the end of the hold", r.WithHold(nil)
	case 3:
		what, r = fmt.Sprintf("a step-down of epoch %d", target.Epoch), r.WithStepDown(&coordinator.StepDown{ID: id, Target: target, Reason: "sim"})
	case 4:
		if lease.Incarnation == "" {
			return
		}
		target = coordinator.Target{Incarnation: lease.Incarnation}
		what, r = "a step-down of process "+lease.Incarnation, r.WithStepDown(&coordinator.StepDown{ID: id, Target: target, Reason: "sim"})
	case 5:
		what, r = "a handover to nobody", r.WithHandover(&coordinator.Handover{ID: id, Incarnation: "gone", Revision: fmt.Sprint("r", w.rng.IntN(10)), Target: target})
	default:
		if w.oneIn(2) {
			w.note("operator", "deletes the request object")
			w.write(o, object{})
			return
		}
		w.note("operator", "writes junk into the request object")
		w.write(o, object{exists: true, data: []byte("junk")})
		return
	}
	w.note("operator", "asks for %s", what)
	w.ask(g, r)
}

// settle takes out what would end a term later, so that a leader can be expected
// to stay. A hold runs out.
func (w *world) settle() {
	for _, g := range w.groups {
		if w.bucket.open(g.requests()).now.exists {
			w.ask(g, w.asked(g).WithStepDown(nil).WithHandover(nil))
		}
	}
}

// holdLeft is how long the hold of a group still lasts.
func (w *world) holdLeft(g *group) time.Duration {
	if h := w.asked(g).Hold; h != nil {
		return h.For
	}
	return 0
}
