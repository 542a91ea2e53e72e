package sim

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/sf2loki/sf2loki-ha/checkpoint"
	"github.com/sf2loki/sf2loki-ha/coordinator"
	"github.com/sf2loki/sf2loki-ha/internal/boottime"
)

// work is what a leader does in one term: seal the document, then keep a child
// running under a guard. It plays the supervisor.
type work struct {
	p     *process
	ctx   context.Context
	term  *coordinator.Term
	began int64

	guard    *guardian // of the run under way, or nil
	last     *child    // of the last run
	session  *checkpoint.Session
	sent     boottime.Instant // the last instant that the guard was sent
	seq      uint64
	unheard  uint64 // the oldest number that is not acknowledged, or 0
	told     bool   // the work has been told to end
	failures int
	pausing  bool // between two runs
	ending   bool // it will not begin again
	gone     bool
}

// sealLimit is the part of ttl within which a seal has to be confirmed (rule 12).
const sealLimit = 2

func (p *process) startWork(ctx context.Context) {
	w := &work{p: p, ctx: ctx, term: coordinator.FromContext(ctx), began: p.r.w.now}
	p.work = w
	p.r.w.tally.Starts++
	w.begin()
}

// cause is why the work was told to end, or nil.
func (w *work) cause() error { return context.Cause(w.ctx) }

// begin seals the document and starts a run. The session of the run before ends
// first: what it left under way is not this run's.
func (w *work) begin() {
	switch {
	case w.ended():
	case w.p.doc == nil:
		w.run()
	case w.session != nil:
		w.settled(math.MaxInt64, func() {
			if w.session != nil {
				_ = w.session.Close(context.Background())
				w.session = nil
			}
			w.begin()
		})
	default:
		w.seal()
	}
}

// settled goes on once no commit of the last run is under way, or at an instant.
func (w *work) settled(until int64, then func()) {
	if w.last == nil || !w.last.busy || w.p.r.w.now >= until {
		then()
		return
	}
	w.p.r.after(10*time.Millisecond, func() { w.p.deliver(func() { w.settled(until, then) }) })
}

func (w *work) seal() {
	w.p.r.spring("seal")
	ctx, cancel := context.WithCancelCause(w.ctx)
	w.p.r.after(w.p.r.cfg.TTL/sealLimit, func() {
		w.p.deliver(func() { // a process that stands still gives nothing up
			cancel(errors.New("not sealed in time"))
			w.p.interrupt()
		})
	})
	t := &task{term: w.term.ID(), seals: true, timeout: 2 * time.Second}
	w.p.spawn(t, func() {
		s, err := w.p.doc.Seal(ctx, w.term)
		cancel(nil)
		if t.dead {
			return
		}
		w.later(func() {
			switch {
			case w.ended():
			case err != nil:
				if f := (*checkpoint.FencedError)(nil); errors.As(err, &f) {
					w.p.r.w.refusals++
					w.p.r.w.require(f.Epoch != w.term.Epoch() || f.Term != w.term.ID(), "a term may not seal its own document again")
				}
				w.over(err)
			default:
				w.session = s
				w.run()
			}
		})
	})
}

// later does something in this process, after what happens now.
func (w *work) later(f func()) { w.p.r.w.after(0, func() { w.p.deliver(f) }) }

// ended reports, and sees to it, that work which was told to end does not begin.
func (w *work) ended() bool {
	if w.ctx.Err() == nil {
		return false
	}
	w.over(nil)
	return true
}

// run starts a guard and hands it the instant: the child comes after that.
func (w *work) run() {
	w.guard = newGuardian(w)
	w.last = w.guard.child
	w.sent, w.seq, w.unheard = 0, 0, 0
	w.follow()
}

// follow passes on what a step of the election changed about the term.
func (w *work) follow() {
	if w.guard == nil && w.pausing {
		w.ended()
	}
	if w.guard == nil || w.gone {
		return // a seal that is under way ends with its context
	}
	if at := w.term.KillAt(); at != w.sent {
		w.hand(at)
	}
	if w.ctx.Err() == nil || w.told {
		return
	}
	w.told = true
	if errors.Is(w.cause(), coordinator.ErrLost) {
		w.guard.order(func(g *guardian) { g.kill() })
		w.suspect(w.guard, 50*time.Millisecond, func() bool { return true }, "it does not kill")
		return
	}
	w.guard.order(func(g *guardian) { g.child.drain() })
	if !errors.Is(w.cause(), coordinator.ErrStopping) {
		g := w.guard
		w.p.r.after(w.p.r.cfg.StopGrace, func() {
			w.p.deliver(func() { g.order(func(g *guardian) { g.kill() }) })
		})
	}
}

// hand gives the guard an instant. Without an acknowledgement in time the
// supervisor kills the tree itself.
func (w *work) hand(at boottime.Instant) {
	w.seq++
	w.sent = at
	seq, patience := w.seq, w.p.r.cfg.KillMargin/2
	if w.seq == 1 {
		patience = max(patience, min(5*time.Second, at.Sub(w.p.r.Now())))
	}
	if w.unheard == 0 {
		w.unheard = seq
	}
	g := w.guard
	g.deadline(seq, at)
	// A guard that lets its instant pass has failed as well.
	w.suspect(g, max(0, at.Sub(w.p.r.Now()))+w.p.r.cfg.KillMargin/2, func() bool { return w.sent <= w.p.r.Now() }, "it did not fire at its instant")
	w.suspect(g, patience, func() bool { return w.unheard != 0 && w.unheard <= seq }, fmt.Sprintf("no acknowledgement of instant %d", seq))
}

// suspect kills the tree itself unless the guard has answered in time. Time in
// which this process stood still is not the guard's fault.
func (w *work) suspect(g *guardian, patience time.Duration, silent func() bool, why string) {
	asked := w.p.r.w.now
	w.p.r.after(patience, func() {
		w.p.deliver(func() {
			switch {
			case w.guard != g || g.over || g.firing || !silent():
			case w.p.thawed > asked:
				w.suspect(g, patience, silent, why)
			default:
				w.fail(g, why)
			}
		})
	})
}

func (w *work) acknowledged(seq uint64) {
	switch {
	case w.unheard == 0 || seq < w.unheard:
	case seq == w.seq:
		w.unheard = 0
	default:
		w.unheard = seq + 1
	}
}

// fail gives up a guard that cannot be relied on.
func (w *work) fail(g *guardian, why string) {
	w.p.r.w.note(w.p.r.name, "the guard has failed: %s", why)
	g.child.die(func() {
		g.over = true
		w.p.deliver(func() { w.over(errors.New("the guard failed")) })
	})
}

// exited takes that the tree is gone. The child may have ended by itself.
func (w *work) exited(itself bool) {
	if w.gone {
		return
	}
	w.guard = nil
	switch {
	case w.ctx.Err() != nil:
		w.over(nil)
	case !itself:
		w.over(coordinator.ErrExpired)
	default:
		w.failures++
		w.term.Failed()
		if w.failures == 3 {
			w.over(coordinator.ErrCrashLoop)
			return
		}
		w.pausing = true
		w.p.r.after(time.Second<<w.failures, func() { w.p.deliver(w.again) })
	}
}

func (w *work) again() {
	if !w.gone && w.pausing {
		w.pausing = false
		w.begin()
	}
}

// over ends the work of the term, whose tree is gone. Answers to its last commits
// are waited for, for a moment.
func (w *work) over(err error) {
	if w.gone || w.ending {
		return
	}
	w.ending = true
	w.settled(w.p.r.w.now+int64(2*time.Second), func() {
		w.gone = true
		w.p.r.w.note(w.p.r.name, "work of epoch %d is gone (%v)", w.term.Epoch(), err)
		w.later(func() {
			if w.p.work == w {
				w.p.k.worked(w, err)
				w.p.step(w.p.m.WorkEnded(err))
			}
		})
	})
}
