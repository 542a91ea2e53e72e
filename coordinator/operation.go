package coordinator

import (
	"time"

	"github.com/sf2loki/sf2loki-ha/cas"
	"github.com/sf2loki/sf2loki-ha/internal/boottime"
)

// opKind is what a request asks for.
type opKind uint8

const (
	opRead opKind = iota
	opWrite
	opAsk
	opRequest
)

// condition is what a write depends on: a version, or absence.
type condition struct {
	absent  bool
	version cas.Version
}

// operation is the one request in flight. A machine never has two: the second
// could overtake the first.
type operation struct {
	id     uint64
	kind   opKind
	sentAt Instant
	// giveUp is when the machine stops waiting, whatever the call does.
	giveUp Instant
	// For writes of the lease.
	cond condition
	rec  Record
	// For reads beside the lease.
	ask inquiry
	why purpose
}

// send puts a request in flight. until is the instant that must not pass
// before the call is given up: a third of the time to it, so that one slow
// call leaves room for two more.
func (m *machine) send(kind opKind, until Instant) *operation {
	timeout := m.cfg.CallTimeout
	if until != boottime.Never {
		timeout = min(timeout, until.Sub(m.now)/3)
		timeout = max(timeout, min(300*time.Millisecond, m.cfg.CallTimeout))
	}
	m.nextOp++
	m.op = &operation{id: m.nextOp, kind: kind, sentAt: m.now, giveUp: m.now.Add(timeout + answerSlack)}
	return m.op
}

// answerSlack is how long after its deadline a call may still hand over its
// answer before the machine stops waiting.
const answerSlack = 50 * time.Millisecond

func (op *operation) timeout() time.Duration { return op.giveUp.Sub(op.sentAt) - answerSlack }

func (m *machine) sendRead(until Instant) {
	op := m.send(opRead, until)
	m.out = append(m.out, action{kind: doRead, op: op.id, timeout: op.timeout()})
}

func (m *machine) sendWrite(rec Record, cond condition, until Instant) {
	op := m.send(opWrite, until)
	m.wroteAt = m.now
	op.cond = cond
	rec.WriteID = m.newID()
	op.rec = rec
	m.out = append(m.out, action{kind: doWrite, op: op.id, cond: cond, rec: rec, timeout: op.timeout()})
}

// longestPause is the wait before a retry: 50 ms doubling with each failure to at
// most limit.
func longestPause(fails int, limit time.Duration) time.Duration {
	return min(50*time.Millisecond<<min(fails, 10), limit)
}

// pause is the jittered wait before a retry: half of the longest, or more.
func (m *machine) pause(limit time.Duration) time.Duration {
	d := longestPause(m.fails, limit)
	return d/2 + time.Duration(m.jitter()*float64(d/2))
}

// note counts failures in a row and tells the observer about the request.
func (m *machine) note(op *operation, err error) {
	if op.kind == opWrite {
		// The store counts from its own handling of a write, which was no later
		// than now: the next one may come a whole interval after that.
		m.wroteAt = m.now
	}
	class := cas.ClassOf(err)
	m.emit(Event{Kind: Requested, Op: opName(op), Class: class, Took: m.now.Sub(op.sentAt), Err: err})
	// Conflict and absence are answers, not failures.
	if err == nil || class == cas.Conflict || class == cas.NotFound {
		m.fails = 0
		return
	}
	m.fails++
}

func opName(op *operation) string {
	switch {
	case op.kind == opRead:
		return "read"
	case op.kind == opAsk:
		return op.ask.name()
	case op.kind == opRequest:
		return "nominate"
	case op.cond.absent:
		return "create"
	case op.rec.State == Released:
		return "release"
	}
	return "replace"
}
