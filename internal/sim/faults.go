package sim

import (
	"time"

	"github.com/sf2loki/sf2loki-ha/coordinator"
)

// schedule plans everything that happens to replicas, bucket and network.
func (w *world) schedule() {
	for _, r := range w.replicas {
		w.at(w.rng.Int64N(int64(5*time.Second)), r.boot)
	}
	if w.oneIn(3) {
		for range 1 + w.rng.IntN(3) {
			w.at(w.rng.Int64N(w.end), w.interfere)
		}
	}
	if w.people {
		for range w.rng.IntN(6) {
			w.at(w.rng.Int64N(w.end), w.petition)
		}
	}
	if w.oneIn(5) {
		w.at(w.rng.Int64N(w.end), w.breakDown)
	}
	if w.fenced && w.oneIn(8) {
		for range 1 + w.rng.IntN(2) {
			w.at(w.rng.Int64N(w.end), w.tamper)
		}
	}
	if w.oneIn(5) {
		for range 1 + w.rng.IntN(2) {
			r := w.replicas[w.rng.IntN(len(w.replicas))]
			w.at(w.rng.Int64N(w.end), func() { w.strikeFleet(r) })
		}
	}
	for range w.rng.IntN(9) {
		r := w.replicas[w.rng.IntN(len(w.replicas))]
		w.at(w.rng.Int64N(w.end), func() { w.strike(r) })
	}
}

// interfere is the operator, at a moment when the leader may not notice: now, or
// just after the next acquisition, before the document is sealed.
func (w *world) interfere() {
	if w.oneIn(3) {
		w.ambush = true
		return
	}
	w.meddle()
	if l := w.leader(); l != nil && w.oneIn(2) {
		l.cut(w.upTo(20 * time.Second))
	}
}

// strike is one fault of one replica.
func (w *world) strike(r *replica) {
	p, length := r.p, w.upTo(12*time.Second)
	if p == nil {
		return
	}
	switch w.rng.IntN(10) {
	case 0, 1:
		r.freeze("supervisor", length)
	case 2:
		r.freeze("everything", length)
	case 3:
		what := "guard"
		if w.oneIn(2) {
			what = "supervisor and guard"
		}
		r.freeze(what, length)
	case 4:
		r.cut(length)
	case 5:
		r.kill(w.oneIn(2))
		w.after(length, r.boot)
	case 6:
		if p.work != nil && p.work.guard != nil && !p.work.guard.over {
			p.work.guard.murdered()
		}
	case 7:
		w.note(r.name, "asked to step down")
		p.feed(coordinator.Stop("asked", false))
		if w.oneIn(2) { // and then the platform stops it
			w.after(length/8, func() {
				if r.p == p && !w.calm {
					p.stop()
				}
			})
		}
	case 8:
		if w.skewed {
			r.wall += int64(w.upTo(2*time.Hour)) - int64(time.Hour)
			w.note(r.name, "wall clock steps")
		}
	default:
		p.stop()
	}
}

// cut is a partition of one replica from the bucket.
func (r *replica) cut(length time.Duration) {
	r.oneWay = r.w.oneIn(3)
	r.w.note(r.name, "cut off for %v, only answers: %v", length, r.oneWay)
	r.cutUntil = min(r.w.end, r.w.now+int64(length))
}
