package coordinator

import (
	"errors"
	"fmt"
	"time"

	"github.com/sf2loki/sf2loki-ha/cas"
)

// setDeadline derives the instants of the term from the send of a write that
// landed.
func (m *machine) setDeadline(sentAt Instant) {
	t := &m.term
	t.sentAt = sentAt
	t.deadline = sentAt.Add(m.cfg.lifetime())
	t.killAt = t.deadline.Add(-m.cfg.KillMargin)
	t.stopAt = t.killAt.Add(-m.cfg.StopGrace)
}

// leadingTime does what a leader has to do by now.
func (m *machine) leadingTime() {
	// 1. Past the stop instant leadership is over, and stays over for this
	// term, whatever an answer still brings.
	if m.now >= m.term.stopAt {
		m.emit(Event{Kind: Expired, Epoch: m.term.epoch, Term: m.term.id, Left: m.killAt().Sub(m.now)})
		m.end(ErrExpired, "expired")
		return
	}
	if m.op != nil {
		return
	}
	if m.now < m.dueAt() {
		// Once a renewal: what people ask for. It never holds up the next one.
		if m.asks() {
			m.askDue = false
			m.ask(forLeader, inquiry{request: true}, m.term.stopAt)
		}
		return
	}
	// 2. A conflict that may be our own doing is answered by a read.
	if m.question {
		m.sendRead(m.term.stopAt)
		return
	}
	// 3. Renew.
	m.renew(m.term.stopAt)
}

func (m *machine) renew(until Instant) {
	rec := m.stamped(m.mine)
	rec.Stopping = m.stop != nil
	rec.Work, rec.Obeyed = m.work, m.lastObeyed
	m.sendWrite(rec, condition{version: m.ver}, until)
}

// renewWrite takes the answer of a renewal, while leading, draining or, if the
// work ended meanwhile, releasing.
func (m *machine) renewWrite(op *operation, v cas.Version, err error) {
	class := cas.ClassOf(err)
	switch {
	case err == nil:
		m.confirmed(op.rec, v, op.sentAt)
	case class == cas.Conflict && m.doubtful(op.cond):
		// An earlier attempt on this version may have landed: ask.
		m.question = true
		m.nextAt = m.now
	case class == cas.Conflict:
		// A clean conflict is a loss, at once and without a read-back.
		m.lose(fmt.Errorf("%w: the lease changed under its holder: %v", ErrLost, err))
	case !class.Definite():
		m.inDoubt(op, err)
		m.retryWrite()
	default:
		m.emit(Event{Kind: StoreFailed, Op: "renew", Class: class, Err: err})
		m.retryWrite()
	}
}

// retryWrite makes the next attempt due at once, with jitter, not at the next
// renewal; a store that counts writes per object gets its interval by dueAt.
func (m *machine) retryWrite() { m.nextAt = m.now.Add(m.pause(m.cfg.retryPause())) }

// confirmed moves the term on after a write of ours landed.
func (m *machine) confirmed(rec Record, v cas.Version, sentAt Instant) {
	m.mine, m.ver = rec, v
	m.doubt, m.question = nil, false
	m.nextAt = max(m.now, sentAt.Add(m.cfg.RenewInterval))
	m.askDue = true
	if m.phase == releasing || (m.stop != nil && !rec.Stopping) {
		// The work ended, or the stop was requested, while this renewal was in
		// flight: the next write is due now.
		m.nextAt = m.now
	}
	if m.now >= m.killAt() || m.phase != leading && !m.renewsWhileDraining() {
		// A term that was told to end is never prolonged by a late answer, nor
		// is one whose kill instant has passed: its work is gone by now, because
		// the guard did not wait for this process to wake.
		return
	}
	m.setDeadline(sentAt)
	m.emit(Event{Kind: Renewed, Epoch: m.term.epoch, Term: m.term.id})
	m.out = append(m.out, action{kind: doExtend, term: m.term, killAt: m.killAt()})
}

// holderRead takes the answer of the read that settles a conflict in doubt.
func (m *machine) holderRead(l Lease, err error) {
	class := cas.ClassOf(err)
	switch {
	case class == cas.NotFound:
		m.lose(fmt.Errorf("%w: the lease was deleted", ErrLost))
	case class == cas.Corrupt, err == nil && l.Corrupt != nil:
		m.lose(fmt.Errorf("%w: the lease was overwritten with something that is not a record", ErrLost))
	case err != nil:
		m.emit(Event{Kind: StoreFailed, Op: "read", Class: class, Err: err})
		m.nextAt = m.now.Add(m.pause(m.cfg.retryPause()))
	case l.Version == m.ver:
		// Still the old version: nothing is settled, the writes go on, calmly: a
		// store that refuses writes and shows the old version must not be flooded.
		m.question = false
		m.nextAt = m.now.Add(min(stoppingPoll, m.cfg.RenewInterval/2))
	default:
		a, ours := m.settle(l.Record)
		if !ours {
			m.learn(l.Record)
			m.lose(fmt.Errorf("%w: held by %q at epoch %d", ErrLost, l.Record.Holder, l.Record.Epoch))
			return
		}
		m.emit(Event{Kind: WriteSettled, Epoch: m.term.epoch, Term: m.term.id})
		released := a.rec.State == Released
		m.confirmed(a.rec, l.Version, a.sentAt)
		if released {
			m.afterRelease(true)
		}
	}
}

// lose ends the term at once: somebody else may act already.
func (m *machine) lose(cause error) {
	m.lost, m.lostAt = true, m.now
	if m.phase == releasing {
		// The work has ended: there is nothing left to lose. Perhaps the tombstone
		// had landed, and was claimed before we could know.
		m.emit(Event{Kind: ReleaseFailed, Epoch: m.term.epoch, Term: m.term.id, Class: cas.Conflict, Err: cause})
		m.afterRelease(false)
		return
	}
	m.emit(Event{Kind: Lost, Epoch: m.term.epoch, Term: m.term.id, Err: cause})
	switch m.phase {
	case leading:
		m.end(cause, "lost")
	case draining:
		// The work already drains; now it has no time left.
		m.out = append(m.out, action{kind: doExtend, term: m.term, killAt: m.killAt(), cause: cause})
	}
}

// end tells the work to end.
func (m *machine) end(cause error, note string) {
	m.phase, m.endNote = draining, note
	m.out = append(m.out, action{kind: doEnd, term: m.term, cause: cause, killAt: m.killAt()})
}

// killAt is the instant by which the work must be gone.
func (m *machine) killAt() Instant {
	switch {
	case m.lost:
		// Now; or earlier, if its time was over already: an instant never moves
		// back into the future.
		at := min(m.lostAt, m.term.killAt)
		if m.stop != nil {
			at = min(at, m.stop.limit)
		}
		return at
	case m.stop != nil:
		return min(m.stop.limit, m.term.killAt)
	}
	return m.term.killAt
}

// overrunAt is when work that was told to end is late: a kill takes effect
// within the kill margin or not at all.
func (m *machine) overrunAt() Instant { return m.killAt().Add(m.cfg.KillMargin) }

// onStop takes a requested stop (final) or step-down.
func (m *machine) onStop(reason string, final bool) {
	if m.stop != nil {
		m.stop.final = m.stop.final || final
		return
	}
	switch m.phase {
	case standby:
		if !final {
			return // there is nothing to step down from
		}
		m.stop = &stopRequest{reason: reason, final: true, limit: m.now.Add(min(m.cfg.TTL/2, m.cfg.drainLimit()))}
	case leading:
		m.stop = &stopRequest{reason: reason, final: final, limit: m.now.Add(m.cfg.drainLimit())}
		m.planned = true
		m.emit(Event{Kind: SteppingDown, Epoch: m.term.epoch, Term: m.term.id, Reason: reason, Left: m.killAt().Sub(m.now)})
		m.end(fmt.Errorf("%w: %s", ErrStopping, reason), reason)
		// Announce it now, not with the next renewal.
		m.nextAt = m.now
	case draining, releasing:
		// The term is ending for another reason; remember not to come back.
		m.stop = &stopRequest{reason: reason, final: final, limit: m.term.killAt}
	}
}

// renewsWhileDraining reports whether the lease is still renewed: only during
// a requested stop, and never past the instant at which its work is killed.
func (m *machine) renewsWhileDraining() bool {
	return m.phase == draining && m.planned && !m.lost && !m.workDone && m.now < m.killAt()
}

// drainingTime waits for the work to end.
func (m *machine) drainingTime() {
	// 1. Gone: give the lease back, or forget it.
	if m.workDone {
		if m.lost {
			m.afterRelease(false)
		} else {
			m.startRelease(m.endNote)
		}
		return
	}
	// 2. Not gone a margin after the kill instant: said once. The lease is not
	// released; it runs out.
	if m.now >= m.overrunAt() && !m.overran {
		m.overran = true
		m.emit(Event{Kind: Overran, Epoch: m.term.epoch, Term: m.term.id})
	}
	// 3. A requested stop keeps renewing while the work drains.
	if m.op == nil && m.renewsWhileDraining() && m.now >= m.dueAt() {
		if m.question {
			m.sendRead(m.killAt())
		} else {
			m.renew(m.killAt())
		}
	}
}

// onWorkFailed takes a failure of the work, which is started again within the
// term. The next renewal tells whoever leads next.
// What is said of a former term, late, is not about this one.
func (m *machine) onWorkFailed(term string) {
	if term == m.term.id {
		m.work = m.work.failed(m.incarnation)
	}
}

// onWorkSettled takes that the work runs well.
func (m *machine) onWorkSettled(term string) {
	if term == m.term.id {
		m.work = Work{}
	}
}

// onWorkEnded takes the return of lead. floor is the epoch of the checkpoint
// document that fenced the work, or 0.
func (m *machine) onWorkEnded(err error, floor int64) {
	m.workDone = m.phase == leading || m.phase == draining
	m.epochMax = max(m.epochMax, min(floor, MaxEpoch))
	if m.phase != leading {
		return // drainingTime goes on
	}
	// The work ended by itself. A failure keeps this replica out for a while,
	// so that the other one gets its chance.
	note := "work ended"
	if errors.Is(err, ErrCrashLoop) {
		// The record has the failures and who had them: those wait, others try.
		note = "crash loop"
	} else if err != nil {
		note = "work failed"
		if m.now.Sub(m.term.started) >= time.Minute {
			m.strikes = 0
		}
		m.strikes++
		m.outUntil = m.now.Add(min(maxStayOut, m.cfg.TTL<<min(m.strikes, 6)))
	} else {
		m.strikes = 0
	}
	m.emit(Event{Kind: WorkEnded, Epoch: m.term.epoch, Term: m.term.id, Err: err, Reason: note})
	m.end(fmt.Errorf("%w: %s", ErrStopping, note), note)
	m.startRelease(note)
}
