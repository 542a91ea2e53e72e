package coordinator

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/sf2loki/sf2loki-ha/internal/boottime"
)

// Clock is the time leadership is measured on. It must tick while the machine
// is suspended and must not be steppable.
type Clock interface {
	Now() Instant
}

// SystemClock is CLOCK_BOOTTIME on Linux; see internal/boottime for others.
type SystemClock struct{}

// Now reads the clock.
func (SystemClock) Now() Instant { return boottime.Now() }

// Term is one acquisition of the lease, as the work sees it. All methods are
// safe for concurrent use and take time into account when they are called:
// there is no stored "I am leader".
type Term struct {
	epoch int64
	id    string
	clock Clock

	mu       sync.Mutex
	deadline Instant
	killAt   Instant
	told     bool // the work has been told to end
	failures int
	report   func(inputKind) // nil: nobody wants to know
	ended    error
	changed  chan struct{}
}

func newTerm(epoch int64, id string, deadline, killAt Instant, clock Clock) *Term {
	return &Term{epoch: epoch, id: id, clock: clock, deadline: deadline, killAt: killAt, changed: make(chan struct{})}
}

// Epoch is the fencing token: it grows with every acquisition of the lease.
func (t *Term) Epoch() int64 { return t.epoch }

// ID is random per acquisition. (Epoch, ID) is the term: two terms may by
// accident carry one epoch.
func (t *Term) ID() string { return t.id }

// Deadline is the instant, on this machine's boot-time clock, from which
// another replica may act. A renewal moves it.
func (t *Term) Deadline() Instant {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.deadline
}

// Remaining is the time until Deadline; negative once it has passed.
func (t *Term) Remaining() time.Duration { return t.Deadline().Sub(t.clock.Now()) }

// KillAt is the instant by which the work must be gone: a margin before the
// deadline, or earlier once a stop was requested or the lease was lost.
func (t *Term) KillAt() Instant {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.killAt
}

// Changed is closed when KillAt moved. Call it again for the next move, before
// reading KillAt.
func (t *Term) Changed() <-chan struct{} {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.changed
}

// CheckFence returns nil if the work may act now, else why not. Call it
// immediately before every protected act: a process may have been frozen since
// the last check. It is not a fence by itself; the store's condition is.
func (t *Term) CheckFence() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.ended != nil {
		return fmt.Errorf("term %d: %w", t.epoch, t.ended)
	}
	if over := t.clock.Now().Sub(t.killAt); over >= 0 {
		return fmt.Errorf("term %d: %w: its time ended %v ago", t.epoch, ErrExpired, over)
	}
	return nil
}

// Failures is how often the work failed in a row before now, on all replicas of
// the lease together: the next start should wait accordingly.
func (t *Term) Failures() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.failures
}

// Failed notes that the work failed and will be started again within this term.
// The next renewal puts it into the record, so that crash back-off spans the
// replicas: return an error that wraps [ErrCrashLoop] to let another one try.
func (t *Term) Failed() { t.note(inWorkFailed, func(n int) int { return min(n+1, maxFailures) }) }

// Settled notes that the work has run well for a while: what failed before no
// longer counts.
func (t *Term) Settled() { t.note(inWorkSettled, func(int) int { return 0 }) }

func (t *Term) note(kind inputKind, count func(int) int) {
	t.mu.Lock()
	t.failures = count(t.failures)
	report := t.report
	t.mu.Unlock()
	if report != nil {
		report(kind)
	}
}

// move sets new instants and wakes whoever watches them. A term that ended by
// loss never gets time back.
func (t *Term) move(deadline, killAt Instant) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.killAt == killAt && t.deadline == deadline {
		return
	}
	t.deadline, t.killAt = deadline, killAt
	close(t.changed)
	t.changed = make(chan struct{})
}

// tell notes that the work has been told to end.
func (t *Term) tell() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.told = true
}

// draining reports whether the work has been told to end.
func (t *Term) draining() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.told
}

// end makes CheckFence fail from now on, whatever the clock says.
func (t *Term) end(cause error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.ended == nil {
		t.ended = cause
	}
}

type termKey struct{}

// withTerm lets work find its term in its context.
func withTerm(ctx context.Context, t *Term) context.Context {
	return context.WithValue(ctx, termKey{}, t)
}

// FromContext returns the term that a context given to lead belongs to, or nil.
func FromContext(ctx context.Context) *Term {
	t, _ := ctx.Value(termKey{}).(*Term)
	return t
}
