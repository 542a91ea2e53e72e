package supervise

import (
	"context"
	"errors"
	"fmt"
	"syscall"

	"github.com/sf2loki/sf2loki-ha/coordinator"
	"github.com/sf2loki/sf2loki-ha/internal/boottime"
	"github.com/sf2loki/sf2loki-ha/internal/guard"
)

// Supervisor runs the command of one configuration. It keeps nothing from one
// run to the next and may be used for several runs, one at a time or at once.
type Supervisor struct {
	cfg Config
}

// New returns a supervisor, or the error of [Config.Validate].
func New(cfg Config) (*Supervisor, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	return &Supervisor{cfg: cfg.withDefaults()}, nil
}

// Run runs the command once and returns when its whole tree is gone.
//
// ctx is the context of the term. When it ends, its cause decides: with
// coordinator.ErrLost the tree is killed at once; with coordinator.ErrStopping
// the command gets SIGTERM and has until l.KillAt, which the coordinator has
// set for this stop; with any other cause it gets SIGTERM and StopGrace, but
// not beyond l.KillAt.
//
// The error is nil unless the outcome is GuardFailed ([ErrGuard]) or
// StartFailed ([ErrStart]).
func (s *Supervisor) Run(ctx context.Context, l Lease) (Outcome, error) {
	r := &run{
		cfg:   s.cfg,
		lease: l,
		log:   s.cfg.Logger.With("epoch", l.Epoch(), "term", l.ID()),
	}
	out, err := r.do(ctx)
	if s.cfg.Ended != nil {
		s.cfg.Ended(out)
	}
	r.log.Info("work_gone", "work", out)
	return out, err
}

func (r *run) do(ctx context.Context) (Outcome, error) {
	// 1. Nothing is started for a term that is over.
	if ctx.Err() != nil {
		return Outcome{Kind: kindOfCause(context.Cause(ctx))}, nil
	}
	if boottime.Now() >= r.lease.KillAt() {
		return Outcome{Kind: KilledAtDeadline}, nil
	}
	// 2. The guard, with nothing to guard yet.
	g, err := startGuard(r.cfg, r.cfg.environment(r.lease))
	if err != nil {
		return Outcome{Kind: GuardFailed}, fmt.Errorf("supervise: start the guard: %w: %w", ErrGuard, err)
	}
	r.guard = g
	// 3. The run itself. What was signalled before was not for this command.
	for len(r.cfg.Signals) > 0 {
		<-r.cfg.Signals
	}
	r.loop(ctx)
	// 4. The proof. Either the guard saw the last process go, or we do.
	if r.gone {
		g.finish(r.log)
	} else {
		exits := g.abandon(r.log)
		r.catchUp(g.lastWords(), exits)
	}
	g.close()
	return r.outcome(ctx)
}

// catchUp completes what is known of the command after a guard was given up.
func (r *run) catchUp(reports []guard.Report, exits map[int]exitStatus) {
	for _, report := range reports {
		switch report.Type {
		case guard.ReportStarted:
			r.pid, r.startedAt = report.PID, boottime.Now()
		case guard.ReportExited:
			r.exited, r.code, r.signal = true, report.Code, syscall.Signal(report.Signal)
		}
	}
	if status, ok := exits[r.pid]; ok && !r.exited {
		r.exited, r.code, r.signal = true, status.code, status.signal
	}
}

// outcome decides who ended the run.
func (r *run) outcome(ctx context.Context) (Outcome, error) {
	now := boottime.Now()
	out := Outcome{PID: r.pid, Exited: r.exited, Code: r.code, Signal: r.signal, Forced: r.forced}
	if r.pid != 0 {
		out.Ran = now.Sub(r.startedAt)
	}
	if r.stopping {
		out.Stopping = now.Sub(r.stoppedAt)
	}
	cause := r.cause
	if cause == nil && ctx.Err() != nil {
		// The instant was moved into the past an eye-blink before the context
		// ended: the guard was faster than we.
		cause = context.Cause(ctx)
	}
	switch {
	case r.failure != nil:
		out.Kind = GuardFailed
		return out, fmt.Errorf("supervise: %w: %w", ErrGuard, r.failure)
	case r.startErr != "":
		out.Kind = StartFailed
		return out, fmt.Errorf("supervise: %w: %s", ErrStart, r.startErr)
	case r.asDeadline && errors.Is(cause, coordinator.ErrStopping):
		// The instant was the end of the requested stop.
		out.Kind, out.Forced = Stopped, r.pid != 0
	case r.asDeadline && !errors.Is(cause, coordinator.ErrLost):
		out.Kind = KilledAtDeadline
	case r.stopping || r.asDeadline:
		out.Kind = kindOfCause(cause)
	default:
		out.Kind = ExitedItself
	}
	return out, nil
}

// kindOfCause is the outcome of a run that its context ended.
func kindOfCause(cause error) Kind {
	if errors.Is(cause, coordinator.ErrLost) {
		return KilledOnLoss
	}
	return Stopped
}
