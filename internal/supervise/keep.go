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
	// settledAfter is how long a run has to last for failures before it not to
	// count any more.
	settledAfter = time.Minute
	// mostFailures is how often in a row the command may fail in one term before
	// another replica gets its chance.
	mostFailures = 3
)

// Keep keeps the command running for the rest of the term. It calls before
// ahead of every start (the seal of the checkpoint document: no work without
// it), runs the command, and if it ended by itself starts it again after a
// back-off of 1 s, doubling up to 30 s, within 25 % of jitter. The back-off spans
// the replicas: it goes by the failures in a row on all of them, which the term
// carries, and begins anew once a run has lasted for a minute.
//
// It returns nil when ctx has ended and the tree is gone. It returns an error,
// with the tree gone as well, when this replica should step down although the
// term is not over: the command ended by itself three times in a row
// (coordinator.ErrCrashLoop), before failed, the command cannot be started
// ([ErrStart], a crash loop as well), the guard failed ([ErrGuard]), or the guard
// ended the work at its instant (coordinator.ErrExpired).
func (s *Supervisor) Keep(ctx context.Context, t Term, before func(ctx context.Context) error) error {
	k := keeper{
		log:    s.cfg.Logger.With("epoch", t.Epoch(), "term", t.ID()),
		term:   t,
		before: before,
		run:    func(ctx context.Context) (Outcome, error) { return s.Run(ctx, t) },
		jitter: rand.Float64,
	}
	return k.keep(ctx)
}

// keeper is the loop of Keep without processes.
type keeper struct {
	log    *slog.Logger
	term   Term
	before func(context.Context) error
	run    func(context.Context) (Outcome, error)
	jitter func() float64 // in [0, 1)
}

func (k keeper) keep(ctx context.Context) error {
	failures := 0 // in a row, in this term
	for ctx.Err() == nil {
		// 1. Seal first, work second, before every start.
		if err := k.before(ctx); err != nil {
			if ctx.Err() != nil && (errors.Is(err, context.Canceled) || errors.Is(err, context.Cause(ctx))) {
				return nil
			}
			return fmt.Errorf("supervise: before the start: %w", err)
		}
		// 2. Work.
		out, err := k.settling(ctx)
		if errors.Is(err, ErrStart) {
			// What cannot be started here may be there on another replica.
			k.term.Failed()
			return fmt.Errorf("%w: %w", coordinator.ErrCrashLoop, err)
		}
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
		// 3. Count.
		if out.Ran >= settledAfter {
			failures = 0
			k.term.Settled()
		}
		pause := backoff(k.term.Failures(), k.jitter())
		k.term.Failed()
		if failures++; failures >= mostFailures {
			return fmt.Errorf("supervise: the command ended by itself %d times in a row: %w", failures, coordinator.ErrCrashLoop)
		}
		// 4. Back off.
		k.log.Warn("work_restarting", "work", out, "failures", k.term.Failures(), "pause", pause)
		timer := time.NewTimer(pause)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
		}
	}
	return nil
}

// settling runs the command once. When it has run for a minute, that is told at
// once and not with its next failure: the record must not accuse work that runs.
func (k keeper) settling(ctx context.Context) (Outcome, error) {
	told := make(chan struct{})
	timer := time.AfterFunc(settledAfter, func() {
		defer close(told)
		k.term.Settled()
	})
	defer func() {
		if !timer.Stop() {
			<-told // before a failure is counted
		}
	}()
	return k.run(ctx)
}

// backoff is the pause after a number of failures in a row.
func backoff(failures int, jitter float64) time.Duration {
	d := backoffMost
	if failures < 5 { // 1, 2, 4, 8, 16 s
		d = backoffFirst << failures
	}
	return time.Duration(float64(d) * (0.75 + jitter/2))
}
