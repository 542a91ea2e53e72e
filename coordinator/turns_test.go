package coordinator

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sf2loki/sf2loki-ha/cas"
	"github.com/sf2loki/sf2loki-ha/internal/faultcas"
)

// leader returns the one replica that leads.
func leader(t *testing.T, all []*replica) *replica {
	t.Helper()
	var found *replica
	for _, r := range all {
		if r.role() == RoleLeader {
			if found != nil {
				t.Fatalf("%s and %s lead", found.name, r.name)
			}
			found = r
		}
	}
	if found == nil {
		t.Fatal("nobody leads")
	}
	return found
}

// Losing a race, or a term, is an ordinary event: who lost goes on competing,
// and leads when its turn comes.
func TestEveryReplicaGetsItsTurnHoweverOftenItLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		var all []*replica
		for i := range 5 {
			all = append(all, w.replica(fmt.Sprint("r", i), fast).run())
		}
		for epoch := int64(1); len(all) > 0; epoch++ {
			sleep(10 * time.Second)
			now := leader(t, all)
			if got := w.record().Epoch; got != epoch {
				t.Errorf("%s leads at epoch %d, want %d", now.name, got, epoch)
			}
			now.stop()
			for i, r := range all {
				if r == now {
					all = append(all[:i:i], all[i+1:]...)
					break
				}
			}
		}
		w.noOverlap()
	})
}

// A lease that somebody deletes is made again once, by one replica, with a
// higher epoch, and then there is peace.
func TestAfterADeletionOneLeaderComesBackAndStays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		var all []*replica
		for i := range 3 {
			all = append(all, w.replica(fmt.Sprint("r", i), fast).run())
		}
		sleep(10 * time.Second)
		for deletions := 1; deletions <= 5; deletions++ {
			w.store.Remove(leaseName)
			sleep(2*fast.TTL + 2*fast.RenewInterval)
			leader(t, all)
			sleep(10 * time.Minute)
			leader(t, all)
			if rec := w.record(); len(w.starts()) != deletions+1 || rec.Epoch != int64(deletions+1) {
				t.Errorf("after %d deletions: %d terms, epoch %d", deletions, len(w.starts()), rec.Epoch)
			}
		}
		for _, r := range all {
			r.stop()
		}
		w.noOverlap()
	})
}

// Names and incarnations are compared as a whole: x-1 is not x-10.
func TestReplicasWhoseNamesBeginAlikeAreStrangers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		named := func(name string) *replica {
			n := 0
			id := func() string {
				n++
				if n == 1 {
					return name // the incarnation
				}
				return fmt.Sprintf("%s.%d", name, n)
			}
			return w.replica(name, fast, WithRandom(id, func() float64 { return 0.5 }), WithFence(&fences{fence: Fence{Found: true}}))
		}
		a := named("x-1").run()
		sleep(7 * time.Second)
		b := named("x-10").run()
		sleep(time.Minute)
		if a.role() != RoleLeader || b.count(Acquired) != 0 {
			t.Fatalf("x-1 is %s, x-10 acquired %d times", a.role(), b.count(Acquired))
		}
		// A crash: x-10 waits for the whole window of a stranger.
		a.reg.Plan(func(faultcas.Op, int) faultcas.Fault { return faultcas.Fault{Refuse: cas.Ambiguous} })
		sleep(4 * time.Second)
		if b.count(Acquired) != 0 {
			t.Error("x-10 took the lease of x-1 for its own")
		}
		sleep(5 * time.Second)
		if b.role() != RoleLeader || w.record().Epoch != 2 {
			t.Fatalf("x-10 is %s at epoch %d", b.role(), w.record().Epoch)
		}
		// A hand-over: x-1 does not wait as it would for a tombstone of its own.
		a.reg.Plan(nil)
		sleep(5 * time.Second)
		b.stop()
		sleep(1100 * time.Millisecond)
		if a.role() != RoleLeader || w.record().Epoch != 3 {
			t.Errorf("x-1 is %s at epoch %d, 1.1 s after x-10 released", a.role(), w.record().Epoch)
		}
		a.stop()
		w.noOverlap()
	})
}

// A deadline bounds how long a call is waited for, not when its write lands. A
// renewal that lands late may delay the takeover; it never prolongs a term that
// was given up, and never hits the successor.
func TestARenewalThatLandsLateNeverHitsTheSuccessor(t *testing.T) {
	for late := 200 * time.Millisecond; late < 3*fast.TTL; late += 400 * time.Millisecond {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t)
			a := w.replica("a", fast).run()
			sleep(7 * time.Second)
			b := w.replica("b", fast).run()
			sleep(3 * time.Second)
			a.reg.Plan(func(op faultcas.Op, _ int) faultcas.Fault {
				if op == faultcas.Load {
					return faultcas.Fault{Refuse: cas.Ambiguous}
				}
				return faultcas.Fault{LandLater: late}
			})
			sleep(5 * fast.TTL)
			if b.role() != RoleLeader || a.role() != RoleStandby || b.count(Lost)+b.count(Expired) != 0 || w.record().Epoch != 2 {
				t.Errorf("landing after %v: a %s, b %s at epoch %d, lost %d", late, a.role(), b.role(), w.record().Epoch, b.count(Lost))
			}
			a.reg.Plan(nil)
			a.stop()
			b.stop()
			sleep(time.Minute)
			w.noOverlap()
		})
	}
}

// Several electors in one process are several replicas: nothing is shared
// between them, and each runs once.
func TestElectorsOfOneProcessShareNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		store := FromRegister(w.reg) // even the same store
		cfg := fast
		cfg.Identity = "one process"
		ctx, cancel := context.WithCancel(context.Background())
		done := make(chan error, 8)
		var electors []*Elector
		for range 8 {
			e, err := New(store, cfg, WithClock(fakeClock{w.start}))
			if err != nil {
				t.Fatal(err)
			}
			electors = append(electors, e)
			go func() {
				done <- e.Run(ctx, func(ctx context.Context, own *Term) error {
					w.act(e.Incarnation(), "start", own.Epoch(), nil)
					<-ctx.Done()
					w.act(e.Incarnation(), "end", own.Epoch(), nil)
					return nil
				})
			}()
		}
		for round := range 20 {
			sleep(10 * time.Second)
			leaders := 0
			for _, e := range electors {
				if e.Status().Role == RoleLeader {
					leaders++
				}
			}
			if leaders != 1 {
				t.Errorf("round %d: %d leaders", round, leaders)
			}
			for _, e := range electors {
				e.StepDown("next")
			}
		}
		cancel()
		for range electors {
			if err := <-done; err != nil {
				t.Error(err)
			}
		}
		w.noOverlap()
	})
}
