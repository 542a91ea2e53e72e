package guard

import "github.com/sf2loki/sf2loki-ha/internal/boottime"

// Rule decides when the tree has to die. It does no I/O and reads no clock, so
// that a table and a simulator can play it; the loop of the guard obeys it. Once
// it has fired it stays so, and accepts no later instant.
//
// The zero value is a guard without an instant: there is nothing to guard yet.
type Rule struct {
	seq    uint64           // number of the instant in force; 0: none yet
	at     boottime.Instant // the instant in force
	fired  bool
	reason Reason
}

// Fired reports whether the tree has to die, and why.
func (r *Rule) Fired() (Reason, bool) { return r.reason, r.fired }

// Fire begins the end, for the first reason that is given.
func (r *Rule) Fire(reason Reason) {
	if !r.fired {
		r.fired, r.reason = true, reason
	}
}

// Until is the instant in force, or Never.
func (r *Rule) Until() boottime.Instant {
	if r.seq == 0 {
		return boottime.Never
	}
	return r.at
}

// Look compares the clock with the instant and reports whether it has fired. It
// is asked before every act that could let work go on.
func (r *Rule) Look(now boottime.Instant) (fired bool) {
	if r.seq > 0 && now >= r.at {
		r.Fire(ReasonDeadline)
	}
	return r.fired
}

// Deadline takes an order that puts an instant in force, later or earlier than
// the one before. It reports whether the order is to be acknowledged, and whether
// it is the first: only then is there anything to guard, and the child may start.
func (r *Rule) Deadline(o Order, now boottime.Instant) (acknowledge, first bool) {
	switch {
	case r.fired:
		return false, false
	case o.Seq <= r.seq:
		// 1. Numbers only rise: an old instant that is repeated is not an order.
		r.Fire(ReasonEOF)
		return false, false
	case r.Look(now):
		// 2. The old instant may have come while this order was being read.
		return false, false
	}
	// 3. In force before it is acknowledged; one that is over is in force as well.
	first = r.seq == 0
	r.seq, r.at = o.Seq, o.At
	return !r.Look(now), first
}
