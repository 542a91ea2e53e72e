package probe

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sf2loki/sf2loki-ha/cas"
	"github.com/sf2loki/sf2loki-ha/cas/mem"
	"github.com/sf2loki/sf2loki-ha/internal/faultcas"
)

// rig is a runner on a store in memory whose creates are refused with a class,
// or whose replaces never match.
type rig struct {
	*Runner
	t       *testing.T
	log     lines
	leading atomic.Bool
	silent  atomic.Bool  // the election has had no answer yet
	refuse  atomic.Value // cas.Class of every create
	never   atomic.Bool
	probes  atomic.Int32
	reports atomic.Int32
	start   time.Time
}

type lines struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

// with are the lines that contain text.
func (l *lines) with(text string) (found []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, line := range strings.Split(l.b.String(), "\n") {
		if strings.Contains(line, text) {
			found = append(found, line)
		}
	}
	return found
}

func newRig(t *testing.T) *rig {
	g := &rig{t: t, start: time.Now()}
	g.refuse.Store(cas.Class(""))
	store := mem.New()
	g.Runner = New(Config{
		Log:      slog.New(slog.NewTextHandler(&g.log, nil)),
		Answered: func() bool { return !g.silent.Load() },
		Leading:  g.leading.Load,
		Observe:  func(cas.ProbeReport) { g.reports.Add(1) },
		Probe: func(ctx context.Context) cas.ProbeReport {
			g.probes.Add(1)
			return cas.Probe(ctx, cas.ProbeConfig{Object: "lease", CallTimeout: time.Second, Open: func(context.Context) (cas.Bucket, error) {
				return &bucket{store.Open(), g}, nil
			}})
		},
	})
	return g
}

type bucket struct {
	*mem.Bucket
	g *rig
}

func (b *bucket) Register(name string) cas.Register {
	return faultcas.Wrap(b.Bucket.Register(name), func(op faultcas.Op, _ int) faultcas.Fault {
		if op == faultcas.Replace && b.g.never.Load() {
			return faultcas.Fault{Refuse: cas.Conflict}
		}
		if op == faultcas.Create {
			return faultcas.Fault{Refuse: b.g.refuse.Load().(cas.Class)}
		}
		return faultcas.Fault{}
	})
}

func (b *bucket) Scratch(object string) cas.Scratch {
	inner := b.Bucket.Scratch(object)
	prefix := cas.ScratchPrefix(object)
	return area{inner, func(name string) cas.Register { return b.Register(prefix + name) }}
}

type area struct {
	cas.Scratch
	register func(string) cas.Register
}

func (a area) Register(name string) cas.Register { return a.register(name) }

// run runs it until the test stops it; the returned function waits for its end.
func (g *rig) run() (stop func() error) {
	ctx, cancel := context.WithCancel(g.t.Context())
	done := make(chan error, 1)
	go func() { done <- g.Run(ctx) }()
	return func() error {
		cancel()
		return <-done
	}
}

func wait(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

func TestNothingIsAdmittedBeforeAProbeHasPassed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newRig(t)
		if !errors.Is(g.Admit(), ErrNotYet) {
			t.Errorf("before: %v", g.Admit())
		}
		stop := g.run()
		synctest.Wait()
		if g.Admit() != nil || g.probes.Load() != 1 || g.reports.Load() != 1 {
			t.Errorf("after: %v, %d probes", g.Admit(), g.probes.Load())
		}
		if found := g.log.with("store probe passed"); len(found) != 1 || !strings.Contains(found[0], "probe_version=1") {
			t.Errorf("%q", found)
		}
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
}

func TestWithoutAVerdictTheReplicaWaitsSaysItOnceAndRecovers(t *testing.T) {
	for _, class := range []cas.Class{cas.Denied, cas.NoBucket, cas.Ambiguous, cas.Contended} {
		synctest.Test(t, func(t *testing.T) {
			g := newRig(t)
			g.refuse.Store(class)
			stop := g.run()
			wait(2 * time.Minute)
			if !errors.Is(g.Admit(), ErrNotYet) {
				t.Errorf("%s: %v", class, g.Admit())
			}
			// 1, 2, 4, 8, 16, then every 30 s, each less up to a fifth.
			if n := g.probes.Load(); n < 8 || n > 11 {
				t.Errorf("%s: %d probes in two minutes", class, n)
			}
			if found := g.log.with("store probe"); len(found) != 1 || !strings.Contains(found[0], "undecided") || !strings.Contains(found[0], string(class)) {
				t.Errorf("%s: %q", class, found)
			}
			g.refuse.Store(cas.Class(""))
			wait(lastPause)
			if g.Admit() != nil || len(g.log.with("store probe passed")) != 1 {
				t.Errorf("%s: not recovered: %v", class, g.Admit())
			}
			if err := stop(); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestAStoreWithAFaultEndsTheRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newRig(t)
		g.never.Store(true)
		err := g.Run(t.Context())
		if cas.ClassOf(err) != cas.Unsupported || !strings.Contains(err.Error(), string(cas.FaultNeverMatches)) {
			t.Errorf("%v", err)
		}
		if cas.ClassOf(g.Admit()) != cas.Unsupported {
			t.Errorf("admits: %v", g.Admit())
		}
	})
}

func TestAStandbyProbesAgainEveryHourAndALeaderDoesNot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newRig(t)
		stop := g.run()
		wait(10*time.Hour + time.Minute)
		if n := g.probes.Load(); n < 11 || n > 14 {
			t.Errorf("%d probes in ten hours", n)
		}
		if found := g.log.with("store probe"); len(found) != 1 {
			t.Errorf("a lasting success is one line: %q", found)
		}
		g.leading.Store(true)
		before := g.probes.Load()
		wait(10 * time.Hour)
		if n := g.probes.Load() - before; n != 0 {
			t.Errorf("%d probes while leading", n)
		}
		g.leading.Store(false)
		wait(lastPause)
		if n := g.probes.Load() - before; n != 1 {
			t.Errorf("%d probes after stepping down", n)
		}
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
}

func TestALaterProbeWithoutAVerdictTakesNothingBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newRig(t)
		stop := g.run()
		synctest.Wait()
		g.refuse.Store(cas.Denied)
		wait(interval)
		if g.Admit() != nil {
			t.Errorf("%v: a permission of the probe that went must not cost the pair its failover", g.Admit())
		}
		if found := g.log.with("store probe undecided"); len(found) == 0 || !strings.Contains(found[0], "none yet") {
			t.Errorf("%q", found)
		}
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
}

func TestALaterFaultEndsAStandbyAndKeepsALeaderFromTheNextTerm(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newRig(t)
		g.Runner.cfg.Probe = func() func(context.Context) cas.ProbeReport {
			probe := g.Runner.cfg.Probe
			return func(ctx context.Context) cas.ProbeReport {
				if g.probes.Load() == 1 {
					g.leading.Store(true) // it acquired the lease while this probe ran
				}
				return probe(ctx)
			}
		}()
		ended := make(chan error, 1)
		go func() { ended <- g.Run(t.Context()) }()
		synctest.Wait()
		g.never.Store(true)
		wait(interval)
		select {
		case err := <-ended:
			t.Fatalf("a leader was ended: %v", err)
		default:
		}
		if cas.ClassOf(g.Admit()) != cas.Unsupported || len(g.log.with("store probe failed")) != 1 {
			t.Errorf("%v, %q", g.Admit(), g.log.with("store probe"))
		}
		g.leading.Store(false)
		if err := <-ended; cas.ClassOf(err) != cas.Unsupported {
			t.Errorf("%v", err)
		}
	})
}

func TestAStopDuringAProbeEndsItAtOnceWithoutAVerdict(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newRig(t)
		g.Runner.cfg.Probe = func(ctx context.Context) cas.ProbeReport {
			<-ctx.Done()
			return cas.ProbeReport{Verdict: cas.ProbeUnsupported}
		}
		stop := g.run()
		wait(time.Minute)
		begun := time.Now()
		if err := stop(); err != nil {
			t.Errorf("%v", err)
		}
		if took := time.Since(begun); took != 0 || g.reports.Load() != 0 {
			t.Errorf("after %v with %d reports", took, g.reports.Load())
		}
	})
}

func TestTheFirstProbeWaitsForTheFirstAnswerOfTheStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newRig(t)
		g.silent.Store(true)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- g.Run(ctx) }()
		<-time.After(time.Hour)
		if g.probes.Load() != 0 || g.Admit() == nil {
			t.Errorf("%d probes of a store that has not answered a read", g.probes.Load())
		}
		g.silent.Store(false)
		<-time.After(time.Second)
		synctest.Wait()
		if g.probes.Load() != 1 || g.Admit() != nil {
			t.Errorf("%d probes after the first answer, admitted: %v", g.probes.Load(), g.Admit())
		}
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}
