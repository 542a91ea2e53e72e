package coordinator

import (
	"context"
	"time"
)

// Machine is the election of one process without a loop: no goroutine, no timer
// and no request of its own. It is the very state machine that an [Elector] runs,
// for simulators that want to play many replicas, a store and a network as one
// history from one seed. Outside of simulators use an Elector.
//
// Its clock is that of [WithClock], at the instant at which Step is called. A
// Machine is not safe for concurrent use. What a step decides about the term, and
// the start of its Call, come before the next step; the answer may come any time
// later, and steps go on meanwhile. Whoever makes the call ends it at its Timeout.
type Machine struct {
	e      *Elector
	report func(Input)
}

// NewMachine takes what [New] takes. report gets what the work says about itself
// (Term.Failed, Term.Settled), to be handed to Step; nil drops it.
func NewMachine(store LeaseStore, cfg Config, report func(Input), opts ...Option) (*Machine, error) {
	e, err := New(store, cfg, opts...)
	if err != nil {
		return nil, err
	}
	if report == nil {
		report = func(Input) {}
	}
	// Two requests at once would come in an order that no seed decides.
	e.stores.both = func(f, g func()) { f(); g() }
	return &Machine{e: e, report: report}, nil
}

// Input is something that happened: see Tick, Stop, Call.Do and
// [Machine.WorkEnded].
type Input struct{ in input }

// Err is the error of an answer, or of work that ended.
func (i Input) Err() error { return i.in.err }

// Tick is the input when nothing happened but time.
func Tick() Input { return Input{input{kind: inTick}} }

// Stop asks a leader to step down, or, if final, the process to end.
func Stop(reason string, final bool) Input {
	return Input{input{kind: inStop, reason: reason, final: final}}
}

// WorkEnded is the input after the work of the term has ended with err. Without a
// term it is no more than a Tick.
func (m *Machine) WorkEnded(err error) Input {
	if m.e.tenure == nil {
		return Tick()
	}
	return Input{m.e.tenure.over(err)}
}

// Call is a request to be made.
type Call struct {
	// ID numbers the requests of one process.
	ID uint64
	// Op is its name in events: read, create, replace, release, inquire, fence,
	// request or nominate.
	Op string
	// Timeout is when its caller should give up. An answer that comes later is
	// ignored.
	Timeout time.Duration
	// Do makes the request and returns its answer.
	Do func(ctx context.Context) Input
	// Failed is the answer if Do was given up or cannot be made.
	Failed func(err error) Input
}

// Step is what one input leads to.
type Step struct {
	// Call is a request to be made, or nil. There never are two.
	Call *Call
	// Start is the context of the work of a new term, which [FromContext] returns,
	// or nil.
	Start context.Context
	// Wake is when the next Tick is due at the latest.
	Wake Instant
	// Finished: the process may end.
	Finished bool
}

// Step advances the election by one input at the present instant. wall is the
// wall clock, for people. Terms that are under way have been changed, and
// observers called, when it returns.
func (m *Machine) Step(in Input, wall time.Time) Step {
	in.in.at, in.in.wall = m.e.clock.Now(), wall
	actions, wake := m.e.machine.step(in.in)
	s := Step{Wake: wake, Finished: m.e.machine.phase == finished}
	for _, a := range actions {
		if do, ok := m.e.stores.request(a); ok {
			s.Call = m.call(a, do)
			continue
		}
		switch a.kind {
		case doStart:
			m.e.tenure = &tenure{}
			s.Start = m.e.tenure.begin(context.Background(), a.term, m.e.clock, func(kind inputKind) {
				m.report(Input{input{kind: kind, term: a.term.id}})
			})
		case doEmit:
			m.e.emit(a.event)
		default:
			m.e.tenure.obey(a)
		}
	}
	m.e.publish()
	return s
}

func (m *Machine) call(a action, do func(context.Context, *input)) *Call {
	return &Call{
		ID: a.op, Op: opName(m.e.machine.op), Timeout: a.timeout,
		Do: func(ctx context.Context) Input {
			in := input{kind: inResult, op: a.op}
			do(ctx, &in)
			return Input{in}
		},
		Failed: func(err error) Input { return Input{input{kind: inResult, op: a.op, err: err}} },
	}
}

// MachineState is where a Machine stands.
type MachineState struct {
	// Phase is standby, leading, draining, releasing or finished.
	Phase string
	// Call is the request whose answer is waited for, or 0.
	Call uint64
	// Epoch and Term are those of the term held, and the instants are its; zero
	// without a term.
	Epoch            int64
	Term             string
	Deadline, KillAt Instant
	// Lost: nobody may assume that the lease is ours.
	Lost bool
	// OutUntil is the end of a stay-out.
	OutUntil Instant
}

// State returns where the machine stands.
func (m *Machine) State() MachineState {
	c := m.e.machine
	s := MachineState{
		Phase: [...]string{"standby", "leading", "draining", "releasing", "finished"}[c.phase],
		Epoch: c.term.epoch, Term: c.term.id, Lost: c.lost, OutUntil: c.outUntil,
	}
	if c.op != nil {
		s.Call = c.op.id
	}
	if c.term.id != "" {
		s.Deadline, s.KillAt = c.term.deadline, c.killAt()
	}
	return s
}

// Incarnation is the random id of this process in its records.
func (m *Machine) Incarnation() string { return m.e.incarnation }
