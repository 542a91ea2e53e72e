package coordinator

import "github.com/sf2loki/sf2loki-ha/cas"

// attempt is a write without a definite answer.
type attempt struct {
	sentAt Instant
	rec    Record
}

// doubt is every attempt on one condition that has no definite answer. It
// belongs to the condition: from the first such attempt until another version
// is read, a conflict on that condition is a question (rule 6).
type doubt struct {
	cond     condition
	attempts []attempt
}

// inDoubt remembers a write without a definite answer. The first is repeated at
// once, since a conflict then tells; from the second on a read comes between
// the writes, because the answer that would tell may be lost as well.
func (m *machine) inDoubt(op *operation, err error) {
	if m.doubt == nil || m.doubt.cond != op.cond {
		m.doubt = &doubt{cond: op.cond}
	}
	m.doubt.attempts = append(m.doubt.attempts, attempt{sentAt: op.sentAt, rec: op.rec})
	m.question = m.phase != standby && len(m.doubt.attempts) > 1
	m.emit(Event{Kind: WriteInDoubt, Epoch: op.rec.Epoch, Op: opName(op), Class: cas.ClassOf(err), Err: err})
}

// doubtful reports whether an earlier attempt on cond may have been applied.
func (m *machine) doubtful(cond condition) bool { return m.doubt != nil && m.doubt.cond == cond }

// settle looks for the attempt that produced the record that was read.
func (m *machine) settle(rec Record) (attempt, bool) {
	if m.doubt == nil {
		return attempt{}, false
	}
	for _, a := range m.doubt.attempts {
		if a.rec.WriteID == rec.WriteID {
			return a, true
		}
	}
	return attempt{}, false
}
