package supervise

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
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

func TestBackoffDoublesTo30sAndStartsAnewAfterAMinuteOfWork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s script
		for range 8 {
			s.runs = append(s.runs, exitAfter(0))
		}
		s.runs = append(s.runs, exitAfter(59*time.Second), exitAfter(time.Minute))
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
		defer cancel()
		if err := s.keeper(0.5).keep(ctx); err != nil {
			t.Fatal(err)
		}
		var starts []string
		for _, line := range s.log {
			var at string
			if n, _ := fmt.Sscanf(line, "run %s", &at); n == 1 {
				starts = append(starts, at)
			}
		}
		want := []string{"0s", "1s", "3s", "7s", "15s", "31s", "1m1s", "1m31s",
			"2m1s",  // ran 59 s: still one of a row
			"3m30s", // 59 s and 30 s later; ran a minute
			"4m31s"} // 60 s and 1 s later
		if !slices.Equal(starts, want) {
			t.Errorf("starts at %v, want %v", starts, want)
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
		script script
		want   error
	}{
		"seal fails":         {script{seals: []error{broken}}, broken},
		"second seal fails":  {script{runs: []fakeRun{exitAfter(0)}, seals: []error{nil, broken}}, broken},
		"start fails":        {script{runs: []fakeRun{{0, StartFailed, ErrStart}}}, ErrStart},
		"guard fails":        {script{runs: []fakeRun{{0, GuardFailed, ErrGuard}}}, ErrGuard},
		"guard saw the time": {script{runs: []fakeRun{{0, KilledAtDeadline, nil}}}, coordinator.ErrExpired},
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
