//go:build !linux

package boottime

import "time"

var start = time.Now()

// Now is the larger of the monotonic and the wall-clock time since the process
// started: the larger one ends leadership earlier, which is the safe side.
func Now() Instant {
	now := time.Now()
	mono := now.Sub(start)
	wall := now.Round(0).Sub(start.Round(0))
	return Instant(max(mono, wall))
}
