package supervise_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/sf2loki/sf2loki-ha/coordinator"
	"github.com/sf2loki/sf2loki-ha/internal/boottime"
	"github.com/sf2loki/sf2loki-ha/internal/guard/guardtest"
	"github.com/sf2loki/sf2loki-ha/internal/supervise"
)

// *coordinator.Term is a lease.
var _ supervise.Lease = (*coordinator.Term)(nil)

func TestChildEndsOnTERM(t *testing.T) {
	for _, cause := range []error{coordinator.ErrStopping, coordinator.ErrExpired, context.Canceled} {
		t.Run(cause.Error(), func(t *testing.T) {
			w := start(t, far(), guardtest.Program("act", tempFile(t)))
			w.ready(1)
			w.cancel(cause)
			r := w.expect(supervise.Stopped)
			if r.outcome.Forced || r.outcome.Signal != syscall.SIGTERM {
				t.Errorf("outcome %+v, want the end by SIGTERM", r.outcome)
			}
			if !slices.Equal(w.stopping, []error{cause}) {
				t.Errorf("Stopping was called with %v, want %v once", w.stopping, cause)
			}
		})
	}
}

func TestChildCleansUpInPeaceWithinItsGrace(t *testing.T) {
	w := start(t, far(), guardtest.Program("tidy", tempFile(t), "200ms"))
	w.ready(1)
	w.cancel(coordinator.ErrStopping)
	if line, _ := w.out.Line(t); line != "term terminated" {
		t.Errorf("the child says %q, want one SIGTERM", line)
	}
	// Not a second SIGTERM, and not the end.
	if line, _ := w.out.Line(t); line != "clean" {
		t.Errorf("the child says %q, want %q", line, "clean")
	}
	r := w.expect(supervise.Stopped)
	if !r.outcome.Exited || r.outcome.Code != 0 || r.outcome.Signal != 0 || r.outcome.Forced {
		t.Errorf("outcome %+v, want exit code 0", r.outcome)
	}
	if r.outcome.Stopping < 200*time.Millisecond || r.outcome.Ran < r.outcome.Stopping {
		t.Errorf("stopping took %v of %v", r.outcome.Stopping, r.outcome.Ran)
	}
}

func TestChildThatIgnoresTERMDiesAtTheEndOfItsGrace(t *testing.T) {
	const grace = 300 * time.Millisecond
	for name, tt := range map[string]struct {
		cause error
		end   func(w *work, stop boottime.Instant) boottime.Instant
		kind  supervise.Kind
	}{
		"lease expired: stop grace": {coordinator.ErrExpired,
			func(w *work, stop boottime.Instant) boottime.Instant { return stop.Add(grace) }, supervise.Stopped},
		"lease expired: the instant comes first": {coordinator.ErrExpired,
			func(w *work, stop boottime.Instant) boottime.Instant {
				w.lease.move(stop.Add(100 * time.Millisecond))
				return stop.Add(100 * time.Millisecond)
			}, supervise.KilledAtDeadline},
		"stop requested: the instant alone": {coordinator.ErrStopping,
			func(w *work, stop boottime.Instant) boottime.Instant {
				w.lease.move(stop.Add(2 * grace))
				return stop.Add(2 * grace)
			}, supervise.Stopped},
		"stop requested: the instant moves while it drains": {coordinator.ErrStopping,
			func(w *work, stop boottime.Instant) boottime.Instant {
				w.lease.move(stop.Add(grace))
				w.lease.move(stop.Add(2 * grace))
				return stop.Add(2 * grace)
			}, supervise.Stopped},
	} {
		t.Run(name, func(t *testing.T) {
			file := tempFile(t)
			w := start(t, far(), guardtest.Program("stubborn", file))
			w.ready(1)
			stop := boottime.Now()
			w.cancel(tt.cause)
			end := tt.end(w, stop)
			r := w.expect(tt.kind)
			if r.outcome.Signal != syscall.SIGKILL {
				t.Errorf("outcome %+v, want SIGKILL", r.outcome)
			}
			if tt.kind == supervise.Stopped && !r.outcome.Forced {
				t.Errorf("outcome %+v, want forced", r.outcome)
			}
			last := guardtest.LastAct(t, file)
			within(t, "the child", last, end.Add(margin))
			if last < end.Add(-100*time.Millisecond) {
				t.Errorf("the child was killed %v before its time", end.Sub(last))
			}
		})
	}
}

func TestLossKillsWithin100msWithoutGrace(t *testing.T) {
	dir := t.TempDir()
	w := start(t, far(), guardtest.Program("family", dir))
	w.ready(4)
	lost := boottime.Now()
	w.cancel(coordinator.ErrLost)
	r := w.expect(supervise.KilledOnLoss)
	if r.outcome.Signal != syscall.SIGKILL || r.err != nil {
		t.Errorf("outcome %+v, error %v; want SIGKILL and none", r.outcome, r.err)
	}
	for _, file := range guardtest.Members(dir) {
		within(t, file, guardtest.LastAct(t, file), lost.Add(100*time.Millisecond))
	}
}

func TestLossThatMovesTheInstantFirstIsALoss(t *testing.T) {
	w := start(t, far(), guardtest.Program("act", tempFile(t)))
	w.ready(1)
	w.lease.move(boottime.Now())
	w.cancel(coordinator.ErrLost)
	w.expect(supervise.KilledOnLoss)
}

func TestGrandchildrenAreDeadWhenRunReturns(t *testing.T) {
	// One grandchild in the group, one with its own session, one orphaned; each
	// ignores SIGTERM and holds stdout. The child itself obeys.
	dir := t.TempDir()
	w := start(t, far(), guardtest.Program("family", dir))
	w.ready(4)
	w.cancel(coordinator.ErrStopping)
	r := w.expect(supervise.Stopped)
	if r.outcome.Signal != syscall.SIGTERM || r.outcome.Forced {
		t.Errorf("outcome %+v, want the end by SIGTERM", r.outcome)
	}
	for _, file := range guardtest.Members(dir) {
		within(t, file, guardtest.LastAct(t, file), r.at)
	}
}

func TestWhoEndedTheRunIsRecorded(t *testing.T) {
	type check func(t *testing.T, r result)
	none := func(*testing.T, result) {}
	code := func(want int) check {
		return func(t *testing.T, r result) {
			if !r.outcome.Exited || r.outcome.Code != want || r.outcome.Signal != 0 {
				t.Errorf("outcome %+v, want exit code %d", r.outcome, want)
			}
		}
	}
	wraps := func(want error) check {
		return func(t *testing.T, r result) {
			if !errors.Is(r.err, want) {
				t.Errorf("error %v, want %v", r.err, want)
			}
		}
	}
	unborn := func(t *testing.T, r result) {
		if r.outcome.PID != 0 {
			t.Errorf("outcome %+v, want no process", r.outcome)
		}
	}
	exits := func(n string) []string { return guardtest.Program("exit", n) }
	acts := guardtest.Program("act", os.DevNull)
	for name, tt := range map[string]struct {
		at      boottime.Instant
		command []string
		act     func(w *work)
		kind    supervise.Kind
		check   check
	}{
		"exits with 0 by itself": {far(), exits("0"), nil, supervise.ExitedItself, code(0)},
		"exits with 1 by itself": {far(), exits("1"), nil, supervise.ExitedItself, code(1)},
		// 143 by itself is not an obeyed SIGTERM.
		"exits with 143 by itself": {far(), exits("143"), nil, supervise.ExitedItself, code(143)},
		"forks away":               {far(), guardtest.Program("leave", tempFile(t)), nil, supervise.ExitedItself, code(0)},
		"lease without end":        {boottime.Never, exits("0"), nil, supervise.ExitedItself, code(0)},
		"killed by a stranger": {far(), acts, func(w *work) {
			_ = syscall.Kill(w.ready(1)["act"], syscall.SIGKILL)
		}, supervise.ExitedItself, none},
		"asked to stop":         {far(), acts, func(w *work) { w.ready(1); w.cancel(coordinator.ErrStopping) }, supervise.Stopped, none},
		"stop before the start": {far(), acts, func(w *work) { w.cancel(coordinator.ErrStopping) }, supervise.Stopped, none},
		"loss before the start": {far(), acts, func(w *work) { w.cancel(coordinator.ErrLost) }, supervise.KilledOnLoss, none},
		"lost":                  {far(), acts, func(w *work) { w.ready(1); w.cancel(coordinator.ErrLost) }, supervise.KilledOnLoss, none},
		"instant has passed":    {boottime.Now(), acts, nil, supervise.KilledAtDeadline, unborn},
		"instant comes": {far(), acts, func(w *work) {
			w.ready(1)
			w.lease.move(boottime.Now().Add(50 * time.Millisecond))
		}, supervise.KilledAtDeadline, none},
		"not found": {far(), []string{"sf2loki-no-such-command"}, nil, supervise.StartFailed, func(t *testing.T, r result) {
			wraps(supervise.ErrStart)(t, r)
			unborn(t, r)
			if !strings.Contains(r.err.Error(), "not found") {
				t.Errorf("error %q does not say why", r.err)
			}
		}},
		"not a program": {far(), []string{os.TempDir()}, nil, supervise.StartFailed, wraps(supervise.ErrStart)},
	} {
		t.Run(name, func(t *testing.T) {
			w := start(t, tt.at, tt.command)
			if tt.act != nil {
				tt.act(w)
			}
			r := w.expect(tt.kind)
			tt.check(t, r)
		})
	}
}

func TestRunOfAnEndedTermStartsNothing(t *testing.T) {
	for cause, kind := range map[error]supervise.Kind{
		coordinator.ErrLost: supervise.KilledOnLoss, coordinator.ErrExpired: supervise.Stopped,
	} {
		file := tempFile(t)
		s, err := supervise.New(supervise.Config{Command: guardtest.Program("act", file),
			StopGrace: time.Second, KillMargin: margin, GuardCommand: guardtest.GuardCommand()})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(cause)
		out, err := s.Run(ctx, newLease(far()))
		if err != nil || out.Kind != kind || out.PID != 0 {
			t.Errorf("%v: outcome %+v, error %v; want %v and no process", cause, out, err, kind)
		}
		if _, err := os.Stat(file); !os.IsNotExist(err) {
			t.Errorf("%v: the child has run (%v)", cause, err)
		}
	}
}

func TestChildKnowsItsTerm(t *testing.T) {
	t.Setenv(supervise.EnvEpoch, "1") // of whoever started us
	t.Setenv("SOMETHING_ELSE", "passes")
	file := tempFile(t)
	w := start(t, far(), guardtest.Program("inspect", file), func(c *supervise.Config) {
		c.Env = []string{supervise.EnvConfig + "=/etc/sf2loki.yaml"}
	})
	w.expect(supervise.ExitedItself)
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var seen guardtest.Inspection
	if err := json.Unmarshal(text, &seen); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, kv := range seen.Env {
		if strings.HasPrefix(kv, "SF2LOKI_HA_") || strings.HasPrefix(kv, "SOMETHING_ELSE") {
			got = append(got, kv)
		}
	}
	slices.Sort(got)
	want := []string{"SF2LOKI_HA_CONFIG=/etc/sf2loki.yaml", "SF2LOKI_HA_EPOCH=7", "SF2LOKI_HA_TERM=term-7", "SOMETHING_ELSE=passes"}
	if !slices.Equal(got, want) {
		t.Errorf("environment %q, want %q", got, want)
	}
	passed := guardtest.Descriptors()
	for fd, target := range seen.FDs {
		if fd > 2 && passed[fd] != target {
			t.Errorf("descriptor %d (%s) leaked into the child", fd, target)
		}
	}
}
