package e2e

import (
	"context"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/sf2loki/sf2loki-ha/coordinator"
	"github.com/sf2loki/sf2loki-ha/e2e/cluster"
)

// ask changes the request document of a backend, as a person would.
func (b backend) ask(t *testing.T, change func(coordinator.Request) coordinator.Request) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	q := coordinator.RequestsFrom(b.asking)
	state, err := q.ReadRequest(ctx)
	if err == nil {
		err = q.WriteRequest(ctx, change(state.Request.Aged(state.Age)), state.Version)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// await waits until the lease record is as wanted.
func (b backend) await(t *testing.T, within time.Duration, what string, want func(coordinator.Record) bool) coordinator.Record {
	t.Helper()
	for end := time.Now().Add(within); ; time.Sleep(50 * time.Millisecond) {
		if rec := b.record(t); want(rec) {
			return rec
		} else if time.Now().After(end) {
			t.Fatalf("%s: not within %v; the lease is %s by %q at epoch %d", what, within, rec.State, rec.Holder, rec.Epoch)
		}
	}
}

func TestAHoldStopsThePairUntilItIsTakenBackAndAStepDownMovesIt(t *testing.T) {
	for name, open := range backends() {
		b := open(t) // its environment is the parent's, so that the pairs may run side by side
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newPair(t, b)
			// 1. A hold: the leader releases within a renewal, and nobody claims.
			b.ask(t, func(r coordinator.Request) coordinator.Request {
				return r.WithHold(&coordinator.Hold{ID: "h", Reason: "repair", By: "test", For: 10 * time.Minute})
			})
			b.await(t, 6*time.Second, "released for the hold", func(r coordinator.Record) bool {
				return r.State == coordinator.Released && r.Obeyed == "h"
			})
			stopped := len(p.History().Acts())
			time.Sleep(b.budget.Failover + time.Second)
			if rec := b.record(t); rec.State != coordinator.Released || len(p.History().Acts()) != stopped {
				t.Fatalf("somebody leads during the hold: %q at epoch %d", rec.Holder, rec.Epoch)
			}
			if hold, err := p.leader.Metric("sf2loki_ha_hold_remaining_seconds"); err != nil || !nearly(hold, 585) {
				t.Errorf("%s s of hold left, %v", hold, err)
			}
			// 2. Taken back: somebody leads within a poll or two.
			b.ask(t, func(r coordinator.Request) coordinator.Request { return r.WithHold(nil) })
			next := p.successor(t, 8*time.Second)
			rec := b.await(t, time.Second, "held again", func(r coordinator.Record) bool { return r.State == coordinator.Held })
			// 3. A step-down of exactly this term: the other one leads.
			b.ask(t, func(r coordinator.Request) coordinator.Request {
				return r.WithStepDown(&coordinator.StepDown{ID: "s", Reason: "move", Target: coordinator.Target{Epoch: rec.Epoch, Term: rec.Term}})
			})
			p.epoch = next.Epoch
			if then := p.successor(t, 8*time.Second); then.Replica == next.Replica {
				t.Errorf("%s leads again after it was asked to step down", then.Replica)
			}
			p.sound(t)
		})
	}
}

// nearly tells whether a metric is about what is wanted.
func nearly(text string, want float64) bool {
	got, err := strconv.ParseFloat(text, 64)
	return err == nil && got > want-25 && got < want+15
}

func TestANewRevisionIsHandedTheLeaseOnceAndABrokenOneGivesItBack(t *testing.T) {
	t.Parallel()
	b := fileBackend(t)
	p := newPair(t, b)
	// 1. A replica of another configuration: it asks, and leads.
	started := time.Now()
	fresh, err := p.StartAs("C", cluster.Launch{Env: []string{"SF2LOKI_SERVICE__SHUTDOWN_GRACE=9s"}})
	if err != nil {
		t.Fatal(err)
	}
	if next := p.successor(t, 15*time.Second); next.Replica != "C" {
		t.Fatalf("%s leads, want the new revision", next.Replica)
	}
	t.Logf("the new revision acts %v after its start", time.Since(started).Round(100*time.Millisecond))
	rec := b.record(t)
	if last := rec.History[len(rec.History)-1]; last.Revision == rec.Revision || last.Reason != "handover to revision "+rec.Revision {
		t.Errorf("%+v", last)
	}
	// 2. It is killed: an old one leads, and a second one of the new revision
	// does not take it away again.
	p.epoch = rec.Epoch
	if err := fresh.Signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	old := p.successor(t, 30*time.Second)
	if _, err := p.StartAs("D", cluster.Launch{Env: []string{"SF2LOKI_SERVICE__SHUTDOWN_GRACE=9s"}}); err != nil {
		t.Fatal(err)
	}
	time.Sleep(8 * time.Second)
	if rec := b.record(t); rec.Epoch != old.Epoch || rec.Holder != old.Replica {
		t.Errorf("%q leads at epoch %d; want %q at %d", rec.Holder, rec.Epoch, old.Replica, old.Epoch)
	}
	p.sound(t)
}

func TestWorkThatCrashesEverywhereIsStartedMoreAndMoreRarely(t *testing.T) {
	t.Parallel()
	b := fileBackend(t)
	b.config += "workload: {unfenced_state: accept}\n" // it writes nothing
	c := newCluster(t, b, "/bin/false")
	start(t, c, "A")
	start(t, c, "B")
	first := b.awaitExisting(t, 20*time.Second)
	// Three failures each, and then those who failed wait.
	rec := b.await(t, 60*time.Second, "both gave up", func(r coordinator.Record) bool {
		return r.State == coordinator.Released && len(r.Work.Incarnations) == 2 && r.Work.Failures >= 6
	})
	if rec.Work.Backoff != 32*time.Second || rec.Epoch < first.Epoch+1 {
		t.Errorf("%+v at epoch %d", rec.Work, rec.Epoch)
	}
	for _, past := range rec.History {
		if past.Reason != "crash loop" {
			t.Errorf("%+v", past)
		}
	}
	time.Sleep(10 * time.Second)
	if again := b.record(t); again.Epoch != rec.Epoch || again.State != coordinator.Released {
		t.Errorf("epoch %d, %s after 10 s of a back-off of 32 s", again.Epoch, again.State)
	}
}

// awaitExisting waits for the first record.
func (b backend) awaitExisting(t *testing.T, within time.Duration) coordinator.Record {
	t.Helper()
	for end := time.Now().Add(within); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		if v, err := b.lease.Load(t.Context()); err == nil && len(v.Data) > 0 {
			return b.record(t)
		}
	}
	t.Fatalf("no lease within %v", within)
	return coordinator.Record{}
}
