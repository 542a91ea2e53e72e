package supervise_test

import (
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/sf2loki/sf2loki-ha/coordinator"
	"github.com/sf2loki/sf2loki-ha/internal/guard/guardtest"
	"github.com/sf2loki/sf2loki-ha/internal/supervise"
)

var (
	errLost    = coordinator.ErrLost
	errExpired = coordinator.ErrExpired
)

func TestTwentyTermsLeakNothing(t *testing.T) {
	term := func(t *testing.T, i int) {
		w := start(t, far(), guardtest.Program("family", t.TempDir()))
		child := w.ready(4)["family"]
		switch i % 4 {
		case 0:
			w.cancel(coordinator.ErrStopping)
			w.expect(supervise.Stopped)
		case 1:
			w.cancel(coordinator.ErrLost)
			w.expect(supervise.KilledOnLoss)
		case 2:
			if err := unix.Kill(child, unix.SIGKILL); err != nil {
				t.Fatal(err)
			}
			w.expect(supervise.ExitedItself)
		case 3:
			if err := unix.Kill(parent(t, child), unix.SIGKILL); err != nil {
				t.Fatal(err)
			}
			w.expect(supervise.GuardFailed)
		}
	}
	// The collector would close forgotten files for us.
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	// What the runtime opens once (epoll, signal handling) is open after this.
	t.Run("warm up", func(t *testing.T) { term(t, 0) })
	before := count(t)
	for i := range 20 {
		t.Run(strconv.Itoa(i), func(t *testing.T) {
			term(t, i)
			noChildren(t)
		})
	}
	guardtest.Eventually(t, "as many descriptors and goroutines as before", func() bool {
		after := count(t)
		return after.fds <= before.fds && after.goroutines <= before.goroutines
	})
}

type counts struct{ fds, goroutines int }

func count(t *testing.T) counts {
	t.Helper()
	fds, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return counts{len(fds), runtime.NumGoroutine()}
}
