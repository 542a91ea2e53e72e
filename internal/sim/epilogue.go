package sim

import (
	"time"

	"github.com/sf2loki/sf2loki-ha/coordinator"
)

// epilogue is what happens to a pair that has recovered, without any other fault:
// here the published bounds hold without an allowance.
func (w *world) epilogue(led *replica) {
	if led.p.stopBy != 0 || led.p.replayed || w.holdLeft(led.g) > 0 {
		return
	}
	w.rest(led)
	if w.broken != "" || led.p == nil || led.p.m.State().Phase != "leading" {
		return
	}
	switch w.rng.IntN(6) {
	case 0:
		w.askAtRest(led)
	case 1:
		w.stopAtRest(led)
	case 2:
		w.breakAtRest(led)
	case 3:
		w.crashAtRest(led)
	case 4:
		w.failAtRest(led)
	}
}

// rest is I7 for two ttl, and the requests that a pair at rest makes.
func (w *world) rest(led *replica) {
	p, term, span := led.p, led.p.m.State().Term, 2*led.cfg.TTL
	before := map[*process]map[string]int{}
	for _, r := range w.replicas {
		if r.p != nil {
			before[r.p] = r.p.k.made()
		}
	}
	watchers := w.watchers(led)
	w.run(w.now + int64(span))
	if p.stopBy != 0 || w.terms[term].touched {
		return
	}
	is := p.m.State()
	w.require(led.p == p && is.Phase == "leading" && is.Term == term, "I7: the leader %s did not stay although nothing is wrong", led.name)
	most := func(r *replica, per float64, ops ...string) {
		n := 0
		if r.p == nil || before[r.p] == nil {
			return // it ends, or came meanwhile
		}
		for _, op := range ops {
			n += r.p.k.ops[op] - before[r.p][op]
		}
		limit := int(float64(span)*1.01*per/float64(time.Hour)) + 3
		w.require(n <= limit, "%s makes %d requests (%v) at rest within %v, want at most %d", r.name, n, ops, span, limit)
	}
	b := led.cfg.Budget()
	most(led, float64(b.LeaderWritesPerHour), "replace")
	most(led, float64(b.LeaderReadsPerHour), "request")
	most(led, 0, "read", "create", "release", "fence", "inquire", "nominate")
	for _, r := range watchers {
		// It reads to the rhythm of the leader's renewals.
		most(r, float64(r.cfg.Budget().StandbyReadsPerHour+b.LeaderWritesPerHour), "read")
		most(r, 0, "replace", "create", "release", "fence", "request", "inquire", "nominate")
	}
}

// watchers are the replicas that could take over from a leader at any time.
func (w *world) watchers(led *replica) []*replica {
	var all []*replica
	for _, r := range w.replicas {
		p := r.p
		if r == led || r.g != led.g || p == nil || p.stopBy != 0 || p.m.State().Phase != "standby" || p.m.State().OutUntil > r.Now() {
			continue
		}
		// One that knows of a higher epoch has to wait (rule 11).
		if rec := w.bucket.open(r.g.lease).now.rec; pause(rec, p.m.Incarnation()) == 0 && rec.Epoch >= p.k.epoch {
			all = append(all, r)
		}
	}
	return all
}

// followed reports whether another term has the lease of a group.
func (w *world) followed(g *group, term string) bool {
	rec := w.bucket.open(g.lease).now.rec
	return rec.Term != term && rec.State == coordinator.Held
}

// until lets time pass until something is so, at most for a while.
func (w *world) until(limit time.Duration, so func() bool) bool {
	for end := w.now + int64(limit); !so() && w.now < end && w.broken == ""; {
		w.run(w.now + int64(5*time.Millisecond))
	}
	return so()
}

// askAtRest asks a leader for something: it obeys with its next renewal.
func (w *world) askAtRest(led *replica) {
	watchers := w.watchers(led)
	if !w.people || len(watchers) == 0 {
		return
	}
	p, r, id := led.p, w.asked(led.g), "at rest"
	is, heir := p.m.State(), watchers[w.rng.IntN(len(watchers))]
	target, what := coordinator.Target{Epoch: is.Epoch, Term: is.Term}, ""
	if w.oneIn(2) {
		target = coordinator.Target{Incarnation: p.m.Incarnation()}
	}
	kind := w.rng.IntN(3)
	switch kind {
	case 0:
		what, r = "hold", r.WithHold(&coordinator.Hold{ID: id, For: 10 * time.Second, Reason: "sim"})
	case 1:
		what, r = "step-down", r.WithStepDown(&coordinator.StepDown{ID: id, Target: target, Reason: "sim"})
	default:
		target = coordinator.Target{Epoch: is.Epoch, Term: is.Term}
		what, r = "handover to "+heir.name, r.WithHandover(&coordinator.Handover{ID: id, Incarnation: heir.p.m.Incarnation(), Revision: "never led", Target: target})
	}
	w.note("operator", "asks at rest for a %s", what)
	w.ask(led.g, r)
	limit := led.cfg.RenewInterval + 4*coordinator.RoundTrip
	w.require(w.until(limit, func() bool { return p.m.State().Phase != "leading" }), "a %s is not obeyed within %v", what, limit)
	if kind == 0 || !w.until(led.cfg.Budget().Drain+time.Second, func() bool { return p.work == nil || p.work.gone }) {
		return
	}
	// 2. The lease goes to another replica, and to the one that asked for it.
	term := is.Term
	limit = 0
	for _, r := range watchers {
		limit = max(limit, r.cfg.PollInterval+max(r.cfg.Budget().Handover, led.cfg.Budget().Handover))
		if heir.cfg.PollInterval+4*coordinator.RoundTrip > 2*r.cfg.PollInterval && kind == 2 {
			return // others leave it two of their own polls, which may be shorter
		}
	}
	w.until(limit, func() bool { return w.followed(led.g, term) })
	rec := w.bucket.open(led.g.lease).now.rec
	if kind == 1 {
		w.require(w.followed(led.g, term), "no handover within %v of a step-down", limit)
		w.require(rec.Incarnation != p.m.Incarnation(), "%s takes its own tombstone back, others watch", led.name)
		return
	}
	w.require(rec.Incarnation == heir.p.m.Incarnation() && rec.Term != term, "the lease that was handed over to %s is %s by %s after %v", heir.name, rec.State, rec.Incarnation, limit)
}

// stopAtRest is a planned stop: the work has all of its time to drain, and the
// next leader comes within the bound of a handover.
func (w *world) stopAtRest(led *replica) {
	watchers := w.watchers(led)
	p, work, child := led.p, led.p.work, led.p.work.guard.child
	child.stubborn = w.oneIn(3)
	begin, term := w.now, p.m.State().Term
	w.note("platform", "stops %s at rest, its work ends by itself: %v", led.name, !child.stubborn)
	p.stop()
	drain := time.Duration(float64(led.cfg.Budget().Drain) / led.rate)
	if !w.until(drain+time.Second, func() bool { return !child.alive }) {
		w.fail("work that was told to end is alive after %v", drain+time.Second)
		return
	}
	took := time.Duration(w.now - begin)
	if child.stubborn {
		w.require(took > drain-100*time.Millisecond, "work had %v to drain, want %v", took, drain)
	}
	w.until(3*time.Second, func() bool { return work.gone })
	if len(watchers) == 0 {
		return
	}
	limit := time.Duration(0)
	for _, r := range watchers {
		bound := r.cfg.Budget().Handover
		if r.cfg.MinWriteInterval == 0 && led.cfg.MinWriteInterval > 0 {
			bound = led.cfg.Budget().Handover
		}
		if took < r.cfg.PollInterval+5*coordinator.RoundTrip {
			bound += r.cfg.PollInterval // it may not have read of the stop
		}
		limit = max(limit, bound)
	}
	w.require(w.until(limit, func() bool { return w.followed(led.g, term) }), "no handover within %v of the end of the work", limit)
}

// breakAtRest is an outage of the length that is tolerated.
func (w *world) breakAtRest(led *replica) {
	p, term := led.p, led.p.m.State().Term
	if p.work.guard.child.own != nil {
		return // this work gives up by itself
	}
	w.run(w.now + int64(w.upTo(led.cfg.RenewInterval)))
	length := led.cfg.Budget().Outage
	w.outage = outage{until: w.now + int64(length)}
	if w.oneIn(2) {
		w.outage.class = w.pick("denied", "contended", "no bucket")
	}
	w.note("bucket", "answers nobody for %v, %s", length, w.outage.class)
	w.run(w.now + int64(length+led.cfg.TTL))
	is := p.m.State()
	w.require(led.p == p && is.Phase == "leading" && is.Term == term, "an outage of %v is not tolerated", length)
}

// crashAtRest is an unplanned failover, measured from the last renewal.
func (w *world) crashAtRest(led *replica) {
	watchers := w.watchers(led)
	if len(watchers) == 0 {
		return
	}
	w.run(w.now + int64(w.upTo(led.cfg.RenewInterval)))
	if led.p == nil || led.p.m.State().Phase != "leading" {
		return
	}
	r, term := w.bucket.open(led.g.lease), led.p.m.State().Term
	w.note("platform", "kills %s at rest", led.name)
	led.kill(true)
	limit := time.Duration(0)
	for i, o := range watchers {
		bound := time.Duration(float64(max(led.cfg.TTL, o.cfg.TTL)+o.cfg.PollInterval)/o.rate) + 4*coordinator.RoundTrip
		if i == 0 || bound < limit {
			limit = bound
		}
	}
	written := r.now.written
	w.until(limit+time.Second, func() bool {
		if r.now.rec.Term == term {
			written = r.now.written
		}
		return w.followed(led.g, term)
	})
	took := time.Duration(w.now - written)
	w.require(took <= limit+5*time.Millisecond, "a failover takes %v, want at most %v", took, limit)
}

// failAtRest lets the guard of the only replica die: it leaves its tombstone to
// others for one ttl (rule 12), and not longer.
func (w *world) failAtRest(led *replica) {
	p, work, rec := led.p, led.p.work, w.bucket.open(led.g.lease).now.rec
	if pause(rec, p.m.Incarnation()) > 0 || rec.Epoch < p.k.epoch {
		return // it waits for something else
	}
	for _, r := range w.replicas {
		if r != led {
			r.kill(true)
			r.retired = true
		}
	}
	term := p.m.State().Term
	w.note("platform", "leaves %s alone at rest, without a guard", led.name)
	work.guard.murdered()
	if !w.until(3*time.Second, func() bool { return w.bucket.open(led.g.lease).now.rec.State == coordinator.Released }) {
		w.fail("nothing is released 3s after the guard died")
		return
	}
	// Its own pause and jitter on top, and another look if it was early for both.
	c := led.cfg
	limit := time.Duration(float64(c.TTL+4*c.PollInterval)/led.rate) + 4*coordinator.RoundTrip + c.MinWriteInterval
	w.require(w.until(limit, func() bool { return w.followed(led.g, term) }), "nobody leads %v after a tombstone that nobody else can claim", limit)
}
