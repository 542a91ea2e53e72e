package coordinator

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sf2loki/sf2loki-ha/cas"
	"github.com/sf2loki/sf2loki-ha/internal/faultcas"
)

// A release that is not answered well is sent again, as long as the lease would
// run anyway: the other replica must not wait for a ttl because of one 503.
func TestAReleaseIsTriedAgainAfterEveryAnswerThatMayPass(t *testing.T) {
	faults := map[string]faultcas.Fault{
		"applied, then 503":         {Lose: cas.Ambiguous},
		"applied, then 409":         {Lose: cas.Contended},
		"success without a version": {NoVersion: true},
	}
	for _, class := range []cas.Class{cas.Ambiguous, cas.Contended, cas.Denied, cas.NoBucket, cas.Unsupported} {
		faults["refused: "+string(class)] = faultcas.Fault{Refuse: class}
	}
	for name, fault := range faults {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				a := w.replica("a", fast).run()
				sleep(7 * time.Second)
				b := w.replica("b", fast).run()
				defer b.stop()
				sleep(3 * time.Second)
				n := 0
				a.reg.Plan(func(op faultcas.Op, _ int) faultcas.Fault {
					if op == faultcas.Replace {
						if n++; n <= 3 { // the announcement of the stop, and two attempts to release
							return fault
						}
					}
					return faultcas.Fault{}
				})
				asked := time.Now()
				a.stop()
				// A tombstone that has landed may be claimed before its writer knows.
				released := a.count(ReleasedLease)+a.count(ReleaseFailed) == 1
				if took := time.Since(asked); took > 2*time.Second || !released {
					t.Errorf("%d releases after %v", a.count(ReleasedLease), took)
				}
				sleep(time.Second)
				if b.role() != RoleLeader || w.record().Epoch != 2 {
					t.Errorf("the standby is %s at epoch %d", b.role(), w.record().Epoch)
				}
				w.noOverlap()
			})
		})
	}
}

// A lease that could not be given back runs out, and the other replica takes it
// over by its own clock.
func TestALeaseThatCannotBeReleasedRunsOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		a := w.replica("a", fast).run()
		sleep(7 * time.Second)
		b := w.replica("b", fast).run()
		defer b.stop()
		sleep(3 * time.Second)
		a.reg.Plan(refusing(cas.Denied, faultcas.Replace))
		renewed := w.record().RenewedAt
		a.stop()
		if a.count(ReleaseFailed) != 1 || a.count(ReleasedLease) != 0 || w.record().State != Held {
			t.Fatalf("release failed %d, released %d, state %q", a.count(ReleaseFailed), a.count(ReleasedLease), w.record().State)
		}
		sleep(fast.Budget().Failover)
		if b.role() != RoleLeader || w.record().Epoch != 2 {
			t.Errorf("%s, epoch %d, %v after the last renewal", b.role(), w.record().Epoch, time.Since(renewed))
		}
		w.noOverlap()
	})
}

// "Not released" and "taken over by another" are different news: only one of
// them costs the other replica a ttl, and neither is a release.
func TestAFailedReleaseSaysWhetherAnotherHolderIsThere(t *testing.T) {
	for name, c := range map[string]struct {
		class cas.Class
		says  string
		never string
	}{
		"another holder":    {cas.Conflict, "taken over", "runs out"},
		"nobody we know of": {cas.Denied, "runs out", "taken over"},
	} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			observe := LogTo(slog.New(slog.NewTextHandler(&out, nil)))
			b := newBench(t, fast, false)
			b.leads()
			b.tick(time.Second)
			b.step(input{kind: inWorkEnded})
			failed := false
			for begun := b.now; !failed && b.now < begun.Add(20*time.Second); {
				if b.m.op != nil {
					b.fails(c.class)
				} else {
					b.tick(50 * time.Millisecond)
				}
				if b.has(ReleasedLease) {
					t.Fatal("reported as released")
				}
				failed = b.has(ReleaseFailed)
				for _, a := range b.last {
					if a.kind == doEmit && a.event.Kind == ReleaseFailed {
						observe(a.event)
					}
				}
			}
			if got := out.String(); !failed || !strings.Contains(got, c.says) || strings.Contains(got, c.never) {
				t.Errorf("failed %v, log %q; want it to say %q", failed, got, c.says)
			}
		})
	}
}

// watched tells what is true when the tombstone is sent.
type watched struct {
	LeaseStore
	released func()
}

func (s watched) Replace(ctx context.Context, r Record, old cas.Version) (cas.Version, error) {
	if r.State == Released {
		s.released()
	}
	return s.LeaseStore.Replace(ctx, r, old)
}

// The work has ended, and this replica no longer calls itself leader, before the
// tombstone is even sent: from then on another one may lead.
func TestNobodyLeadsAnyMoreWhenTheReleaseIsSent(t *testing.T) {
	for name, end := range map[string]func(r *replica, cancel context.CancelFunc){
		"requested stop": func(_ *replica, cancel context.CancelFunc) { cancel() },
		"step-down":      func(r *replica, _ context.CancelFunc) { r.elector.StepDown("asked") },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				a := w.replica("a", fast)
				a.drain = 1500 * time.Millisecond
				var mu sync.Mutex
				var term *Term
				sent := 0
				a.elector.stores.lease = watched{a.elector.stores.lease, func() {
					mu.Lock()
					defer mu.Unlock()
					sent++
					if len(w.ends()) != 1 {
						t.Error("released while its work runs")
					}
					if role := a.role(); role == RoleLeader {
						t.Errorf("released while it calls itself %s", role)
					}
					if term.CheckFence() == nil {
						t.Error("released while its term allows to act")
					}
				}}
				ctx, cancel := context.WithCancel(context.Background())
				defer cancel()
				go func() {
					a.done <- a.elector.Run(ctx, func(ctx context.Context, own *Term) error {
						mu.Lock()
						term = own
						mu.Unlock()
						return a.lead(ctx, own)
					})
				}()
				sleep(7 * time.Second)
				end(a, cancel)
				sleep(3 * time.Second)
				if sent != 1 || w.record().State != Released {
					t.Errorf("%d releases, state %q", sent, w.record().State)
				}
				cancel()
				if err := <-a.done; err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// Work that ends by itself, well, gives its lease back and leaves the next term
// to whoever claims it first; nobody goes on holding a lease without work.
func TestWorkThatEndsByItselfGivesItsLeaseBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		a := w.replica("a", fast)
		ctx, cancel := context.WithCancel(context.Background())
		terms := 0
		go func() {
			a.done <- a.elector.Run(ctx, func(ctx context.Context, own *Term) error {
				terms++
				w.act(a.name, "start", own.Epoch(), nil)
				select {
				case <-time.After(10 * time.Second): // all there was to do
				case <-ctx.Done():
				}
				w.act(a.name, "end", own.Epoch(), nil)
				return nil
			})
		}()
		sleep(7 * time.Second)
		b := w.replica("b", fast).run()
		sleep(11 * time.Second)
		if b.role() != RoleLeader || a.role() != RoleStandby || w.record().Epoch != 2 {
			t.Errorf("a %s, b %s at epoch %d", a.role(), b.role(), w.record().Epoch)
		}
		b.stop()
		sleep(3 * time.Second)
		if a.role() != RoleLeader || terms != 2 {
			t.Errorf("a %s after %d terms; want it to work again", a.role(), terms)
		}
		cancel()
		if err := <-a.done; err != nil {
			t.Error(err)
		}
		w.noOverlap()
	})
}
