package sim

import (
	"runtime/debug"
	"time"
)

// Result is what became of one history.
type Result struct {
	Seed uint64
	// Broken is the first violation, or "".
	Broken string
	// Timeline is what happened, if it was asked for.
	Timeline []string
	// Operations are the requests as their callers saw them, likewise.
	Operations []*Operation
	Tally      Tally
}

// Tally counts what happened, so that a simulator in which nothing happens is
// noticed.
type Tally struct {
	Steps, Requests, Terms, Starts, Acts, Commits, Fenced, Throttled int
}

func (t *Tally) add(o Tally) {
	t.Steps += o.Steps
	t.Requests += o.Requests
	t.Terms += o.Terms
	t.Starts += o.Starts
	t.Acts += o.Acts
	t.Commits += o.Commits
	t.Fenced += o.Fenced
	t.Throttled += o.Throttled
}

// Play plays the history of a seed, and returns at the first violation. With a
// record it also keeps what happened.
func Play(seed uint64, record bool) Result {
	w := newWorld(seed, record)
	w.unlessItPanics()
	w.tally.Steps = w.steps
	return Result{Seed: seed, Broken: w.broken, Timeline: w.lines, Operations: w.ops, Tally: w.tally}
}

// unlessItPanics: a panic in what the product runs is a violation.
func (w *world) unlessItPanics() {
	defer func() {
		if p := recover(); p != nil {
			w.fail("panic: %v\n%s", p, debug.Stack())
		}
	}()
	w.play()
}

func (w *world) play() {
	defer func() {
		for _, r := range w.replicas {
			if r.p != nil {
				if work := r.p.work; work != nil && work.guard != nil {
					work.guard.child.gone()
				}
				r.p.end()
			}
		}
		for _, r := range w.idle {
			r.stop()
		}
	}()
	// 1. Faults.
	w.schedule()
	w.run(w.end)
	w.note("", "the faults stop")
	w.calm, w.trouble, w.replays = true, 0, false
	w.settle()
	w.revive()
	w.repair()
	w.revive()
	// 2. What was slow when they stopped still arrives.
	w.run(w.now + int64(3*time.Second))
	// 3. Recovery.
	w.recover()
}

// revive sees to it that somebody can lead: a replica of the lease to which the
// document belongs.
func (w *world) revive() {
	if w.broken != "" {
		return
	}
	var last *replica
	for _, r := range w.replicas {
		if lease := w.document.fence.Lease; lease != "" && lease != r.cfg.Lease {
			continue
		}
		if r.p != nil && r.p.stopBy == 0 {
			return
		}
		if !r.retired {
			last = r
		}
	}
	last.kill(true)
	last.boot()
}

// leader is a replica whose work acts, or nil.
func (w *world) leader() *replica {
	for _, r := range w.replicas {
		p := r.p
		if p != nil && p.m.State().Phase == "leading" && p.work != nil && p.work.guard != nil && p.work.guard.child.alive && p.work.guard.child.lineage.began > 0 {
			return r
		}
	}
	return nil
}

// recover is I5.
func (w *world) recover() {
	var led *replica
	for tries := 0; led == nil && w.broken == ""; tries++ {
		refusals, handovers, bound := w.refusals, w.handovers, w.bound()
		for end := w.now + int64(bound); led == nil && w.now < end && w.broken == ""; led = w.leader() {
			w.run(w.now + int64(100*time.Millisecond))
		}
		// A seal that was refused taught its replica the floor: one more round.
		// So is a handover to a new revision that was asked for meanwhile.
		w.require(led != nil || (w.refusals > refusals || w.handovers > handovers) && tries < 6, "I5: no leader within %v after the faults stopped", bound)
	}
	if led == nil || led.p.stopBy != 0 || w.people && w.rolling {
		return // a new revision may still ask for its turn
	}
	w.epilogue(led)
}

// bound is how long a leader may be missing: ttl + poll + a few round trips of
// the slowest candidate, plus what is known to be under way.
func (w *world) bound() time.Duration {
	var window, busy, out, poll time.Duration
	for _, r := range w.replicas {
		p := r.p
		if p == nil {
			continue
		}
		is, now, lease, k := p.m.State(), r.Now(), w.bucket.open(r.g.lease).now, p.k
		own := max(r.cfg.TTL, lease.rec.TTL)
		foreign := lease.exists && (lease.corrupt != nil || lease.rec.Incarnation == "")
		if !lease.exists || foreign || lease.rec.Epoch < k.epoch || lease.rec.Epoch < w.document.fence.Epoch {
			own = max(own, k.ttl, w.document.fence.TTL)
		}
		if !lease.exists && w.document.byHand {
			own *= 2 // a fence that nobody knows makes absence count anew
		}
		if foreign {
			own = max(own, time.Minute)
		}
		window, poll = max(window, own), max(poll, r.cfg.PollInterval)
		if is.Phase != "standby" {
			busy = max(busy, max(0, is.Deadline.Sub(now))+r.cfg.Budget().Drain+max(r.cfg.TTL/2, 3*r.cfg.CallTimeout))
		}
		out = max(out, is.OutUntil.Sub(now), pause(lease.rec, p.m.Incarnation()))
		out = max(out, w.holdLeft(r.g)+2*r.cfg.PollInterval)
		if lease.rec.State == "released" {
			out = max(out, 3*r.cfg.PollInterval)
		}
	}
	return (window+poll+busy+out+time.Second)*101/100 + poll
}
