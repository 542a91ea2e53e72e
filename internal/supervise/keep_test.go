package supervise

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sf2loki/sf2loki-ha/coordinator"
)

// script is a keeper on fake time: each run takes some time and ends somehow.
type script struct {
	begin time.Time
	log   []string // what happened, and when
	runs  []fakeRun
	seals []error
	term  fakeTerm
}

// fakeTerm counts failures.
type fakeTerm struct {
	Lease
	failures atomic.Int64
}

func (t *fakeTerm) Failures() int { return int(t.failures.Load()) }
func (t *fakeTerm) Failed()       { t.failures.Add(1) }
func (t *fakeTerm) Settled()      { t.failures.Store(0) }

// starts are the runs and when they began.
func (s *script) starts() []string {
	return slices.DeleteFunc(slices.Clone(s.log), func(line string) bool { return !strings.HasPrefix(line, "run ") })
}

type fakeRun struct {
	ran  time.Duration
	kind Kind
	err  error
}

func (s *script) keeper(jitter float64) keeper {
	s.begin = time.Now()
	return keeper{
		log:    slog.New(slog.NewTextHandler(io.Discard, nil)),
		term:   &s.term,
		jitter: func() float64 { return jitter },
		before: func(context.Context) error {
			s.note("seal")
			if len(s.seals) == 0 {
				return nil
			}
			err := s.seals[0]
			s.seals = s.seals[1:]
			return err
		},
		run: func(ctx context.Context) (Outcome, error) {
			s.note("run")
			if len(s.runs) == 0 {
				<-ctx.Done()
				return Outcome{Kind: Stopped}, nil
			}
			r := s.runs[0]
			s.runs = s.runs[1:]
			timer := time.NewTimer(r.ran)
			defer timer.Stop()
			select {
			case <-timer.C:
				return Outcome{Kind: r.kind, Ran: r.ran}, r.err
			case <-ctx.Done():
				return Outcome{Kind: Stopped}, nil
			}
		},
	}
}

func (s *script) note(what string) {
	s.log = append(s.log, fmt.Sprintf("%s %v", what, time.Since(s.begin)))
}

func exitAfter(ran time.Duration) fakeRun { return fakeRun{ran: ran, kind: ExitedItself} }

func TestEveryStartIsSealedFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := script{runs: []fakeRun{exitAfter(0), exitAfter(0)}}
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		if err := s.keeper(0.5).keep(ctx); err != nil {
			t.Fatal(err)
		}
		want := []string{"seal 0s", "run 0s", "seal 1s", "run 1s", "seal 3s", "run 3s"}
		if !slices.Equal(s.log, want) {
			t.Errorf("got %v, want %v", s.log, want)
		}
	})
}

func TestAfterThreeFailuresInARowAnotherReplicaGetsItsChance(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := script{runs: []fakeRun{exitAfter(0), exitAfter(59 * time.Second), exitAfter(0), exitAfter(0)}}
		err := s.keeper(0.5).keep(t.Context())
		if !errors.Is(err, coordinator.ErrCrashLoop) {
			t.Errorf("error %v, want a crash loop", err)
		}
		want := []string{"seal 0s", "run 0s", "seal 1s", "run 1s", "seal 1m2s", "run 1m2s"}
		if !slices.Equal(s.log, want) || s.term.Failures() != 3 {
			t.Errorf("%d failures, %v", s.term.Failures(), s.log)
		}
	})
}

func TestARunOfAMinuteEndsTheRow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := script{runs: []fakeRun{exitAfter(0), exitAfter(0), exitAfter(time.Minute), exitAfter(0), exitAfter(0), exitAfter(0)}}
		err := s.keeper(0.5).keep(t.Context())
		// The failure after the minute is the first of a new row.
		want := []string{"run 0s", "run 1s", "run 3s", "run 1m4s", "run 1m6s"}
		if got := s.starts(); !errors.Is(err, coordinator.ErrCrashLoop) || !slices.Equal(got, want) {
			t.Errorf("%v: %v", err, got)
		}
	})
}

func TestWorkThatRunsForAMinuteIsSettledWhileItRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s script
		s.term.failures.Store(7)
		ctx, cancel := context.WithTimeout(t.Context(), 61*time.Second)
		defer cancel()
		if err := s.keeper(0.5).keep(ctx); err != nil || s.term.Failures() != 0 {
			t.Errorf("%v, %d failures", err, s.term.Failures())
		}
	})
}

func TestBackoffSpansTheReplicas(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		// Another replica had three failures: the first start is at once, the
		// next ones wait like a fourth and a fifth.
		s := script{runs: []fakeRun{exitAfter(0), exitAfter(0), exitAfter(0)}}
		s.term.failures.Store(3)
		err := s.keeper(0.5).keep(t.Context())
		if want := []string{"run 0s", "run 8s", "run 24s"}; !errors.Is(err, coordinator.ErrCrashLoop) || !slices.Equal(s.starts(), want) || s.term.Failures() != 6 {
			t.Errorf("%v: %v, %d failures", err, s.starts(), s.term.Failures())
		}
	})
}

func TestACommandThatCannotBeStartedHereIsLeftToAnotherReplica(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := script{runs: []fakeRun{{err: fmt.Errorf("run: %w", ErrStart)}}}
		err := s.keeper(0.5).keep(t.Context())
		if !errors.Is(err, coordinator.ErrCrashLoop) || !errors.Is(err, ErrStart) || s.term.Failures() != 1 {
			t.Errorf("%v, %d failures", err, s.term.Failures())
		}
	})
}

func TestBackoffIsJittered(t *testing.T) {
	for _, tt := range []struct {
		failures int
		jitter   float64
		want     time.Duration
	}{
		{0, 0, 750 * time.Millisecond}, {0, 0.5, time.Second}, {4, 0.5, 16 * time.Second},
		{5, 0, 22500 * time.Millisecond}, {5, 0.5, 30 * time.Second}, {1000, 0.5, 30 * time.Second},
	} {
		if got := backoff(tt.failures, tt.jitter); got != tt.want {
			t.Errorf("backoff(%d, %v) = %v, want %v", tt.failures, tt.jitter, got, tt.want)
		}
	}
}

func TestBackoffEndsWithTheTerm(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := script{runs: []fakeRun{exitAfter(0)}}
		ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
		defer cancel()
		if err := s.keeper(0.5).keep(ctx); err != nil {
			t.Fatal(err)
		}
		if got := time.Since(s.begin); got != 300*time.Millisecond {
			t.Errorf("returned after %v, want 300ms", got)
		}
		if want := []string{"seal 0s", "run 0s"}; !slices.Equal(s.log, want) {
			t.Errorf("got %v, want %v", s.log, want)
		}
	})
}

func TestReplicaStepsDownWhenItCannotWork(t *testing.T) {
	broken := errors.New("sealed by a higher epoch")
	for name, tt := range map[string]struct {
		script *script
		want   error
	}{
		"seal fails":         {&script{seals: []error{broken}}, broken},
		"second seal fails":  {&script{runs: []fakeRun{exitAfter(0)}, seals: []error{nil, broken}}, broken},
		"start fails":        {&script{runs: []fakeRun{{0, StartFailed, ErrStart}}}, ErrStart},
		"guard fails":        {&script{runs: []fakeRun{{0, GuardFailed, ErrGuard}}}, ErrGuard},
		"guard saw the time": {&script{runs: []fakeRun{{0, KilledAtDeadline, nil}}}, coordinator.ErrExpired},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				if err := tt.script.keeper(0.5).keep(t.Context()); !errors.Is(err, tt.want) {
					t.Errorf("error %v, want %v", err, tt.want)
				}
			})
		})
	}
}

func TestEndOfTheTermIsNoFailure(t *testing.T) {
	for name, s := range map[string]*script{
		"while it works":     {},
		"while it is sealed": {seals: []error{context.Canceled}},
		"its own cause":      {seals: []error{coordinator.ErrLost}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancelCause(t.Context())
				k := s.keeper(0.5)
				seal := k.before
				k.before = func(ctx context.Context) error {
					err := seal(ctx)
					if err != nil {
						cancel(coordinator.ErrLost)
					}
					return err
				}
				time.AfterFunc(time.Second, func() { cancel(coordinator.ErrLost) })
				if err := k.keep(ctx); err != nil {
					t.Errorf("error %v, want none", err)
				}
			})
		})
	}
}

func TestFailedSealOfAnEndedTermIsStillTold(t *testing.T) {
	// A higher epoch is worth knowing, even if the term has ended meanwhile.
	synctest.Test(t, func(t *testing.T) {
		broken := errors.New("sealed by a higher epoch")
		ctx, cancel := context.WithCancelCause(t.Context())
		k := (&script{}).keeper(0.5)
		k.before = func(context.Context) error { cancel(coordinator.ErrLost); return broken }
		if err := k.keep(ctx); !errors.Is(err, broken) {
			t.Errorf("error %v, want %v", err, broken)
		}
	})
}

func TestEndedTermStartsNothing(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var s script
	if err := s.keeper(0.5).keep(ctx); err != nil || len(s.log) != 0 {
		t.Errorf("error %v, did %v; want nothing at all", err, s.log)
	}
}
