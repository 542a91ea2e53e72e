package supervise

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"time"

	"github.com/sf2loki/sf2loki-ha/coordinator"
)

// Back-off between two starts inside a term.
const (
	backoffFirst = time.Second
	backoffMost  = 30 * time.Second
	// backoffReset is how long a run has to last for the next failure to count
	// as the first.
	backoffReset = time.Minute
)

// Keep keeps the command running for the rest of the term. It calls before
// ahead of every start (the seal of the checkpoint document: no work without
// it), runs the command, and if it ended by itself starts it again after a
// back-off of 1 s, doubling up to 30 s, within 25 % of jitter, and begun anew
// after a run of a minute.
//
// It returns nil when ctx has ended and the tree is gone. It returns an error,
// with the tree gone as well, when this replica should step down although the
// term is not over: before failed, the command cannot be started ([ErrStart]),
// the guard failed ([ErrGuard]), or the guard ended the work at its instant
// (coordinator.ErrExpired).
func (s *Supervisor) Keep(ctx context.Context, l Lease, before func(ctx context.Context) error) error {
	k := keeper{
		log:    s.cfg.Logger.With("epoch", l.Epoch(), "term", l.ID()),
		before: before,
		run:    func(ctx context.Context) (Outcome, error) { return s.Run(ctx, l) },
		jitter: rand.Float64,
	}
	return k.keep(ctx)
}

// keeper is the loop of Keep without processes.
type keeper struct {
	log    *slog.Logger
	before func(context.Context) error
	run    func(context.Context) (Outcome, error)
	jitter func() float64 // in [0, 1)
}

func (k keeper) keep(ctx context.Context) error {
	failures := 0
	for ctx.Err() == nil {
		// 1. Seal first, work second, before every start.
		if err := k.before(ctx); err != nil {
			if ctx.Err() != nil && (errors.Is(err, context.Canceled) || errors.Is(err, context.Cause(ctx))) {
				return nil
			}
			return fmt.Errorf("supervise: before the start: %w", err)
		}
		// 2. Work.
		out, err := k.run(ctx)
		if err != nil {
			return err
		}
		if ctx.Err() != nil {
			return nil
		}
		if out.Kind != ExitedItself {
			// The guard knows the time before we do after a freeze.
			return fmt.Errorf("supervise: the guard ended the work: %w", coordinator.ErrExpired)
		}
		// 3. Back off.
		if out.Ran >= backoffReset {
			failures = 0
		}
		pause := backoff(failures, k.jitter())
		failures++
		k.log.Warn("work_restarting", "work", out, "failures", failures, "pause", pause)
		timer := time.NewTimer(pause)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
		}
	}
	return nil
}

// backoff is the pause after a number of failures in a row.
func backoff(failures int, jitter float64) time.Duration {
	d := backoffMost
	if failures < 5 { // 1, 2, 4, 8, 16 s
		d = backoffFirst << failures
	}
	return time.Duration(float64(d) * (0.75 + jitter/2))
}
