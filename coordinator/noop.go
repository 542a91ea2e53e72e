package coordinator

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"
)

// Noop is the coordinator of a single instance: it leads at once, for ever and
// without a lease. Nothing keeps a second instance from doing the same.
type Noop struct {
	clock     Clock
	observers []func(Event)
	stop      chan string
	ran       atomic.Bool

	mu   sync.Mutex
	held *Term
}

var _ Coordinator = (*Noop)(nil)

// NewNoop returns a coordinator that always leads, with epoch 1 and a term
// without a deadline.
func NewNoop(observers ...func(Event)) *Noop {
	return &Noop{clock: SystemClock{}, observers: observers, stop: make(chan string, 1)}
}

// Run implements Coordinator: it calls lead, again after a pause if lead
// returns, until ctx ends.
func (n *Noop) Run(ctx context.Context, lead Lead) error {
	if n.ran.Swap(true) {
		return errors.New("coordinator: Run was called before; make a new Noop")
	}
	const pause = time.Second
	for ctx.Err() == nil {
		n.term(ctx, lead)
		select {
		case <-ctx.Done():
		case <-time.After(pause):
		}
	}
	n.emit(Event{Kind: Finished})
	return nil
}

// term runs one call of lead.
func (n *Noop) term(ctx context.Context, lead Lead) {
	t := newTerm(1, randomID(), Never, Never, n.clock)
	leadCtx, cancel := context.WithCancelCause(withTerm(context.WithoutCancel(ctx), t))
	defer cancel(ErrStopping)
	n.hold(t)
	defer n.hold(nil)
	n.emit(Event{Kind: Acquired, Epoch: t.epoch, Term: t.id})

	ended := make(chan error, 1)
	go func() { ended <- lead(leadCtx, t) }()
	select {
	case err := <-ended:
		n.emit(Event{Kind: WorkEnded, Epoch: t.epoch, Term: t.id, Err: err, Reason: "work ended"})
		return
	case reason := <-n.stop:
		cancel(fmt.Errorf("%w: %s", ErrStopping, reason))
	case <-ctx.Done():
		cancel(fmt.Errorf("%w: shutdown", ErrStopping))
	}
	n.emit(Event{Kind: SteppingDown, Epoch: t.epoch, Term: t.id})
	<-ended
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
