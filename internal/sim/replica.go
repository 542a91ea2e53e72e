package sim

import (
	"fmt"
	"time"

	"github.com/sf2loki/sf2loki-ha/coordinator"
)

// replica is the place of a process: a machine with a clock, that starts a new
// process when one has ended.
type replica struct {
	w      *world
	g      *group
	name   string
	cfg    coordinator.Config
	rate   float64 // of its clock
	offset int64
	wall   int64 // what its wall clock is ahead
	boots  int
	p      *process // nil: none runs

	retired bool   // another one has taken its place: it starts no more
	next    func() // once its process has ended, if not nil
	trap    string // its next "renewal" or "seal" meets a freeze

	cutUntil int64 // its requests do not get through until then
	oneWay   bool  // only the answers do not
}

// local is the boot-time clock of the machine.
func (r *replica) local(real int64) coordinator.Instant {
	return coordinator.Instant(r.offset + int64(float64(real)*r.rate))
}

// real is when the boot-time clock has that value.
func (r *replica) real(at coordinator.Instant) int64 {
	return int64(float64(int64(at)-r.offset)/r.rate) + 1
}

// Now implements coordinator.Clock.
func (r *replica) Now() coordinator.Instant { return r.local(r.w.now) }

func (r *replica) wallTime() time.Time { return time.Unix(0, r.w.now+r.wall) }

// after lets something happen after a span of this machine's clock, not earlier
// by any rounding.
func (r *replica) after(d time.Duration, do func()) {
	r.w.after(time.Duration(float64(d)/r.rate)+2, do)
}

// boot starts a process unless one runs.
func (r *replica) boot() {
	if r.p != nil || r.retired {
		return
	}
	r.boots++
	if r.w.rolling && r.w.oneIn(2) {
		r.cfg.Revision = fmt.Sprint("r", r.w.rng.IntN(3))
	}
	name := fmt.Sprintf("%s%d", r.name, r.boots)
	r.w.note(r.name, "process %s starts: ttl %v, clock rate %.4f", name, r.cfg.TTL, r.rate)
	r.p = newProcess(r, name)
	r.p.feed(coordinator.Tick())
}

// kill is a SIGKILL of the supervisor, or of everything.
func (r *replica) kill(all bool) {
	p := r.p
	if p == nil {
		return
	}
	r.w.note(r.name, "supervisor is killed (everything: %v)", all)
	p.dead = true
	r.p = nil
	p.end()
	if r.next != nil {
		r.w.after(0, r.next)
	}
	if p.work != nil && p.work.guard != nil {
		// Outside the claim: its guard stands still, and nobody else is left.
		if r.w.now < p.work.guard.frozenUntil {
			p.work.guard.outside = p.work.guard.frozenUntil
		}
		p.work.guard.orphaned(all)
	}
}

// frozen reports whether something of the replica stands still.
func (r *replica) frozen() bool {
	p := r.p
	return p != nil && (r.w.now < p.frozenUntil || p.work != nil && p.work.guard != nil && r.w.now < p.work.guard.frozenUntil)
}

// freeze stops processes of the replica for a while.
func (r *replica) freeze(what string, length time.Duration) {
	p, until := r.p, min(r.w.end, r.w.now+int64(length))
	if p == nil || r.frozen() {
		return
	}
	r.w.note(r.name, "frozen: %s, for %v", what, length)
	g := (*guardian)(nil)
	if p.work != nil {
		g = p.work.guard
	}
	if what != "guard" {
		p.frozenUntil = until
		r.w.at(until, p.thaw)
	}
	if g == nil {
		return
	}
	switch what {
	case "guard":
		g.freeze(until)
	case "everything":
		g.freeze(until)
		g.child.freeze(until)
	case "supervisor and guard":
		// Outside the claim: nobody is left who could kill in time.
		g.freeze(until)
		g.outside = until
	}
}
