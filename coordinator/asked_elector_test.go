package coordinator

import (
	"context"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sf2loki/sf2loki-ha/cas"
	"github.com/sf2loki/sf2loki-ha/internal/faultcas"
)

// requests opens the request object of the world's lease.
func (w *world) requests() RequestStore {
	return RequestsFrom(w.store.Open().Register(leaseName + RequestSuffix))
}

// ask changes the request document, as the command line does.
func (w *world) ask(change func(Request) Request) {
	w.t.Helper()
	q := w.requests()
	state, err := q.ReadRequest(context.Background())
	if err == nil {
		err = q.WriteRequest(context.Background(), change(state.Request.Aged(state.Age)), state.Version)
	}
	if err != nil {
		w.t.Fatal(err)
	}
}

// revised is a replica of a revision that obeys requests.
func (w *world) revised(name, revision string) *replica {
	cfg := fast
	cfg.Revision = revision
	return w.replica(name, cfg, WithRequests(w.requests()))
}

// lineage is who led, in order.
func (w *world) lineage() []string {
	var who []string
	for _, a := range w.starts() {
		who = append(who, a.replica)
	}
	return who
}

func TestDuringAHoldNobodyLeadsAndAfterwardsSomebodyDoes(t *testing.T) {
	for name, c := range map[string]struct {
		resume time.Duration // 0: the hold runs out
		want   time.Duration
	}{"the hold runs out": {0, time.Minute}, "the hold is taken back": {20 * time.Second, 20 * time.Second}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				a, b := w.revised("a", "r1").run(), w.revised("b", "r1").run()
				defer b.stop()
				defer a.stop()
				sleep(10 * time.Second)
				begun := time.Now()
				w.ask(func(r Request) Request { return r.WithHold(&Hold{ID: "h", Reason: "repair", For: time.Minute}) })
				// Obeyed within a renewal, and a few writes.
				sleep(2100 * time.Millisecond)
				if rec := w.record(); rec.State != Released || rec.Obeyed != "h" || len(w.ends()) != 1 {
					t.Fatalf("the leader did not release: %+v", rec)
				}
				if c.resume != 0 {
					sleep(c.resume - time.Since(begun))
					w.ask(func(r Request) Request { return r.WithHold(nil) })
				}
				for len(w.starts()) < 2 && time.Since(begun) < 5*time.Minute {
					if hold := a.elector.Status().Hold; hold > time.Minute {
						t.Errorf("%v of hold left", hold)
					}
					sleep(100 * time.Millisecond)
				}
				// One poll, and the second that the store's clock does not resolve.
				if took := time.Since(begun); took < c.want || took > c.want+3*time.Second {
					t.Errorf("somebody leads after %v, want %v", took, c.want)
				}
				w.noOverlap()
			})
		})
	}
}

func TestAFreshReplicaDoesNotClaimDuringAHold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.ask(func(r Request) Request { return r.WithHold(&Hold{ID: "h", For: time.Minute}) })
		sleep(30 * time.Second)
		a := w.revised("a", "r1").run()
		defer a.stop()
		sleep(28 * time.Second)
		if a.role() != RoleStandby || a.count(OnHold) != 1 {
			t.Errorf("%s, told %d times", a.role(), a.count(OnHold))
		}
		sleep(5 * time.Second)
		if a.role() != RoleLeader {
			t.Error("the hold never ends")
		}
	})
}

func TestAStepDownMovesTheLeaseOnceAndNamesWhoItIsFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		a := w.revised("a", "r1").run()
		defer a.stop()
		sleep(7 * time.Second)
		b := w.revised("b", "r1").run()
		defer b.stop()
		sleep(3 * time.Second)
		rec := w.record()
		w.ask(func(r Request) Request {
			return r.WithStepDown(&StepDown{ID: "s", Reason: "please", Target: Target{Epoch: rec.Epoch, Term: rec.Term}})
		})
		sleep(5 * time.Minute)
		if got := w.lineage(); !slices.Equal(got, []string{"a", "b"}) {
			t.Errorf("%v led", got)
		}
		if rec := w.record(); rec.Obeyed != "s" || rec.History[0].Reason != "step-down: please" {
			t.Errorf("%+v", rec)
		}
		w.noOverlap()
	})
}

func TestANewRevisionTakesOverOnceItIsReady(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		a := w.revised("a", "r1").run()
		defer a.stop()
		third := w.revised("c", "r1").run()
		defer third.stop()
		sleep(20 * time.Second)
		first := w.lineage()[0]
		begun := time.Now()
		b := w.revised("b", "r2").run()
		defer b.stop()
		for b.role() != RoleLeader && time.Since(begun) < time.Minute {
			sleep(50 * time.Millisecond)
		}
		// A renewal until the leader reads it, and the handover itself.
		if took := time.Since(begun); took > 3*time.Second {
			t.Errorf("handed over after %v", took)
		}
		sleep(10 * time.Minute)
		if got := w.lineage(); !slices.Equal(got, []string{first, "b"}) {
			t.Errorf("%v led", got)
		}
		w.noOverlap()
	})
}

func TestADeploymentThatCrashesHandsBackAndIsNeverPreferredAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		a := w.revised("a", "r1").run()
		defer a.stop()
		sleep(20 * time.Second)
		b, c := w.revised("b", "r2"), w.revised("c", "r2")
		b.broken, c.broken = true, true
		b.run()
		c.run()
		defer b.stop()
		defer c.stop()
		sleep(30 * time.Minute)
		got := w.lineage()
		// Both of the new revision may try, each once.
		if len(got) > 4 || got[0] != "a" || got[len(got)-1] != "a" {
			t.Errorf("%v led", got)
		}
		if rec := w.record(); rec.Revision != "r1" {
			t.Errorf("revision %q leads", rec.Revision)
		}
		w.noOverlap()
	})
}

func TestReplicasOfDifferentConfigurationsDoNotPlayPingPong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		var all []*replica
		for i, name := range []string{"a", "b", "c", "d"} {
			all = append(all, w.revised(name, string(rune('1'+i))).run())
		}
		sleep(time.Hour)
		if got := w.lineage(); len(got) != 4 {
			t.Errorf("%v led; want each revision once", got)
		}
		for _, r := range all {
			r.stop()
		}
		w.noOverlap()
	})
}

func TestCrashBackoffSpansThePair(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		a, b := w.replica("a", fast), w.replica("b", fast)
		a.broken, b.broken = true, true
		a.run()
		b.run()
		defer a.stop()
		defer b.stop()
		sleep(10 * time.Second)
		if got := w.lineage(); len(got) == 0 {
			t.Fatal("nobody led")
		}
		sleep(50 * time.Second)
		if got := w.lineage(); len(got) < 2 || got[0] == got[1] {
			t.Errorf("%v led in the first minute; the second should try once the first gave up", got)
		}
		sleep(29 * time.Minute)
		before := len(w.crashes())
		sleep(30 * time.Minute)
		// Three crashes, 30 s apart, and a minute between two terms.
		if n := len(w.crashes()) - before; n > 3*15+3 || n < 20 {
			t.Errorf("%d crashes in half an hour", n)
		}
		w.noOverlap()
	})
}

func (w *world) crashes() []act {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(w.acts), func(a act) bool { return a.kind != "crash" })
}

func TestAfterACrashLoopAFreshReplicaTriesAtOnceAndItsSuccessEndsTheBackoff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		a := w.replica("a", fast)
		a.broken = true
		a.run()
		defer a.stop()
		sleep(6500 * time.Millisecond)
		b := w.replica("b", fast).run()
		defer b.stop()
		sleep(30 * time.Second)
		if got := w.lineage(); got[len(got)-1] != "b" || b.role() != RoleLeader {
			t.Errorf("%v led", got)
		}
		if work := w.record().Work; work.Failures != 3 || work.pause(a.elector.Incarnation()) != 4*time.Second {
			t.Errorf("%+v", work)
		}
		b.elector.tenure.held().Settled()
		sleep(3 * time.Second)
		if work := w.record().Work; work.Failures != 0 {
			t.Errorf("%+v although the work runs well", work)
		}
	})
}

// What people ask for must not depend on whether the answers arrive.
func TestARequestObjectThatDoesNotAnswerStopsCandidatesAndNoLeader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		var broken atomic.Bool
		broken.Store(true)
		q := faultcas.Wrap(w.store.Open().Register(leaseName+RequestSuffix), func(faultcas.Op, int) faultcas.Fault {
			if broken.Load() {
				return faultcas.Fault{Refuse: cas.Denied}
			}
			return faultcas.Fault{}
		})
		a := w.replica("a", fast, WithRequests(RequestsFrom(q))).run()
		defer a.stop()
		sleep(time.Minute)
		if a.role() != RoleStandby {
			t.Fatal("claimed without having read the request object")
		}
		broken.Store(false)
		sleep(3 * time.Second)
		if a.role() != RoleLeader {
			t.Fatal("does not claim although it can be read again")
		}
		broken.Store(true)
		sleep(time.Hour)
		if a.role() != RoleLeader || w.record().Epoch != 1 {
			t.Error("the leader did not stay")
		}
	})
}
