package coordinator

import (
	"errors"
	"time"

	"github.com/sf2loki/sf2loki-ha/internal/boottime"
)

// Role is what a replica is at the moment it is asked.
type Role string

// The roles.
const (
	RoleStandby Role = "standby"
	RoleLeader  Role = "leader"
	// RoleStopping: a leader whose work has been told to end.
	RoleStopping Role = "stopping"
)

// Status is a snapshot of a replica. Remaining and Role are computed from the
// deadline when Status is called: a leader whose time is over is not a leader,
// also if its election loop has not noticed yet.
type Status struct {
	Role        Role
	Lease       string
	Incarnation string
	// Epoch and Term of the term held; 0 and "" on a standby.
	Epoch int64
	Term  string
	// Remaining is the time to the deadline of the term; 0 on a standby.
	Remaining time.Duration
	// Answered: the store has given a definite answer about the lease, be it
	// that there is none.
	Answered bool
	// Observed is the lease as last read, if Known.
	Known    bool
	Observed Record
	// Unchanged is how long the observed state has been standing.
	Unchanged time.Duration
	// Hold is how long a hold that was read last still lasts; 0 without one. A
	// standby of a lease that is held does not look for it.
	Hold time.Duration

	since, holdUntil Instant
}

// Status implements Coordinator.
func (e *Elector) Status() Status {
	e.mu.Lock()
	s, t := e.status, e.held
	e.mu.Unlock()
	now := e.clock.Now()
	if s.Known {
		s.Unchanged = now.Sub(s.since)
	}
	s.Hold = max(0, s.holdUntil.Sub(now))
	return s.withTerm(t, now)
}

// withTerm fills in what depends on the term and the time.
func (s Status) withTerm(t *Term, now Instant) Status {
	s.Role = RoleStandby
	if t == nil {
		return s
	}
	deadline := t.Deadline()
	if now >= deadline {
		return s
	}
	s.Role, s.Epoch, s.Term = RoleLeader, t.epoch, t.id
	s.Remaining = deadline.Sub(now)
	if t.draining() {
		s.Role = RoleStopping
	}
	if err := t.CheckFence(); err != nil {
		if errors.Is(err, ErrLost) {
			// Another replica leads: this one must not count as a second leader.
			s.Role, s.Epoch, s.Term, s.Remaining = RoleStandby, 0, "", 0
			return s
		}
		s.Role = RoleStopping
	}
	return s
}

// publish copies what Status needs out of the loop.
func (e *Elector) publish() {
	m := e.machine
	e.mu.Lock()
	defer e.mu.Unlock()
	e.held = nil
	if m.phase == standby {
		// A lease that is given back without having been worked under must not
		// be shown as the term before it.
		e.tenure = nil
	}
	if m.phase == leading || m.phase == draining || m.phase == releasing {
		e.held = e.tenure.held()
	}
	e.status.holdUntil = m.held.until
	e.status.Answered = e.status.Answered || m.seen.known
	e.status.Known = m.seen.known && !m.seen.absent
	e.status.Observed = Record{}
	if e.held != nil {
		e.status.Known, e.status.Observed, e.status.since = true, m.mine, m.term.sentAt
	} else if e.status.Known {
		e.status.Observed, e.status.since = m.seen.lease.Record, m.seen.since
	}
}

// Never is the instant of a term without a deadline.
const Never = boottime.Never
