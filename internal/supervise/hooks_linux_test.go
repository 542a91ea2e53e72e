package supervise_test

import (
	"sync"
	"testing"

	"github.com/sf2loki/sf2loki-ha/coordinator"
	"github.com/sf2loki/sf2loki-ha/internal/guard/guardtest"
	"github.com/sf2loki/sf2loki-ha/internal/supervise"
)

func TestNotReadyComesBeforeTheSignal(t *testing.T) {
	file := tempFile(t)
	called, held := make(chan error, 1), make(chan struct{})
	w := start(t, far(), guardtest.Program("tidy", file, "1ms"), func(c *supervise.Config) {
		c.Stopping = func(cause error) {
			called <- cause
			<-held
		}
	})
	release := sync.OnceFunc(func() { close(held) })
	t.Cleanup(release) // before the run is waited for, if the test fails
	w.ready(1)
	w.cancel(coordinator.ErrStopping)
	if cause := <-called; cause != coordinator.ErrStopping {
		t.Errorf("called with %v", cause)
	}
	// As long as the hook has not returned the child works undisturbed.
	before := len(guardtest.Acts(t, file))
	guardtest.Eventually(t, "ten more acts", func() bool { return len(guardtest.Acts(t, file)) > before+10 })
	release()
	w.expect(supervise.Stopped)
}

func TestHooksTellTheLifeOfTheWork(t *testing.T) {
	var pid int
	var ended []supervise.Outcome
	w := start(t, far(), guardtest.Program("exit", "5"), func(c *supervise.Config) {
		c.Started = func(p int) { pid = p }
		c.Ended = func(o supervise.Outcome) { ended = append(ended, o) }
	})
	r := w.expect(supervise.ExitedItself)
	if pid == 0 || pid != r.outcome.PID {
		t.Errorf("started as %d, ended as %d", pid, r.outcome.PID)
	}
	if len(ended) != 1 || ended[0] != r.outcome {
		t.Errorf("Ended was called with %+v, want %+v once", ended, r.outcome)
	}
	if len(w.stopping) != 0 {
		t.Errorf("Stopping was called with %v though nobody stopped it", w.stopping)
	}
}
