package sim

import (
	"time"

	"github.com/sf2loki/sf2loki-ha/internal/boottime"
	"github.com/sf2loki/sf2loki-ha/internal/guard"
)

// guardian is the guard process of one run. Its decisions are guard.Rule's.
type guardian struct {
	w     *work
	r     *replica
	rule  guard.Rule
	child *child

	dead        bool // killed by somebody
	firing      bool // the supervisor knows, or will, that it kills
	over        bool // the tree is gone
	frozenUntil int64
	queue       []func()
	// outside is until when supervisor and guard stood still while the child ran,
	// which is outside of what is promised.
	outside int64
}

func newGuardian(w *work) *guardian {
	g := &guardian{w: w, r: w.p.r}
	g.child = &child{g: g, term: w.term.ID(), lineage: w.p.r.w.terms[w.term.ID()]}
	return g
}

// deliver lets something reach the guard: now, or once it is no longer frozen.
func (g *guardian) deliver(f func()) {
	switch {
	case g.dead || g.over:
	case g.r.w.now < g.frozenUntil:
		g.queue = append(g.queue, f)
	default:
		// The clock first, whatever it is.
		if g.rule.Look(g.r.Now()) {
			g.fire(false)
			return
		}
		f()
	}
}

// order is a message of the supervisor, through a pipe.
func (g *guardian) order(f func(*guardian)) {
	g.r.w.after(g.r.w.upTo(2*time.Millisecond), func() { g.deliver(func() { f(g) }) })
}

// deadline orders the guard to kill at an instant.
func (g *guardian) deadline(seq uint64, at boottime.Instant) {
	g.order(func(g *guardian) {
		acknowledge, first := g.rule.Deadline(guard.Order{Type: guard.OrderDeadline, Seq: seq, At: at}, g.r.Now())
		if _, fired := g.rule.Fired(); fired {
			g.fire(false)
			return
		}
		g.r.w.at(g.r.real(at), func() { g.deliver(func() {}) })
		if !acknowledge {
			return
		}
		g.tell(func() { g.w.acknowledged(seq) })
		if first {
			g.r.w.after(g.r.w.upTo(20*time.Millisecond), func() { g.deliver(g.child.start) })
		}
	})
}

// tell is a message to the supervisor.
func (g *guardian) tell(f func()) {
	g.r.w.after(g.r.w.upTo(2*time.Millisecond), func() { g.w.p.deliver(f) })
}

func (g *guardian) kill() {
	g.rule.Fire(guard.ReasonKill)
	g.fire(false)
}

// fire ends the tree.
func (g *guardian) fire(itself bool) {
	if g.firing {
		return
	}
	g.firing = true
	g.child.die(func() {
		g.over = true
		g.tell(func() { g.w.exited(itself) })
	})
}

// orphaned: the supervisor is gone, and the guard sees the end of its pipe; or
// all of it was killed at once, as a container is.
func (g *guardian) orphaned(all bool) {
	if all {
		g.dead = true
		g.child.gone()
		return
	}
	g.order(func(g *guardian) {
		g.rule.Fire(guard.ReasonEOF)
		g.fire(false)
	})
}

// murdered: somebody kills the guard. The child dies with it (Pdeathsig); the
// supervisor sweeps what is left.
func (g *guardian) murdered() {
	g.r.w.note(g.r.name, "guard is killed")
	g.dead = true
	g.child.die(func() {
		g.over = true
		g.tell(func() { g.w.fail(g, "it died") })
	})
}

func (g *guardian) freeze(until int64) {
	g.frozenUntil = until
	g.r.w.at(until, func() {
		if g.r.w.now < g.frozenUntil {
			return
		}
		queue := append([]func(){func() {}}, g.queue...)
		g.queue = nil
		for _, f := range queue {
			g.deliver(f)
		}
	})
}
