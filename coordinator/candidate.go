package coordinator

import (
	"fmt"
	"time"

	"github.com/sf2loki/sf2loki-ha/cas"
	"github.com/sf2loki/sf2loki-ha/internal/boottime"
)

const (
	// foreignWindow is how long a lease that is not in our format must stand
	// unchanged: sf2loki's own default ttl is 30 s and its holder may be slow.
	foreignWindow = 60 * time.Second
	// stoppingPoll is how often a standby reads once a planned stop is
	// announced, so that a handover costs a fraction of a poll interval, and
	// while an acquisition of its own is in doubt: a term may be running out.
	stoppingPoll = 200 * time.Millisecond
	// maxStayOut bounds how long a replica whose work failed stays out.
	maxStayOut = 60 * time.Second
)

// see takes note of a definite state of the lease: a version, or absence.
func (m *machine) see(absent bool, l Lease) {
	if !m.seen.known || m.seen.absent != absent || m.seen.lease.Version != l.Version {
		if r := l.Record; m.held.id != "" && !absent && r.State == Held && r.Incarnation != m.incarnation && r.Term != m.seen.lease.Record.Term {
			// Somebody has acquired: the hold that we read is over. It is read again
			// in every attempt; this is for people who look at our status.
			m.held = hold{}
			m.emit(Event{Kind: Resumed})
		}
		// The observer counts from after the receive: a version that was
		// written earlier only makes us wait longer than needed.
		m.seen = sighting{known: true, absent: absent, lease: l, since: m.now}
		m.seen.outranked = !absent && l.Corrupt == nil && l.Record.Epoch < m.epochMax
		m.forget()
		if absent {
			// A seal that we do not know of makes absence count anew: better now than
			// at the end of the window.
			m.rehearseFrom = m.now
		}
		m.emit(Event{Kind: Observed, Lease: l, Absent: absent, Epoch: l.Record.Epoch, Holder: l.Record.Holder, Left: m.window()})
	}
	if !absent && l.Corrupt == nil {
		m.learn(l.Record)
	}
}

// learn keeps what must not be forgotten of a record that was read, also by a
// holder that reads of its own loss: the next term exceeds its epoch.
func (m *machine) learn(r Record) {
	m.ttlMax = max(m.ttlMax, r.TTL)
	m.epochMax = max(m.epochMax, r.Epoch)
	if r.State != Released && r.Epoch >= m.lastHeld.epoch {
		m.lastHeld.epoch, m.lastHeld.incarnation, m.lastHeld.term = r.Epoch, r.Incarnation, r.Term
	}
}

// window is how long the state last seen must stand unchanged before it may be
// claimed. A larger window only delays a takeover; a smaller one would end a
// lease that its holder, by its own ttl, still has.
func (m *machine) window() time.Duration {
	own := m.cfg.TTL
	if m.seen.outranked {
		// The ttl of the record is that of a former term.
		own = max(own, m.ttlMax)
	}
	switch {
	case m.seen.absent:
		return max(own, m.ttlMax)
	case m.seen.lease.Corrupt != nil:
		if m.ttlMax > 0 {
			return max(own, m.ttlMax)
		}
		return max(own, foreignWindow)
	case m.seen.lease.Record.Foreign():
		return max(own, m.seen.lease.Record.TTL, foreignWindow)
	}
	if m.copied() {
		// It says nothing about whoever held this lease before it was copied here.
		own = max(own, m.ttlMax)
	}
	return max(own, m.seen.lease.Record.TTL)
}

// claimAt is the instant at which the lease may be claimed as far as the lease
// alone decides. The checkpoint document is asked in the attempt.
func (m *machine) claimAt() Instant {
	s := m.seen
	if !s.known || m.stop != nil {
		return boottime.Never
	}
	// 1. A record that says its readers must be newer is never claimed.
	if s.lease.Corrupt == nil && s.lease.Record.MinVersion > RecordVersion {
		return boottime.Never
	}
	// 2. Anything must stand unchanged for its window.
	at := s.since.Add(m.window())
	// 3. A tombstone is tried at once, one time; our own only after the others
	// had a chance, else a replica that stepped down would take it back.
	others := m.others()
	if s.tombstone() && m.quickTry != s.lease.Version {
		// A store that limits writes has just taken the tombstone: sooner, it would
		// refuse, and the next attempt come a poll later.
		at = s.since.Add(others + m.cfg.MinWriteInterval)
	}
	// 4. A replica whose work failed stays out, but not much longer than one ttl
	// past a tombstone that nobody claimed: others may have to wait that long.
	out := m.outUntil
	if s.tombstone() {
		out = min(out, s.since.Add(m.cfg.TTL+others))
	}
	// 5. Work that failed here again and again waits for the back-off of the
	// record; a process whose work did not fail yet tries at once.
	if s.known && !s.absent && s.lease.Corrupt == nil {
		out = max(out, s.since.Add(s.lease.Record.Work.pause(m.incarnation)))
	}
	return max(at, out, m.claimNotBefore, m.writeFrom())
}

// others is how long this replica leaves a tombstone to the others first.
func (m *machine) others() time.Duration {
	if !m.seen.tombstone() {
		return 0
	}
	r, wait := m.seen.lease.Record, time.Duration(0)
	// 1. It was handed over to somebody else.
	if r.Successor != "" && r.Successor != m.incarnation {
		wait = 2 * m.cfg.PollInterval
	}
	// 2. It is our own: we gave it away for a reason.
	if r.Incarnation == m.incarnation {
		wait += 2*m.cfg.PollInterval + m.ownPause
	}
	return wait
}

// standbyTime does what a standby has to do by now.
func (m *machine) standbyTime() {
	switch {
	case m.stop != nil && m.doubt == nil && (m.op == nil || m.op.kind != opWrite):
		m.finish()
	case m.op != nil:
	case m.stop != nil:
		// An acquisition without an answer may have landed: read before leaving,
		// so that a lease nobody works under is released.
		if m.now >= m.stop.limit {
			m.finish()
		} else if m.now >= m.nextAt {
			m.sendRead(m.stop.limit)
		}
	case m.doubt != nil && m.now >= m.nextAt:
		// An acquisition in doubt is settled by reading: before another is sent,
		// also by a loop that woke late for both. What was read for that other one is
		// not fresh any more.
		m.forget()
		m.sendRead(boottime.Never)
	case m.now >= m.claimAt():
		m.claim()
	case m.now >= m.nextAt:
		m.forget() // what was read beside the former state belongs to it
		m.sendRead(boottime.Never)
	case m.now >= m.nominateAt():
		m.nominate()
	case m.now >= m.rehearseAt():
		m.rehearse()
	}
}

// admissionPause is how soon a refused admission is asked for again. It costs no
// request.
const admissionPause = 100 * time.Millisecond

// claim makes one attempt on the state last seen.
func (m *machine) claim() {
	// 0. Whoever decides outside of the election has admitted this replica.
	if m.admit != nil && m.admit() != nil {
		m.claimNotBefore = m.now.Add(admissionPause)
		return
	}
	// 1. The floor and the request object are read fresh in every attempt: a
	// replica that cannot read them is no candidate.
	if what := m.missing(); what.any() {
		m.ask(forClaim, what, boottime.Never)
		return
	}
	// 2. Nobody leads during a hold.
	if m.blocked() {
		return
	}
	var fence Fence
	if m.fence != nil {
		fence = *m.fence
		m.seen.outranked = m.seen.outranked || !m.seen.absent && fence.outranks(m.seen.lease.Record)
	}
	// 3. What was claimable at once or on the shorter window may have to wait.
	if m.now < m.seen.since.Add(m.window()) && !m.tombstoneTrusted(fence) {
		m.quickTry = m.seen.lease.Version
		m.forget()
		return
	}
	m.forget()
	// 4. The epoch exceeds everything this lease, this document and this
	// process ever had.
	old := m.seen.lease.Record
	floor := max(old.Epoch, fence.Epoch, m.epochMax)
	if floor >= MaxEpoch {
		m.emit(Event{Kind: StoreFailed, Op: "claim", Class: cas.Corrupt, Epoch: floor,
			Err: fmt.Errorf("%w: the epoch has reached its maximum of %d; repair the lease or the checkpoint document", cas.Corrupt, MaxEpoch)})
		m.claimNotBefore = m.now.Add(m.cfg.TTL)
		return
	}
	// 5. The conditional write at the stale instant is itself the check that
	// nothing has changed.
	cond := condition{absent: m.seen.absent, version: m.seen.lease.Version}
	m.claimed = m.why()
	m.sendWrite(m.acquisition(old, floor+1, m.newID()), cond, boottime.Never)
}

// why says in words what is claimed, for the log.
func (m *machine) why() string {
	s, stood := m.seen, m.now.Sub(m.seen.since).Round(10*time.Millisecond)
	switch {
	case s.absent:
		return fmt.Sprintf("the lease was absent for %v", stood)
	case s.lease.Corrupt != nil:
		return fmt.Sprintf("the lease was no record of ours for %v", stood)
	case s.tombstone():
		return fmt.Sprintf("released by %q at epoch %d", s.lease.Record.Holder, s.lease.Record.Epoch)
	}
	return fmt.Sprintf("held by %q at epoch %d and not renewed for %v", s.lease.Record.Holder, s.lease.Record.Epoch, stood)
}

// acquisition is the record of a new term on top of what was read.
func (m *machine) acquisition(old Record, epoch int64, term string) Record {
	r := old
	if !m.seen.absent && m.seen.lease.Corrupt == nil && old.State != Released {
		r.History = old.closeHistory(m.wall, "stale")
	}
	r.Epoch, r.Term, r.AcquiredAt = epoch, term, m.wall
	r.Version, r.MinVersion, r.State, r.Stopping = RecordVersion, 0, Held, false
	r.Holder, r.Incarnation, r.Lease = m.cfg.Identity, m.incarnation, m.cfg.Lease
	r.TTL, r.Renew = m.cfg.TTL, m.cfg.RenewInterval
	r.Platform, r.Revision = m.cfg.Platform, m.cfg.Revision
	r.Successor = ""
	return m.stamped(r)
}

// stamped puts the wall-clock times of a renewal into the record, for people.
func (m *machine) stamped(r Record) Record {
	r.RenewedAt = m.wall
	r.ExpiresAt = m.wall.Add(m.cfg.TTL)
	return r
}

// standbyRead takes the answer of a read while this replica does not lead.
func (m *machine) standbyRead(op *operation, l Lease, err error) {
	m.nextAt = max(m.now, op.sentAt.Add(m.pollInterval(l, err)))
	switch class := cas.ClassOf(err); class {
	case "":
		m.follow(op, l)
		m.see(false, l)
		m.nextAt = max(m.now, m.rhythm.next(m.now, m.nextAt, m.seen.since, m.tempo()))
	case cas.NotFound:
		m.see(true, Lease{})
	default:
		// Not knowing is not absence: the sighting stands, its clock runs on,
		// and the conditional write decides.
		m.emit(Event{Kind: StoreFailed, Op: "read", Class: class, Err: err})
		return
	}
	m.settleClaim()
}

// settleClaim decides what became of acquisitions without an answer, now that
// a definite state of the lease was read.
func (m *machine) settleClaim() {
	if m.doubt == nil {
		return
	}
	now := condition{absent: m.seen.absent, version: m.seen.lease.Version}
	if now == m.doubt.cond {
		// A read that still shows the old state settles nothing: the write may
		// yet land. Another attempt on the same condition cannot make it worse,
		// but a store that answers reads and refuses writes must not be flooded
		// with both: the pause that followed the last attempt stands.
		m.claimNotBefore = max(m.claimNotBefore, m.now.Add(m.pause(m.cfg.PollInterval)))
		return
	}
	a, ours := m.settle(m.seen.lease.Record)
	m.doubt = nil
	if ours && m.seen.lease.Corrupt == nil {
		m.emit(Event{Kind: WriteSettled, Epoch: a.rec.Epoch})
		m.won(a.rec, m.seen.lease.Version, a.sentAt)
	}
}

// follow keeps the rhythm of the holder's renewals.
func (m *machine) follow(op *operation, l Lease) {
	if m.seen.known && !m.seen.absent && m.seen.lease.Version == l.Version {
		m.rhythm.unchanged(op.sentAt)
		return
	}
	m.rhythm.changed(op.sentAt, m.now, m.cfg.PollInterval)
}

// tempo is the renew interval of the holder that was seen, or 0 if none is
// expected to renew, or everything is read often anyway.
func (m *machine) tempo() time.Duration {
	r := m.seen.lease.Record
	if m.seen.lease.Corrupt != nil || r.Foreign() || r.State != Held || r.Stopping || m.doubt != nil {
		return 0
	}
	return r.Renew
}

func (m *machine) pollInterval(l Lease, err error) time.Duration {
	if m.doubt != nil || err == nil && l.Corrupt == nil && l.Record.Stopping {
		return min(m.cfg.PollInterval, stoppingPoll)
	}
	return m.cfg.PollInterval
}

// claimWrite takes the answer of an acquisition.
func (m *machine) claimWrite(op *operation, v cas.Version, err error) {
	class := cas.ClassOf(err)
	switch {
	case err == nil:
		m.doubt = nil
		m.won(op.rec, v, op.sentAt)
	case class == cas.Conflict:
		// Lost the race, or our own earlier attempt landed; a read tells. A
		// first attempt that lost is an ordinary event.
		m.emit(Event{Kind: ClaimLost, Epoch: op.rec.Epoch})
		m.nextAt = m.now
		// The state we claimed on is gone. If the next read shows it again, it is
		// a new one, and stands from then: between two absences there was a holder.
		m.seen = sighting{}
		m.forget()
	case !class.Definite():
		m.inDoubt(op, err)
		m.nextAt = m.now.Add(m.pause(m.cfg.PollInterval))
		m.claimNotBefore = m.nextAt.Add(m.cfg.PollInterval)
	default:
		m.emit(Event{Kind: StoreFailed, Op: "claim", Class: class, Err: err})
		m.claimNotBefore = m.now.Add(m.cfg.PollInterval)
	}
}

// won starts a term whose acquisition is confirmed. It counts from before the
// send of the attempt that landed.
func (m *machine) won(rec Record, v cas.Version, sentAt Instant) {
	m.mine, m.ver = rec, v
	m.term = termState{epoch: rec.Epoch, id: rec.Term, started: m.now, failures: rec.Work.Failures}
	m.work, m.lastObeyed, m.successor, m.askDue = rec.Work, rec.Obeyed, "", true
	m.setDeadline(sentAt)
	m.epochMax = max(m.epochMax, rec.Epoch)
	m.lastHeld.epoch, m.lastHeld.incarnation, m.lastHeld.term = rec.Epoch, rec.Incarnation, rec.Term
	m.question, m.lost, m.workDone, m.overran, m.planned, m.endNote = false, false, false, false, false, ""
	// A term that was confirmed too late, or into a stop or a hold, is never
	// worked under; it is given back so that nobody waits for it.
	if m.stop != nil || m.now >= m.term.stopAt || m.now < m.held.until {
		m.workDone = true
		m.startRelease("not worked")
		return
	}
	m.phase = leading
	m.nextAt = sentAt.Add(m.cfg.RenewInterval)
	m.emit(Event{Kind: Acquired, Epoch: rec.Epoch, Term: rec.Term, Holder: rec.Holder, Reason: m.claimed})
	m.out = append(m.out, action{kind: doStart, term: m.term})
}
