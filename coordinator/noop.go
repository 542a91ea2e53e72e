package coordinator

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sf2loki/sf2loki-ha/cas"
)

// Noop is the coordinator of a single instance: it leads at once, for ever and
// without a lease. Nothing keeps a second instance from doing the same; with a
// checkpoint document the later one seals the earlier one out.
type Noop struct {
	clock     Clock
	fence     FenceReader
	observers []func(Event)
	stop      chan string
	ran       atomic.Bool

	mu   sync.Mutex
	held *Term
}

var _ Coordinator = (*Noop)(nil)

// NewNoop returns a coordinator that always leads, in terms without a deadline.
// Epochs follow the fence, so that a restart outranks what it replaces; a nil
// fence makes every epoch 1.
func NewNoop(fence FenceReader, observers ...func(Event)) *Noop {
	return &Noop{clock: SystemClock{}, fence: fence, observers: observers, stop: make(chan string, 1)}
}

// noopPause and noopMostPause bound the wait before lead is called again: it
// doubles with each failure in a row, so that work that cannot start does not
// fill the log.
const (
	noopPause     = time.Second
	noopMostPause = time.Minute
)

// Run implements Coordinator: it calls lead, again after a pause if lead
// returns, until ctx ends.
func (n *Noop) Run(ctx context.Context, lead Lead) error {
	if n.ran.Swap(true) {
		return errors.New("coordinator: Run was called before; make a new Noop")
	}
	for failures := 0; ctx.Err() == nil; {
		if n.term(ctx, lead) {
			failures = 0
		} else {
			failures++
		}
		select {
		case <-ctx.Done():
		case <-time.After(min(noopMostPause, noopPause<<min(failures, 6))):
		}
	}
	n.emit(Event{Kind: Finished})
	return nil
}

// term runs one call of lead. It reports whether that went well: lead was asked
// to end, returned no error, or had run for a minute.
func (n *Noop) term(ctx context.Context, lead Lead) bool {
	epoch, err := n.epoch(ctx)
	if err != nil {
		n.emit(Event{Kind: StoreFailed, Op: "fence", Class: cas.ClassOf(err), Err: err})
		return false
	}
	select {
	case <-n.stop: // asked for while no work ran: nothing to step down from
	default:
	}
	t := newTerm(epoch, randomID(), Never, Never, n.clock)
	leadCtx, cancel := context.WithCancelCause(withTerm(context.WithoutCancel(ctx), t))
	defer cancel(ErrStopping)
	defer t.end(ErrStopping) // nothing acts under it once lead has returned
	n.hold(t)
	defer n.hold(nil)
	n.emit(Event{Kind: Acquired, Epoch: t.epoch, Term: t.id})

	begun := n.clock.Now()
	ended := make(chan error, 1)
	go func() { ended <- lead(leadCtx, t) }()
	select {
	case err := <-ended:
		n.emit(Event{Kind: WorkEnded, Epoch: t.epoch, Term: t.id, Err: err, Reason: "work ended"})
		return err == nil || n.clock.Now().Sub(begun) >= time.Minute
	case reason := <-n.stop:
		cancel(fmt.Errorf("%w: %s", ErrStopping, reason))
	case <-ctx.Done():
		cancel(fmt.Errorf("%w: shutdown", ErrStopping))
	}
	n.emit(Event{Kind: SteppingDown, Epoch: t.epoch, Term: t.id})
	<-ended
	return true
}

// epoch is one above the fence.
func (n *Noop) epoch(ctx context.Context) (int64, error) {
	if n.fence == nil {
		return 1, nil
	}
	const limit = 10 * time.Second
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	f, err := floor(ctx, n.fence)
	n.emit(Event{Kind: Requested, Op: "fence", Class: cas.ClassOf(err), Err: err})
	return f.Epoch + 1, err
}

func (n *Noop) hold(t *Term) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.held = t
}

func (n *Noop) emit(e Event) {
	e.At = time.Now()
	for _, f := range n.observers {
		f(e)
	}
}

// Status implements Coordinator.
func (n *Noop) Status() Status {
	n.mu.Lock()
	defer n.mu.Unlock()
	return Status{Lease: "none"}.withTerm(n.held, n.clock.Now())
}

// StepDown ends the work once; it is started again.
func (n *Noop) StepDown(reason string) {
	select {
	case n.stop <- reason:
	default:
	}
}
