package statecmd

import (
	"context"
	"errors"
	"time"

	"github.com/sf2loki/sf2loki-ha/cas"
	"github.com/sf2loki/sf2loki-ha/coordinator"
)

const (
	// leaseTimeout bounds one request about a lease.
	leaseTimeout = 5 * time.Second
	// leaseAttempts is how often a read without an answer is tried.
	leaseAttempts = 3
)

// lease is one lease that is watched.
type lease struct {
	name     string
	identity string
	store    coordinator.LeaseStore
	requests coordinator.RequestStore // nil: nobody can ask for a hold
	ttl      time.Duration
	err      error // why it could not be opened

	// seen is the state read last, since when it has been there on our own clock.
	seen    string
	since   time.Time
	held    bool
	renewed bool
}

// look reads the lease, and the request object if the lease is not free. Time is
// counted from after the receipt of the first read that showed the state.
func (l *lease) look(ctx context.Context) Sight {
	s := Sight{Lease: l.name, Identity: l.identity, TTL: l.ttl, State: Unreadable, Err: l.err}
	if l.err != nil {
		return s
	}
	read, err := retried(ctx, l.store.Read)
	now := time.Now()
	state := "version " + string(read.Version)
	switch {
	case errors.Is(err, cas.NotFound):
		s.State, state = Absent, "absent"
	case err != nil:
		s.Err = err
		return s
	case read.Corrupt != nil:
		s.State, s.Err = Damaged, read.Corrupt
	case read.Record.State == coordinator.Released && !read.Record.Foreign():
		s.State, s.Record = Released, read.Record
	default:
		s.State, s.Record = Held, read.Record
		s.Age = max(0, now.Sub(read.Record.RenewedAt))
	}
	if l.seen != state {
		l.renewed = l.renewed || l.held && s.State == Held
		l.seen, l.since, l.held = state, now, s.State == Held
	}
	s.Unchanged, s.Renewed = now.Sub(l.since), l.renewed
	if s.State != Released && l.requests != nil {
		l.lookForHold(ctx, &s)
	}
	return s
}

// lookForHold reads whether somebody has asked that nobody leads.
func (l *lease) lookForHold(ctx context.Context, s *Sight) {
	asked, err := retried(ctx, l.requests.ReadRequest)
	if err != nil {
		s.HoldErr = err
		return
	}
	if h := asked.Request.Hold; h != nil && h.For > asked.Age {
		s.Hold, s.HoldLeft = h, h.For-asked.Age
	}
	s.HoldErr = asked.Problem
}

// retried tries a read again that got no answer.
func retried[T any](ctx context.Context, read func(context.Context) (T, error)) (T, error) {
	for attempt := 1; ; attempt++ {
		call, cancel := context.WithTimeout(ctx, leaseTimeout)
		v, err := read(call)
		cancel()
		if err == nil || cas.ClassOf(err).Definite() || attempt == leaseAttempts {
			return v, err
		}
		if err := pause(ctx, time.Second/2); err != nil {
			return v, err
		}
	}
}

// pause waits for d or for the end of the context.
func pause(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
