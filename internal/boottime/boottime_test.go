package boottime

import (
	"math"
	"testing"
	"time"
)

// An instant far ahead stays far ahead: an overflow would make it one that has
// passed, and end a term that has no end.
func TestNoSumOfAnInstantTurnsIntoThePast(t *testing.T) {
	for _, c := range []struct {
		at   Instant
		d    time.Duration
		want Instant
	}{
		{0, time.Second, Instant(time.Second)},
		{Instant(time.Hour), -time.Second, Instant(time.Hour - time.Second)},
		{Never, time.Second, Never},
		{Never, math.MaxInt64, Never},
		{Instant(math.MaxInt64 - 5), 5, Never},
		{Instant(math.MaxInt64 - 5), 6, Never},
		{Instant(time.Hour), math.MaxInt64, Never},
	} {
		if got := c.at.Add(c.d); got != c.want {
			t.Errorf("%d.Add(%v) = %d, want %d", c.at, c.d, got, c.want)
		}
	}
	if got := Instant(time.Hour).Sub(Instant(time.Minute)); got != 59*time.Minute {
		t.Errorf("Sub: %v", got)
	}
}
