package coordinator

import (
	"time"

	"github.com/sf2loki/sf2loki-ha/cas"
	"github.com/sf2loki/sf2loki-ha/internal/boottime"
)

// Instant is a point on this machine's boot-time clock; see the package
// comment of internal/boottime. It means nothing on another machine.
type Instant = boottime.Instant

// phase is where a replica stands in its life cycle.
type phase uint8

const (
	// standby watches the lease, and claims it once it is claimable.
	standby phase = iota
	// leading holds the lease and its work runs.
	leading
	// draining still may hold the lease; its work has been told to end.
	draining
	// releasing holds the lease without work and writes the tombstone.
	releasing
	// finished does nothing any more.
	finished
)

// sighting is the last definite state of the lease that was read.
type sighting struct {
	known  bool
	absent bool
	lease  Lease
	// since is the receipt of the first read that showed this state: staleness
	// counts from there, on our own clock.
	since Instant
	// outranked: a higher epoch than the record's is known. An old version was
	// put back over a later term, whose holder may not have noticed.
	outranked bool
}

// termState is the term this replica holds.
type termState struct {
	epoch    int64
	id       string
	deadline Instant // work must be gone; others may act
	killAt   Instant // work is killed
	stopAt   Instant // work is told to end
	sentAt   Instant // of the write that landed last
	started  Instant
	failures int // of the work in a row, on all replicas, before this term
}

// stopRequest is a requested end of leadership.
type stopRequest struct {
	reason string
	final  bool    // the process is stopping: do not compete again
	limit  Instant // the work is killed then, whatever the lease says
}

// machine is the pure election: (state, input) -> (state, actions). It does no
// I/O, reads no clock and starts nothing, so that every decision can be tested
// by a table and replayed from a seed. The elector feeds and obeys it.
type machine struct {
	cfg         Config // with defaults
	incarnation string
	hasFence    bool
	hasRequests bool
	newID       func() string  // a fresh random id
	jitter      func() float64 // uniform in [0,1)
	admit       func() error   // nil, or why nothing may be claimed yet

	phase  phase
	seen   sighting
	op     *operation
	nextOp uint64
	nextAt Instant // when the next request of this phase is due
	fails  int     // failed requests in a row
	// wroteAt is when the last write was sent, or its answer taken, whatever
	// became of it: the store that limits writes counts all of them.
	wroteAt Instant

	// What this process has ever seen of this lease.
	ttlMax   time.Duration
	epochMax int64
	lastHeld struct {
		epoch       int64
		incarnation string
		term        string
	}

	// Candidate.
	fence    *Fence        // read in this attempt, or nil
	lastSeal seal          // of the last fence that was read
	request  *RequestState // read in this attempt, or nil
	held     hold          // what was last asked of everybody
	// rehearseFrom is when a standby reads next what it would need to claim.
	rehearseFrom Instant
	rhythm       rhythm
	saidUnclear  bool        // that the request object cannot be understood
	unclearIn    cas.Version // in that version
	nominee      nominee     // of our own candidacy for a handover
	quickTry     cas.Version // tombstone that was already tried at once
	outUntil     Instant     // stay-out after a step-down
	strikes      int         // terms in a row that ended by failure
	// claimNotBefore spaces attempts; ownPause is the jitter on our own
	// tombstone.
	claimNotBefore Instant
	claimed        string // what the last attempt was made on, for the log
	ownPause       time.Duration

	// Leader.
	term       termState
	mine       Record      // the record last confirmed
	ver        cas.Version // its version
	doubt      *doubt
	question   bool // a conflict met doubt: read before anything else
	stop       *stopRequest
	lost       bool // nobody may assume the lease is ours
	lostAt     Instant
	workDone   bool
	overran    bool
	planned    bool     // the drain was requested: the lease is renewed meanwhile
	giveUpAt   Instant  // end of the release attempts
	askDue     bool     // the request object has to be read
	obeyed     []string // ids of requests this process obeyed, latest last
	lastObeyed string   // what the next record says of it
	successor  string   // whom the lease is handed over to
	work       Work     // what the next write says about the work
	endNote    string   // reason for the record's history

	out  []action
	wall time.Time // the input's wall clock, for people
	now  Instant
}

// Fence is what a candidate learns from the checkpoint document before it
// claims: the epoch floor, and the window that a former holder may still use.
type Fence struct {
	// Epoch is the highest epoch that ever sealed the document.
	Epoch int64
	// Term is the id of the term that did, or "" if the document does not say.
	Term string
	// TTL is the ttl of the lease that sealed it, or 0.
	TTL time.Duration
	// Found is false if the document definitely does not exist.
	Found bool
}

func newMachine(cfg Config, incarnation string, hasFence bool, newID func() string, jitter func() float64) *machine {
	return &machine{cfg: cfg, incarnation: incarnation, hasFence: hasFence, newID: newID, jitter: jitter}
}

// step advances the machine by one input. It returns what to do and the
// instant at which the next tick is due at the latest.
func (m *machine) step(in input) ([]action, Instant) {
	m.out, m.now, m.wall = nil, in.at, in.wall
	switch in.kind {
	case inStop:
		m.onStop(in.reason, in.final)
	case inWorkEnded:
		m.onWorkEnded(in.err, in.floor)
	case inWorkFailed:
		m.onWorkFailed(in.term)
	case inWorkSettled:
		m.onWorkSettled(in.term)
	case inResult:
		m.onResult(in)
	}
	// A deadline that has passed comes before anything else is sent, also when
	// the process was frozen and wakes with an answer in its hand.
	m.onTime()
	return m.out, m.wake()
}

// onResult hands the answer of the request in flight to the phase. An answer
// that was given up is not an answer: its attempt is already in doubt.
func (m *machine) onResult(in input) {
	if m.op == nil || m.op.id != in.op {
		return
	}
	op := m.op
	m.op = nil
	m.note(op, in.err)
	switch op.kind {
	case opRead:
		m.onRead(op, in.lease, in.err)
	case opWrite:
		m.onWrite(op, in.version, in.err)
	case opAsk:
		m.onAsked(op, in.fence, in.request, in.err)
	case opRequest:
		m.onNominated(in.err)
	}
}

// onRead hands the answer of a read to the phase.
func (m *machine) onRead(op *operation, l Lease, err error) {
	switch m.phase {
	case standby:
		m.standbyRead(op, l, err)
	case leading, draining, releasing:
		m.holderRead(l, err)
	}
}

// onWrite hands the answer of a write to the phase. A renewal may still be in
// flight when the work has ended; it then only moves the version on.
func (m *machine) onWrite(op *operation, v cas.Version, err error) {
	switch {
	case m.phase == standby:
		m.claimWrite(op, v, err)
	case op.rec.State == Released:
		m.releaseWrite(op, v, err)
	case m.phase != finished:
		m.renewWrite(op, v, err)
	}
}

// onTime does what is due at m.now.
func (m *machine) onTime() {
	// 1. A request that hangs is given up: no answer is an ambiguous answer.
	if m.op != nil && m.now >= m.op.giveUp {
		op := m.op
		m.op = nil
		err := error(cas.Ambiguous)
		m.note(op, err)
		switch op.kind {
		case opRead:
			m.onRead(op, Lease{}, err)
		case opWrite:
			m.onWrite(op, "", err)
		case opAsk:
			m.onAsked(op, Fence{}, RequestState{}, err)
		case opRequest:
			m.onNominated(err)
		}
	}
	m.yield()
	// 2. What the phase has to do by now.
	switch m.phase {
	case standby:
		m.standbyTime()
	case leading:
		m.leadingTime()
	case draining:
		m.drainingTime()
	case releasing:
		m.releasingTime()
	case finished:
	}
}

// wake is when the machine wants the next tick.
func (m *machine) wake() Instant {
	at := boottime.Never
	if m.op != nil {
		at = m.op.giveUp
	}
	switch m.phase {
	case standby:
		switch {
		case m.op != nil:
		case m.stop != nil:
			at = min(m.nextAt, m.stop.limit)
		default:
			at = min(m.nextAt, m.claimAt(), m.nominateAt(), m.rehearseAt())
		}
	case leading:
		at = min(at, m.term.stopAt)
		if m.free() {
			at = min(at, m.dueAt())
		}
		if m.op == nil && m.asks() {
			at = m.now
		}
	case draining:
		if !m.overran {
			at = min(at, m.overrunAt())
		}
		if m.free() && m.renewsWhileDraining() {
			at = min(at, m.dueAt())
		}
	case releasing:
		if m.free() {
			at = min(m.giveUpAt, m.dueAt())
		}
	case finished:
		at = boottime.Never
	}
	return at
}

// writeFrom is when the store accepts the next write of this replica.
func (m *machine) writeFrom() Instant { return m.wroteAt.Add(m.cfg.MinWriteInterval) }

// dueAt is when a holder's next request is due. The read that answers a
// question waits for nothing but its own pause.
func (m *machine) dueAt() Instant {
	if m.question {
		return m.nextAt
	}
	return max(m.nextAt, m.writeFrom())
}

// jittered spreads replicas that woke at one instant: d plus up to d.
func jittered(d time.Duration, u float64) time.Duration { return time.Duration(u * float64(d)) }

func (m *machine) emit(e Event) {
	e.At = m.wall
	m.out = append(m.out, action{kind: doEmit, event: e})
}
