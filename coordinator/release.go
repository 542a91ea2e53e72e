package coordinator

import (
	"github.com/sf2loki/sf2loki-ha/cas"
)

// startRelease begins to give the lease back. The work has ended: that is the
// only way here.
func (m *machine) startRelease(note string) {
	m.phase, m.endNote = releasing, note
	m.nextAt = m.now
	// As long as the lease would run anyway, and long enough for a few calls.
	m.giveUpAt = m.now.Add(max(m.cfg.TTL/2, 3*m.cfg.CallTimeout))
}

// releasingTime writes the tombstone.
func (m *machine) releasingTime() {
	if m.op != nil {
		return
	}
	switch {
	case m.now >= m.giveUpAt:
		m.emit(Event{Kind: ReleaseFailed, Epoch: m.term.epoch, Term: m.term.id})
		m.afterRelease(false)
	case m.now < m.dueAt():
	case m.question:
		m.sendRead(m.giveUpAt)
	default:
		m.sendWrite(m.tombstone(), condition{version: m.ver}, m.giveUpAt)
	}
}

// tombstone is the record that gives the lease back. It keeps epoch, term and
// incarnation: the epoch must never go back, and observers recognise by the
// incarnation whose end this is.
func (m *machine) tombstone() Record {
	r := m.stamped(m.mine)
	r.ExpiresAt = m.wall
	r.State, r.Stopping = Released, false
	r.Work, r.Obeyed, r.Successor = m.work, m.lastObeyed, m.successor
	r.History = m.mine.closeHistory(m.wall, m.endNote)
	return r
}

// releaseWrite takes the answer of the tombstone's write.
func (m *machine) releaseWrite(op *operation, v cas.Version, err error) {
	class := cas.ClassOf(err)
	switch {
	case err == nil:
		m.mine, m.ver = op.rec, v
		m.afterRelease(true)
	case class == cas.Conflict && m.doubtful(op.cond):
		m.question = true
		m.nextAt = m.now
	case class == cas.Conflict:
		// Somebody took over an expired lease: nothing is left to give back.
		m.emit(Event{Kind: ReleaseFailed, Epoch: m.term.epoch, Term: m.term.id, Class: class, Err: err})
		m.afterRelease(false)
	case !class.Definite():
		m.inDoubt(op, err)
		m.retryWrite()
	default:
		m.emit(Event{Kind: StoreFailed, Op: "release", Class: class, Err: err})
		m.retryWrite()
	}
}

// afterRelease forgets the term: nothing of it is reused.
func (m *machine) afterRelease(released bool) {
	final := m.stop != nil && m.stop.final
	if released {
		m.emit(Event{Kind: ReleasedLease, Epoch: m.term.epoch, Term: m.term.id, Reason: m.endNote})
	}
	tomb, ver := m.mine, m.ver
	m.term, m.mine, m.ver = termState{}, Record{}, ""
	m.doubt, m.question, m.stop = nil, false, nil
	m.lost, m.workDone, m.overran, m.planned = false, false, false, false
	m.seen, m.op = sighting{}, nil
	m.forget()
	m.ownPause = jittered(m.cfg.PollInterval, m.jitter())
	if final {
		m.finish()
		return
	}
	m.phase, m.nextAt = standby, m.now
	if released {
		m.nextAt = m.now.Add(m.cfg.PollInterval)
		m.see(false, Lease{Version: ver, Record: tomb})
	}
	m.emit(Event{Kind: BecameStandby})
}

func (m *machine) finish() {
	m.phase = finished
	m.emit(Event{Kind: Finished})
}
