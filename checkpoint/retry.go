package checkpoint

import (
	"context"
	"fmt"
	"time"

	"github.com/sf2loki/sf2loki-ha/cas"
)

const (
	firstBackoff = 50 * time.Millisecond
	maxBackoff   = 2 * time.Second
)

// rounds counts the rounds of one call. A round is a read, or a write, or both.
type rounds struct {
	max    int
	clock  Clock
	jitter func() float64
	done   int
	last   error
	// open is true from the first write without a definite answer on: if the
	// call gives up, its values may be in the document all the same.
	open bool
}

// next waits before every round but the first. It returns an error once the
// context has ended or the rounds are used up.
func (r *rounds) next(ctx context.Context) error {
	if r.done > 0 {
		if r.done >= r.max {
			return r.giveUp(fmt.Errorf("gave up after %d attempts", r.done))
		}
		// Jitter: two processes that met once must not meet again.
		limit := min(maxBackoff, firstBackoff<<min(r.done-1, 16))
		if err := r.clock.Sleep(ctx, limit/2+time.Duration(r.jitter()*float64(limit/2))); err != nil {
			return r.giveUp(err)
		}
	} else if err := context.Cause(ctx); err != nil {
		return r.giveUp(err)
	}
	r.done++
	return nil
}

// retry notes the error of a round and reports whether another round may help:
// only if the answer was not definite, or if the document changed.
func (r *rounds) retry(err error) bool {
	r.last = err
	switch cas.ClassOf(err) {
	case cas.Ambiguous, cas.Contended:
		return true
	case cas.Conflict:
		return true
	}
	return false
}

// giveUp names why a call ended, and the last answer of the store.
func (r *rounds) giveUp(why error) error {
	if r.open {
		why = fmt.Errorf("%w, the values may have been written", why)
	}
	if r.last == nil {
		return why
	}
	return fmt.Errorf("%w; last answer: %w", why, r.last)
}

// rounds of one call on this document.
func (s *Store) rounds() rounds {
	return rounds{max: s.attempts, clock: s.clock, jitter: s.jitter}
}
