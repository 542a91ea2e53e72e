package supervise_test

import (
	"context"
	"io"
	"log/slog"
	"slices"
	"syscall"
	"testing"

	"github.com/sf2loki/sf2loki-ha/coordinator"
	"github.com/sf2loki/sf2loki-ha/internal/boottime"
	"github.com/sf2loki/sf2loki-ha/internal/guard/guardtest"
	"github.com/sf2loki/sf2loki-ha/internal/supervise"
)

// One supervisor serves one term after the other. Nothing of a run is left in
// it, however that run ended: the next one starts, is told and ends like the
// first.
func TestASupervisorIsAsGoodInItsLastRunAsInItsFirst(t *testing.T) {
	var started []int
	var stopping []error
	var ended []supervise.Kind
	pids := make(chan int, 1)
	s, err := supervise.New(supervise.Config{
		Command: guardtest.Program("act", tempFile(t)), StopGrace: margin, KillMargin: margin, GuardCommand: guardtest.GuardCommand(),
		Logger: slog.New(slog.NewTextHandler(io.Discard, nil)),
		Started: func(pid int) {
			started = append(started, pid)
			pids <- pid
		},
		Stopping: func(cause error) { stopping = append(stopping, cause) },
		Ended:    func(o supervise.Outcome) { ended = append(ended, o.Kind) },
	})
	if err != nil {
		t.Fatal(err)
	}
	ways := []struct {
		kind supervise.Kind
		end  func(l *lease, cancel context.CancelCauseFunc, pid int)
		told int
	}{
		{supervise.KilledOnLoss, func(_ *lease, cancel context.CancelCauseFunc, _ int) { cancel(coordinator.ErrLost) }, 1},
		{supervise.Stopped, func(_ *lease, cancel context.CancelCauseFunc, _ int) { cancel(coordinator.ErrStopping) }, 1},
		{supervise.KilledAtDeadline, func(l *lease, _ context.CancelCauseFunc, _ int) { l.move(boottime.Now()) }, 0},
		{supervise.ExitedItself, func(_ *lease, _ context.CancelCauseFunc, pid int) { _ = syscall.Kill(pid, syscall.SIGKILL) }, 0},
	}
	var want []supervise.Kind
	told := 0
	for range 2 {
		for _, way := range ways {
			want, told = append(want, way.kind), told+way.told
			ctx, cancel := context.WithCancelCause(t.Context())
			l := newLease(far())
			go func() { way.end(l, cancel, <-pids) }()
			out, err := s.Run(ctx, l)
			cancel(nil)
			if err != nil || out.Kind != way.kind || out.PID != started[len(started)-1] {
				t.Errorf("run %d: %+v, %v; want %v of process %d", len(want), out, err, way.kind, started[len(started)-1])
			}
			noChildren(t)
		}
	}
	if !slices.Equal(ended, want) || len(started) != len(want) || len(stopping) != told {
		t.Errorf("started %d, told %d, ended %v; want %d, %d and %v", len(started), len(stopping), ended, len(want), told, want)
	}
}
