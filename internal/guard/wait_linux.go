package guard

import (
	"errors"
	"fmt"
	"time"

	"golang.org/x/sys/unix"

	"github.com/sf2loki/sf2loki-ha/internal/boottime"
)

// A bell wakes the loop out of poll: a child died, or the fork is done.
type bell struct{ fd int }

func newBell() (bell, error) {
	fd, err := unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	if err != nil {
		return bell{}, fmt.Errorf("eventfd: %w", err)
	}
	return bell{fd}, nil
}

func (b bell) ring() {
	one := [8]byte{1} // a full counter rings already; byte order is irrelevant
	_, _ = unix.Write(b.fd, one[:])
}

func (b bell) silence() {
	var count [8]byte
	_, _ = unix.Read(b.fd, count[:])
}

// An alarm is a timer of the kernel on CLOCK_BOOTTIME. It fires while the
// machine resumes from a suspend that covered the instant; the loop's own look
// at the clock does not depend on it.
type alarm struct{ fd int }

func newAlarm() (alarm, error) {
	fd, err := unix.TimerfdCreate(unix.CLOCK_BOOTTIME, unix.TFD_CLOEXEC|unix.TFD_NONBLOCK)
	if err != nil {
		return alarm{}, fmt.Errorf("timerfd on CLOCK_BOOTTIME: %w", err)
	}
	return alarm{fd}, nil
}

// set arms the timer for an instant, or disarms it for [boottime.Never].
func (a alarm) set(at boottime.Instant) error {
	var spec unix.ItimerSpec
	if at != boottime.Never {
		// Zero would disarm; the past fires at once.
		spec.Value = unix.NsecToTimespec(max(int64(at), 1))
	}
	if err := unix.TimerfdSettime(a.fd, unix.TFD_TIMER_ABSTIME, &spec, nil); err != nil {
		return fmt.Errorf("timerfd: %w", err)
	}
	return nil
}

// wait sleeps until one of the descriptors is readable or d is over, at least
// one millisecond.
func wait(d time.Duration, fds ...int) {
	set := make([]unix.PollFd, len(fds))
	for i, fd := range fds {
		set[i] = unix.PollFd{Fd: int32(fd), Events: unix.POLLIN}
	}
	ms := max(1, int((d+time.Millisecond-1)/time.Millisecond))
	// Whatever poll answers, the loop looks at everything anyway. An error
	// other than EINTR must not turn it into a busy loop with a blind eye, but
	// none is possible with descriptors that are ours and open.
	_, _ = unix.Poll(set, ms)
}

// readSome reads what is there. ok is false at the end of the stream and on any
// error, which is the same to us.
func readSome(fd int, buf []byte) (n int, ok bool) {
	for {
		n, err := unix.Read(fd, buf)
		switch {
		case err == nil:
			return n, n > 0
		case errors.Is(err, unix.EINTR):
		case errors.Is(err, unix.EAGAIN):
			return 0, true
		default:
			return 0, false
		}
	}
}

// writeAll writes one message to a pipe that does not block. A message that
// does not fit is dropped: the supervisor misses an answer and kills the tree,
// the safe side; waiting for it would stop our own clock.
func writeAll(fd int, message []byte) {
	for {
		if _, err := unix.Write(fd, message); !errors.Is(err, unix.EINTR) {
			return
		}
	}
}
