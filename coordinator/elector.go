package coordinator

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	mathrand "math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sf2loki/sf2loki-ha/internal/boottime"
)

// Lead is the work of one term. Its context ends, with a cause, when the work
// has to stop: see ErrLost, ErrExpired and ErrStopping. It must return by
// Term.KillAt. If it returns earlier the lease is released; with an error this
// replica also stays out for a while. An error with a method
// FencedEpoch() int64, anywhere in its chain, raises the epoch of the next
// acquisition above that value.
type Lead func(ctx context.Context, t *Term) error

// FenceReader reads the fence of the checkpoint document: the epoch floor with the
// id of the term that sealed it ("": unknown), and
// the ttl of the lease whose terms sealed it (0: unknown). found is false if
// the document definitely does not exist. *checkpoint.Store is one. A
// candidate asks it in every attempt; while it fails, nothing is claimed.
type FenceReader interface {
	Floor(ctx context.Context) (epoch int64, term string, ttl time.Duration, found bool, err error)
}

// Coordinator is what an Elector and the no-op coordinator have in common.
type Coordinator interface {
	// Run competes until ctx ends and calls lead once a term, never twice at a
	// time. It returns after lead has returned and the lease was released.
	Run(ctx context.Context, lead Lead) error
	// Status says where this replica stands now.
	Status() Status
	// StepDown asks a leader to hand over; a standby ignores it.
	StepDown(reason string)
}

// Option sets a seam of an Elector.
type Option func(*Elector)

// WithClock replaces the boot-time clock.
func WithClock(c Clock) Option { return func(e *Elector) { e.clock = c } }

// WithObserver receives every event, in order, on the election's own
// goroutine: it must not block. Repeated calls add observers.
func WithObserver(f func(Event)) Option {
	return func(e *Elector) { e.observers = append(e.observers, f) }
}

// WithFence gives the epoch floor: see [FenceReader]. Without it an epoch may be
// used again after the lease was deleted, and an operator who deletes it may let two
// replicas act.
func WithFence(f FenceReader) Option { return func(e *Elector) { e.stores.fence = f } }

// WithRequests gives the request object, named like the lease's with RequestSuffix
// appended and opened with [RequestsFrom], over a register of [cas.Aged] where the
// bucket can tell how old an object is. By it people and replicas of a new
// revision ask for holds, step-downs and handovers. Nothing is claimed while it
// cannot be read, and a leader reads it once per renew interval.
func WithRequests(r RequestStore) Option { return func(e *Elector) { e.stores.requests = r } }

// WithAdmission asks f before each attempt to claim; while it returns an error
// nothing is claimed, and it is asked again soon. Reading goes on meanwhile, so
// that the time for which a lease stood unchanged counts. A term that is held is
// not touched. f is called on the election's own goroutine: it must not block.
func WithAdmission(f func() error) Option { return func(e *Elector) { e.admit = f } }

// WithRandom replaces the source of ids and jitter, for tests that replay. An id
// is never repeated, not by another process either: lost answers are settled by
// them. jitter is uniform in [0, 1).
func WithRandom(id func() string, jitter func() float64) Option {
	return func(e *Elector) { e.newID, e.jitter = id, jitter }
}

// Elector competes for one lease. Create it with New; Run it once.
type Elector struct {
	cfg       Config
	stores    stores
	clock     Clock
	observers []func(Event)
	admit     func() error
	newID     func() string
	jitter    func() float64

	incarnation string
	machine     *machine
	inputs      chan input
	stepDowns   chan string
	ran         atomic.Bool
	beat        atomic.Int64 // last turn of the loop

	tenure  *tenure       // nil: no term
	stopped chan struct{} // closed when the loop has ended

	mu     sync.Mutex
	status Status
	held   *Term
}

var _ Coordinator = (*Elector)(nil)

// New returns an elector for the lease in store. It sends no request. An error
// joins every *FieldError of cfg.
func New(store LeaseStore, cfg Config, opts ...Option) (*Elector, error) {
	if cfg.Lease == "" {
		cfg.Lease = store.Describe()
	}
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("coordinator: %w", err)
	}
	e := &Elector{
		cfg: cfg.WithDefaults(), stores: stores{lease: store, both: sideBySide}, clock: SystemClock{},
		newID: randomID, jitter: mathrand.Float64,
		inputs: make(chan input), stepDowns: make(chan string, 1), stopped: make(chan struct{}),
	}
	for _, o := range opts {
		o(e)
	}
	e.incarnation = e.newID()
	e.machine = newMachine(e.cfg, e.incarnation, e.stores.fence != nil, e.newID, e.jitter)
	e.machine.admit = e.admit
	e.machine.hasRequests = e.stores.requests != nil
	e.status = Status{Role: RoleStandby, Lease: e.cfg.Lease, Incarnation: e.incarnation}
	return e, nil
}

// Incarnation is the random id of this process in its records.
func (e *Elector) Incarnation() string { return e.incarnation }

// randomID is 128 bits from the system's generator: never repeated, also not by
// two processes that were cloned from one snapshot.
func randomID() string {
	var b [16]byte
	if _, err := rand.Read(b[:]); err != nil {
		panic("coordinator: no randomness: " + err.Error())
	}
	return hex.EncodeToString(b[:])
}

// StepDown asks a leader to hand over.
func (e *Elector) StepDown(reason string) {
	select {
	case e.stepDowns <- reason:
	default: // one is already asked for
	}
}

// longestNap bounds how long the loop trusts a timer: Go's timers stand still
// while the machine is suspended, the boot-time clock does not.
const longestNap = 100 * time.Millisecond

// shortestNap keeps a mistake in the machine from becoming a busy loop.
const shortestNap = time.Millisecond

// Run implements Coordinator. It returns nil after ctx ended and everything
// was given back, or an error if it was called twice.
func (e *Elector) Run(ctx context.Context, lead Lead) error {
	if e.ran.Swap(true) {
		return errors.New("coordinator: Run was called before; make a new Elector")
	}
	// Requests outlive ctx: the release is sent after it ended.
	calls, cancelCalls := context.WithCancel(context.WithoutCancel(ctx))
	defer cancelCalls()
	defer close(e.stopped)
	defer e.beat.Store(0)

	e.emit(Event{Kind: BecameStandby, At: time.Now()})
	done := ctx.Done()
	timer := time.NewTimer(0)
	defer timer.Stop()
	next := input{kind: inTick}
	for {
		next.at, next.wall = e.clock.Now(), time.Now()
		e.beat.Store(int64(next.at))
		actions, wake := e.machine.step(next)
		for _, a := range actions {
			e.perform(calls, a, lead)
		}
		e.publish()
		if e.machine.phase == finished {
			return nil
		}
		timer.Reset(e.nap(wake))
		select {
		case next = <-e.inputs:
		case reason := <-e.stepDowns:
			next = input{kind: inStop, reason: reason}
		case <-done:
			done = nil
			next = input{kind: inStop, reason: "shutdown", final: true}
		case <-timer.C:
			next = input{kind: inTick}
		}
	}
}

// A standby only reads too late if its timer stood still, which is the safe
// side; it sleeps until its next read.
func (e *Elector) nap(wake Instant) time.Duration {
	limit := longestNap
	if e.machine.phase == standby {
		limit = e.cfg.PollInterval
	}
	if wake == boottime.Never {
		return limit
	}
	return min(limit, max(shortestNap, wake.Sub(e.clock.Now())))
}

// perform does what the machine decided. Requests run beside the loop, so that
// a deadline passes even while a call hangs.
func (e *Elector) perform(ctx context.Context, a action, lead Lead) {
	if do, ok := e.stores.request(a); ok {
		e.call(ctx, a, do)
		return
	}
	switch a.kind {
	case doStart:
		e.start(ctx, a.term, lead)
	case doEmit:
		e.emit(a.event)
	default:
		e.tenure.obey(a)
	}
}

// call runs one request with its deadline and hands its answer to the loop.
func (e *Elector) call(ctx context.Context, a action, do func(context.Context, *input)) {
	go func() {
		ctx, cancel := context.WithTimeout(ctx, a.timeout)
		defer cancel()
		in := input{kind: inResult, op: a.op}
		do(ctx, &in)
		select {
		case e.inputs <- in:
		case <-e.stopped: // given up long ago
		}
	}()
}

// start runs the work of a new term.
func (e *Elector) start(ctx context.Context, t termState, lead Lead) {
	n := &tenure{}
	ctx = n.begin(ctx, t, e.clock, func(kind inputKind) {
		select {
		case e.inputs <- input{kind: kind, term: t.id}:
		case <-e.stopped:
		}
	})
	e.tenure = n
	go func() { e.inputs <- n.over(lead(ctx, n.term)) }()
}

func (e *Elector) emit(ev Event) {
	for _, f := range e.observers {
		f(ev)
	}
}

// Stuck returns an error if the election's loop has not turned for a while:
// then this process neither leads nor competes, and only a restart helps. It
// says nothing about leadership or the store.
func (e *Elector) Stuck() error {
	beat := e.beat.Load()
	if beat == 0 {
		return nil // not running yet
	}
	// A standby sleeps for a whole poll interval, which may be long.
	limit := 30*time.Second + e.cfg.PollInterval
	if idle := e.clock.Now().Sub(Instant(beat)); idle > limit && e.ran.Load() {
		return fmt.Errorf("the election loop has not turned for %v", idle.Round(time.Second))
	}
	return nil
}
