package coordinator

import (
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sf2loki/sf2loki-ha/cas"
	"github.com/sf2loki/sf2loki-ha/internal/faultcas"
)

// refusing is a plan: these kinds of request are refused with that class.
func refusing(class cas.Class, ops ...faultcas.Op) func(faultcas.Op, int) faultcas.Fault {
	return func(op faultcas.Op, _ int) faultcas.Fault {
		for _, o := range ops {
			if o == op {
				return faultcas.Fault{Refuse: class}
			}
		}
		return faultcas.Fault{}
	}
}

// Only a renewal that landed prolongs a term. A store that still answers reads,
// and credentials that are gone altogether, end it at its stop instant; the
// other replica leads by the published bound, and this one recovers by itself.
func TestALeaderWhoseWritesAreRefusedStopsInTimeAndRecovers(t *testing.T) {
	for what, ops := range map[string][]faultcas.Op{
		"writes refused, reads answered": {faultcas.Create, faultcas.Replace},
		"everything refused":             {faultcas.Load, faultcas.Create, faultcas.Replace},
	} {
		for _, class := range []cas.Class{cas.Ambiguous, cas.Contended, cas.Denied, cas.NoBucket, cas.Unsupported} {
			t.Run(fmt.Sprintf("%s, %s", what, class), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					w := newWorld(t)
					a := w.replica("a", fast).run()
					defer a.stop()
					sleep(7 * time.Second)
					b := w.replica("b", fast).run()
					sleep(time.Minute)
					a.reg.Plan(refusing(class, ops...))
					renewed := w.record().RenewedAt
					before := a.reg.Calls(faultcas.Load) + a.reg.Calls(faultcas.Replace)
					sleep(10 * time.Second)
					ends, starts, budget := w.ends(), w.starts(), fast.Budget()
					if len(ends) != 1 || len(starts) != 2 {
						t.Fatalf("%d ends and %d starts within 10 s; want one of each replica", len(ends), len(starts))
					}
					if after := ends[0].at.Sub(renewed); !errors.Is(ends[0].cause, ErrExpired) || after > budget.StopAfter+answerSlack {
						t.Errorf("the work ended with %v, %v after the last renewal; its stop instant is %v", ends[0].cause, after, budget.StopAfter)
					}
					if after := starts[1].at.Sub(renewed); after > budget.Failover {
						t.Errorf("the other replica leads after %v, bound %v", after, budget.Failover)
					}
					if n := a.reg.Calls(faultcas.Load) + a.reg.Calls(faultcas.Replace) - before; n > 90 {
						t.Errorf("%d requests in 10 s", n)
					}
					a.reg.Plan(nil)
					sleep(time.Minute)
					if a.role() != RoleStandby || b.count(Lost) != 0 {
						t.Errorf("a %s; b lost %d", a.role(), b.count(Lost))
					}
					b.stop()
					sleep(2 * time.Second)
					if a.role() != RoleLeader {
						t.Error("the former leader does not compete any more")
					}
					w.noOverlap()
				})
			})
		}
	}
}

// Work that was told to end because renewals failed gives its lease back as soon
// as the store answers: nobody waits for the rest of the ttl.
func TestALeaderThatGaveUpReleasesOnceTheStoreAnswersAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		a := w.replica("a", fast).run()
		defer a.stop()
		sleep(7 * time.Second)
		b := w.replica("b", fast).run()
		defer b.stop()
		sleep(3 * time.Second)
		a.reg.Plan(refusing(cas.Denied, faultcas.Replace))
		renewed := w.record().RenewedAt
		for a.count(Expired) == 0 {
			sleep(10 * time.Millisecond)
		}
		a.reg.Plan(nil)
		sleep(2 * time.Second)
		starts := w.starts()
		if len(starts) != 2 || a.count(ReleasedLease) != 1 {
			t.Fatalf("%d terms, %d releases", len(starts), a.count(ReleasedLease))
		}
		if after := starts[1].at.Sub(renewed); after >= fast.TTL {
			t.Errorf("the standby led %v after the last renewal: it waited for the ttl although the lease was released", after)
		}
		w.noOverlap()
	})
}

// A stop ends within the time for the drain and a few calls, whatever the store
// does and wherever it finds the replica; afterwards nothing is sent any more.
func TestAStopIsBoundedWhateverTheStoreDoes(t *testing.T) {
	faults := map[string]faultcas.Fault{
		"never answers":           {Hang: true},
		"answers too late":        {Late: time.Hour},
		"loses every answer":      {Lose: cas.Ambiguous},
		"applies after a minute":  {LandLater: time.Minute},
		"succeeds without proof":  {NoVersion: true},
		"resets every connection": {Refuse: cas.Ambiguous},
	}
	for _, class := range []cas.Class{cas.Contended, cas.Denied, cas.NoBucket, cas.Unsupported, cas.Conflict, cas.NotFound} {
		faults["refuses: "+string(class)] = faultcas.Fault{Refuse: class}
	}
	for where, wait := range map[string]time.Duration{"a standby": 3 * time.Second, "a claim": 6 * time.Second, "a leader": 9 * time.Second} {
		for what, fault := range faults {
			t.Run(where+", "+what, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					w := newWorld(t)
					a := w.replica("a", fast).run()
					sleep(wait - 300*time.Millisecond)
					a.reg.Plan(func(faultcas.Op, int) faultcas.Fault { return fault })
					sleep(350 * time.Millisecond)
					asked := time.Now()
					a.stop()
					// Half a ttl of attempts to release, and the call under way.
					if took, limit := time.Since(asked), fast.TTL/2+2*time.Second; took > limit {
						t.Errorf("stopped after %v, limit %v", took, limit)
					}
					calls := a.reg.Calls(faultcas.Load) + a.reg.Calls(faultcas.Create) + a.reg.Calls(faultcas.Replace)
					a.reg.Free()
					sleep(time.Hour) // also for requests that still land
					if n := a.reg.Calls(faultcas.Load) + a.reg.Calls(faultcas.Create) + a.reg.Calls(faultcas.Replace) - calls; n != 0 {
						t.Errorf("%d requests after Run had returned", n)
					}
					if len(w.starts()) != len(w.ends()) {
						t.Errorf("%d terms, %d ended", len(w.starts()), len(w.ends()))
					}
				})
			})
		}
	}
}

// A long drain goes on through single failures of the store: the work keeps the
// time it was promised, and nobody overtakes it.
func TestALongDrainSurvivesFailuresThatPass(t *testing.T) {
	for _, class := range []cas.Class{cas.Ambiguous, cas.Contended, cas.Denied} {
		t.Run(string(class), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				a := w.replica("a", fast)
				a.drain = 24 * time.Second
				a.run()
				sleep(7 * time.Second)
				b := w.replica("b", fast).run()
				defer b.stop()
				sleep(3 * time.Second)
				n := map[faultcas.Op]int{}
				a.reg.Plan(func(op faultcas.Op, _ int) faultcas.Fault {
					if n[op]++; n[op]%3 != 0 {
						return faultcas.Fault{Refuse: class}
					}
					return faultcas.Fault{}
				})
				asked := time.Now()
				a.stop()
				if took := w.ends()[0].at.Sub(asked); took != a.drain {
					t.Errorf("the work had %v to drain, want %v", took, a.drain)
				}
				if a.count(Lost)+a.count(Expired)+a.count(Overran) != 0 || a.count(ReleasedLease) != 1 {
					t.Errorf("lost %d, expired %d, overran %d, released %d", a.count(Lost), a.count(Expired), a.count(Overran), a.count(ReleasedLease))
				}
				sleep(time.Second)
				if b.role() != RoleLeader {
					t.Error("the standby did not take over")
				}
				w.noOverlap()
			})
		})
	}
}

// The drain is cut so that drain and release fit into the time between SIGTERM
// and SIGKILL of the platform.
func TestTheDrainFitsIntoTheStopWindowOfThePlatform(t *testing.T) {
	for _, window := range []time.Duration{5 * time.Second, 10 * time.Second, 30 * time.Second} {
		synctest.Test(t, func(t *testing.T) {
			cfg := fast
			cfg.PlatformStopWindow = window
			w := newWorld(t)
			a := w.replica("a", cfg)
			a.drain = time.Hour // ends when it has to
			a.run()
			sleep(7 * time.Second)
			asked := time.Now()
			a.stop()
			if took := time.Since(asked); took >= window || took < window-3*time.Second {
				t.Errorf("window of %v: stopped after %v", window, took)
			}
			if w.record().State != Released {
				t.Errorf("window of %v: not released", window)
			}
		})
	}
}
