package checkpoint

import (
	"context"
	"time"
)

// Clock paces the requests of a Store. No decision depends on it: it only says
// how long to wait before the next one.
type Clock interface {
	Now() time.Time
	// Sleep waits for d or for the end of ctx, whose cause it returns.
	Sleep(ctx context.Context, d time.Duration) error
}

// SystemClock is the clock of this machine.
type SystemClock struct{}

// Now returns the time, with its monotonic part.
func (SystemClock) Now() time.Time { return time.Now() }

// Sleep implements Clock.
func (SystemClock) Sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
	return context.Cause(ctx)
}
