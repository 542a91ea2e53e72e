package boottime

import "golang.org/x/sys/unix"

// Now reads CLOCK_BOOTTIME. The call cannot fail on a kernel since 2.6.39; a
// failure would mean that nothing can be timed safely, so it panics.
func Now() Instant {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &ts); err != nil {
		panic("boottime: clock_gettime(CLOCK_BOOTTIME): " + err.Error())
	}
	return Instant(ts.Nano())
}
