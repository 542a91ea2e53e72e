package boottime

import "time"

// Instant is a point on this machine's clock, in nanoseconds.
type Instant int64

// Never is later than every instant: the deadline of work that has none.
const Never = Instant(1<<63 - 1)

// Add returns the instant d later, clamped at Never: an overflow must not turn
// a far deadline into one that has passed.
func (i Instant) Add(d time.Duration) Instant {
	sum := i + Instant(d)
	if d > 0 && sum < i {
		return Never
	}
	return sum
}

// Sub returns the time from j to i.
func (i Instant) Sub(j Instant) time.Duration { return time.Duration(i - j) }
