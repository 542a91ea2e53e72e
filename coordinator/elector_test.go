package coordinator

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sf2loki/sf2loki-ha/cas"
	"github.com/sf2loki/sf2loki-ha/internal/faultcas"
)

func TestAnEmptyBucketGetsItsFirstLeaderAfterOneWindow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		a := w.replica("a", fast).run()
		defer a.stop()
		sleep(6*time.Second - time.Millisecond)
		if a.role() != RoleStandby {
			t.Fatalf("claimed an absent lease before a whole ttl had passed")
		}
		sleep(100 * time.Millisecond)
		if a.role() != RoleLeader || w.record().Epoch != 1 {
			t.Fatalf("role %s, record %+v; want leader at epoch 1", a.role(), w.record())
		}
	})
}

func TestOneOfManyReplicasLeadsAndKeepsItsEpoch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		var all []*replica
		for i := range 10 {
			all = append(all, w.replica(fmt.Sprint("r", i), fast).run())
		}
		sleep(time.Hour)
		leaders := 0
		for _, r := range all {
			if r.role() == RoleLeader {
				leaders++
			}
		}
		rec := w.record()
		if leaders != 1 || rec.Epoch != 1 || len(w.starts()) != 1 {
			t.Errorf("%d leaders, epoch %d, %d terms; want one leader, epoch 1, one term", leaders, rec.Epoch, len(w.starts()))
		}
		for _, r := range all {
			r.stop()
		}
		w.noOverlap()
	})
}

func TestTheOldWorkEndsBeforeAPartitionedLeaderIsReplaced(t *testing.T) {
	for _, drain := range []time.Duration{0, time.Hour} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t)
			a := w.replica("a", fast)
			a.drain = drain
			a.run()
			sleep(7 * time.Second)
			b := w.replica("b", fast).run()
			sleep(time.Minute)
			a.reg.Plan(func(faultcas.Op, int) faultcas.Fault { return faultcas.Fault{Refuse: cas.Ambiguous} })
			cut := time.Now()
			sleep(20 * time.Second)
			if b.role() != RoleLeader || a.role() != RoleStandby {
				t.Fatalf("a is %s, b is %s; want b to lead", a.role(), b.role())
			}
			w.noOverlap()
			end := w.ends()[0]
			if !errors.Is(end.cause, ErrExpired) {
				t.Errorf("the work ended with %v, want ErrExpired", end.cause)
			}
			if took := w.starts()[1].at.Sub(cut); took > fast.Budget().Failover {
				t.Errorf("takeover after %v, published bound %v", took, fast.Budget().Failover)
			}
			if rec := w.record(); rec.Epoch != 2 || rec.Holder != "b" {
				t.Errorf("record %+v; want b at epoch 2", rec)
			}
			a.reg.Plan(nil)
			b.stop()
			a.stop()
		})
	}
}

func TestACleanStopHandsOverWithinAboutOnePoll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		a := w.replica("a", fast)
		a.drain = 1500 * time.Millisecond
		a.run()
		sleep(8 * time.Second)
		b := w.replica("b", fast).run()
		sleep(3 * time.Second)
		stopped := time.Now()
		a.stop()
		if rec := w.record(); rec.State != Released || rec.Epoch != 1 || rec.Incarnation != a.elector.Incarnation() {
			t.Errorf("after a clean stop: %+v; want our tombstone with epoch 1", rec)
		}
		sleep(time.Second)
		if b.role() != RoleLeader {
			t.Fatal("the standby did not take over")
		}
		w.noOverlap()
		if took := w.starts()[1].at.Sub(stopped) - a.drain; took > 300*time.Millisecond {
			t.Errorf("handover %v after the work had ended; a standby polls every 200 ms during a planned stop", took)
		}
		b.stop()
	})
}

func TestALeaseIsNotReleasedWhileItsWorkRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		a := w.replica("a", fast)
		stuck := make(chan struct{})
		ctx, cancel := context.WithCancel(t.Context())
		go func() {
			a.done <- a.elector.Run(ctx, func(ctx context.Context, _ *Term) error {
				<-stuck // ignores its context
				return nil
			})
		}()
		sleep(7 * time.Second)
		cancel()
		sleep(time.Minute)
		if w.record().State != Held || a.count(Overran) != 1 {
			t.Fatalf("state %q, overran %d: a lease whose work did not end must run out, not be released", w.record().State, a.count(Overran))
		}
		close(stuck)
		sleep(time.Second)
		if w.record().State != Released {
			t.Error("not released after the work had ended")
		}
		if err := <-a.done; err != nil {
			t.Error(err)
		}
	})
}

func TestTwoProcessesWithOneIdentityAreTwoReplicas(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		cfg := fast
		cfg.Identity = "localhost-1"
		a, b := w.replica("a", cfg).run(), w.replica("b", cfg).run()
		sleep(time.Minute)
		if (a.role() == RoleLeader) == (b.role() == RoleLeader) {
			t.Errorf("a %s, b %s; want exactly one leader", a.role(), b.role())
		}
		a.stop()
		sleep(10 * time.Second)
		if b.role() != RoleLeader || w.record().Epoch > 2 {
			t.Errorf("b %s at epoch %d", b.role(), w.record().Epoch)
		}
		b.stop()
		w.noOverlap()
	})
}

func TestARestartedProcessDoesNotResumeItsFormerLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		cfg := fast
		cfg.Identity = "task-1"
		a := w.replica("a", cfg).run()
		sleep(7 * time.Second)
		a.reg.Plan(func(faultcas.Op, int) faultcas.Fault { return faultcas.Fault{Hang: true} }) // killed: writes nothing more
		again := w.replica("a2", cfg).run()
		sleep(5 * time.Second)
		if again.role() != RoleStandby {
			t.Fatal("took its predecessor's lease without waiting")
		}
		sleep(4 * time.Second)
		if again.role() != RoleLeader || w.record().Epoch != 2 {
			t.Errorf("role %s, epoch %d; want a new epoch", again.role(), w.record().Epoch)
		}
		a.reg.Plan(nil)
		a.reg.Free()
		a.stop()
		again.stop()
	})
}

func TestRunTwiceIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		a := w.replica("a", fast).run()
		sleep(time.Second)
		if err := a.elector.Run(t.Context(), a.lead); err == nil {
			t.Error("a second Run was accepted")
		}
		a.stop()
	})
}

func TestAHundredTermsLeaveNothingBehind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		a, b := w.replica("a", fast).run(), w.replica("b", fast).run()
		sleep(10 * time.Second)
		for range 100 {
			a.elector.StepDown("test")
			b.elector.StepDown("test")
			sleep(10 * time.Second)
		}
		if got := len(w.starts()); got < 101 {
			t.Errorf("%d terms", got)
		}
		if got := len(w.record().History); got != maxHistory {
			t.Errorf("history of %d terms, want %d", got, maxHistory)
		}
		a.stop()
		b.stop()
		w.noOverlap()
		// synctest fails the test if a goroutine is left.
	})
}
