package coordinator

import (
	"github.com/sf2loki/sf2loki-ha/cas"
	"github.com/sf2loki/sf2loki-ha/internal/boottime"
)

// ledBy reports whether a revision leads or has led, as far as the record tells.
func (r Record) ledBy(revision string) bool {
	if r.Revision == revision {
		return true
	}
	for _, past := range r.History {
		if past.Revision == revision {
			return true
		}
	}
	return false
}

// nominee is this replica's own candidacy for a handover.
type nominee struct {
	term      string // it was put forward in this term, or need not be
	notBefore Instant
}

// nominateAt is when this standby may ask the leader to hand over to it, because
// it runs a revision that has never led. Never, as long as anything speaks
// against it.
func (m *machine) nominateAt() Instant {
	s := m.seen
	if !m.hasRequests || m.cfg.Revision == "" || !s.known || s.absent || s.lease.Corrupt != nil || m.stop != nil {
		return boottime.Never
	}
	r := s.lease.Record
	switch {
	case r.Foreign(), r.State != Held, r.Stopping, r.Term == "", r.Revision == "", r.MinVersion > RecordVersion:
		return boottime.Never
	case r.Term == m.nominee.term, r.ledBy(m.cfg.Revision), r.Work.pause(m.incarnation) > 0:
		return boottime.Never
	}
	return max(m.nominee.notBefore, s.since)
}

// nominate asks the leader to hand over to this replica. It is ready: whoever
// decides outside of the election has admitted it, and it can read what a
// candidate reads.
func (m *machine) nominate() {
	if m.admit != nil && m.admit() != nil {
		m.nominee.notBefore = m.now.Add(admissionPause)
		return
	}
	if what := m.missing(); what.any() {
		m.ask(forNomination, what, boottime.Never)
		return
	}
	r, record := *m.request, m.seen.lease.Record
	m.forget()
	target := Target{Epoch: record.Epoch, Term: record.Term}
	other := r.Request.Handover
	switch {
	case m.now < m.held.until, r.Problem != nil && r.Request.fields == nil:
		// Nothing changes hands during a hold; and a document that we do not
		// understand is not overwritten. A damaged part is left as it is.
		m.nominee.notBefore = m.now.Add(m.cfg.RenewInterval)
		return
	case other != nil && other.Target == target:
		m.nominee.term = record.Term // the leader has been asked already
		return
	}
	m.nominee.term = record.Term
	op := m.send(opRequest, boottime.Never)
	m.out = append(m.out, action{
		kind: doRequest, op: op.id, timeout: op.timeout(), cond: condition{absent: r.Version == "", version: r.Version},
		request: r.Request.Aged(r.Age).WithHandover(&Handover{
			ID: m.newID(), Incarnation: m.incarnation, Revision: m.cfg.Revision, Target: target,
		}),
	})
}

// onNominated takes the answer of the write.
func (m *machine) onNominated(err error) {
	switch class := cas.ClassOf(err); {
	case err == nil:
		m.emit(Event{Kind: Nominated, Epoch: m.seen.lease.Record.Epoch, Reason: "revision " + m.cfg.Revision})
	default:
		if class != cas.Conflict {
			m.emit(Event{Kind: StoreFailed, Op: "nominate", Class: class, Err: err})
		}
		// Read it again: somebody may have changed the document meanwhile, and our
		// own write may have landed although nobody said so.
		m.nominee = nominee{notBefore: m.now.Add(m.cfg.RenewInterval)}
	}
}
