package supervise_test

import (
	"syscall"
	"testing"
	"time"

	"github.com/sf2loki/sf2loki-ha/coordinator"
	"github.com/sf2loki/sf2loki-ha/internal/boottime"
	"github.com/sf2loki/sf2loki-ha/internal/guard/guardtest"
	"github.com/sf2loki/sf2loki-ha/internal/supervise"
)

// signalled runs a command that this channel reaches.
func signalled(t *testing.T, grace time.Duration, command []string) (*work, chan syscall.Signal) {
	t.Helper()
	signals := make(chan syscall.Signal, 8)
	signals <- syscall.SIGUSR1 // for whatever ran before
	w := start(t, far(), command, func(c *supervise.Config) { c.Signals, c.StopGrace = signals, grace })
	w.ready(1)
	return w, signals
}

func TestSignalsOfTheUserReachTheCommandInOrderAndEndNothing(t *testing.T) {
	w, signals := signalled(t, time.Minute, guardtest.Program("tidy", tempFile(t), "0s"))
	for _, sig := range []syscall.Signal{syscall.SIGHUP, syscall.SIGUSR1, syscall.SIGUSR2} {
		signals <- sig
		if line, _ := w.out.Line(t); line != "got "+sig.String() {
			t.Errorf("the command says %q, want that it got %v", line, sig)
		}
	}
	w.cancel(coordinator.ErrStopping)
	w.expect(supervise.Stopped)
}

// SIGTERM is the business of the context: what asks for a stop during a stop only
// shortens it.
func TestASecondSIGTERMShortensTheGraceAndAThirdEndsIt(t *testing.T) {
	for name, c := range map[string]struct {
		grace   time.Duration
		signals int
		most    time.Duration
		least   time.Duration
	}{
		"one":  {300 * time.Millisecond, 1, 300*time.Millisecond + margin, 200 * time.Millisecond},
		"two":  {time.Minute, 2, margin, 0},
		"many": {time.Minute, 5, margin, 0},
	} {
		t.Run(name, func(t *testing.T) {
			file := tempFile(t)
			w, signals := signalled(t, c.grace, guardtest.Program("stubborn", file))
			// Before the stop they mean nothing.
			signals <- syscall.SIGTERM
			signals <- syscall.SIGHUP
			guardtest.Eventually(t, "signals that are taken", func() bool { return len(signals) == 0 })
			w.cancel(coordinator.ErrStopping)
			guardtest.Eventually(t, "a stop", func() bool {
				w.mu.Lock()
				defer w.mu.Unlock()
				return len(w.stopping) > 0
			})
			begin := boottime.Now()
			for range c.signals {
				signals <- syscall.SIGTERM
			}
			r := w.expect(supervise.Stopped)
			if r.outcome.Signal != syscall.SIGKILL || !r.outcome.Forced {
				t.Errorf("outcome %+v, want that it was forced", r.outcome)
			}
			last := guardtest.LastAct(t, file)
			within(t, "the command", last, begin.Add(c.most))
			if c.least > 0 && last < begin.Add(c.least) {
				t.Errorf("killed after %v", last.Sub(begin))
			}
		})
	}
}
