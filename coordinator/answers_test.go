package coordinator

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sf2loki/sf2loki-ha/cas"
	"github.com/sf2loki/sf2loki-ha/internal/faultcas"
)

func TestACleanConflictEndsTheTermAtOnceWithoutAReadBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		a := w.replica("a", fast)
		a.drain = time.Hour // would drain for ever if it were given any grace
		a.run()
		sleep(7 * time.Second)
		reads := a.reg.Calls(faultcas.Load)
		w.put(`{"holder":"thief","expires_at":"","epoch":9}`)
		for len(w.ends()) == 0 {
			sleep(time.Millisecond)
			if a.role() != RoleLeader && len(w.ends()) == 0 {
				t.Fatal("no longer leading, and the work still runs")
			}
		}
		if got := a.reg.Calls(faultcas.Load); got > reads+1 {
			t.Errorf("%d reads in the loss path; want none before the work was dead", got-reads)
		}
		if cause := w.ends()[0].cause; !errors.Is(cause, ErrLost) {
			t.Errorf("cause %v, want ErrLost", cause)
		}
		if a.count(Lost) != 1 {
			t.Errorf("%d lost events", a.count(Lost))
		}
		a.stop()
		if w.record().Holder != "thief" {
			t.Error("a loser wrote over the lease it lost")
		}
	})
}

// An answer may be lost for every single renewal: the write landed, so the
// leader must not demote itself (S-02, A1, A2, A7).
func TestALostAnswerPerRenewalForAnHourKeepsTheLeader(t *testing.T) {
	for name, fault := range map[string]faultcas.Fault{
		"applied, then timeout": {Lose: cas.Ambiguous},
		"applied, then 409":     {Lose: cas.Contended},
		"success, no version":   {NoVersion: true},
		"applied, answer late":  {Late: time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				a := w.replica("a", fast).run()
				b := w.replica("b", fast).run()
				sleep(10 * time.Second)
				leader := a
				if b.role() == RoleLeader {
					leader = b
				}
				odd := false
				leader.reg.Plan(func(op faultcas.Op, n int) faultcas.Fault {
					if op == faultcas.Replace {
						if odd = !odd; odd {
							return fault
						}
					}
					return faultcas.Fault{}
				})
				sleep(time.Hour)
				if leader.role() != RoleLeader || leader.count(Lost)+leader.count(Expired) != 0 {
					t.Fatalf("role %s, lost %d, expired %d; a landed write never causes self-demotion", leader.role(), leader.count(Lost), leader.count(Expired))
				}
				if w.record().Epoch != 1 || leader.count(WriteSettled) == 0 {
					t.Errorf("epoch %d, %d writes settled", w.record().Epoch, leader.count(WriteSettled))
				}
				leader.reg.Plan(nil)
				a.stop()
				b.stop()
				w.noOverlap()
			})
		})
	}
}

// Every write is applied and no answer to a write ever arrives, not even a
// conflict: only a read can tell, and it has to come in time.
func TestALeaderWhoseWritesAreNeverAnsweredReadsThatTheyLanded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		a := w.replica("a", fast).run()
		sleep(7 * time.Second)
		a.reg.Plan(func(op faultcas.Op, _ int) faultcas.Fault {
			if op == faultcas.Load {
				return faultcas.Fault{}
			}
			return faultcas.Fault{Lose: cas.Ambiguous}
		})
		sleep(10 * time.Minute)
		if a.role() != RoleLeader || a.count(Acquired) != 1 {
			t.Errorf("role %s, %d acquisitions; a landed write never causes self-demotion", a.role(), a.count(Acquired))
		}
		a.stop()
		if w.record().State != Released {
			t.Error("the release was not settled")
		}
	})
}

func TestARefusedRenewalIsRetriedAtOnceAndCostsNothing(t *testing.T) {
	for _, class := range []cas.Class{cas.Ambiguous, cas.Contended, cas.Denied, cas.NoBucket, cas.Unsupported} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t)
			a := w.replica("a", fast).run()
			sleep(7 * time.Second)
			n := 0
			a.reg.Plan(func(op faultcas.Op, _ int) faultcas.Fault {
				if op != faultcas.Replace {
					return faultcas.Fault{}
				}
				if n++; n%3 != 0 {
					return faultcas.Fault{Refuse: class}
				}
				return faultcas.Fault{}
			})
			sleep(10 * time.Minute)
			if a.role() != RoleLeader || a.count(Acquired) != 1 {
				t.Errorf("%s, %s, twice in a row: role %s", class, class, a.role())
			}
			a.reg.Plan(nil)
			a.stop()
		})
	}
}

func TestARenewalThatHangsForEverDoesNotOutliveTheDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		a := w.replica("a", fast).run()
		sleep(7 * time.Second)
		b := w.replica("b", fast).run()
		a.reg.Plan(func(faultcas.Op, int) faultcas.Fault { return faultcas.Fault{Hang: true} })
		sleep(15 * time.Second)
		if b.role() != RoleLeader || a.role() != RoleStandby {
			t.Errorf("a %s, b %s", a.role(), b.role())
		}
		w.noOverlap()
		a.reg.Plan(nil)
		a.reg.Free()
		a.stop()
		b.stop()
	})
}

func TestOnlyADefiniteAbsenceIsEverClaimed(t *testing.T) {
	for _, class := range cas.Classes() {
		if class == cas.NotFound {
			continue
		}
		t.Run(string(class), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				b := w.replica("b", fast)
				b.reg.Plan(func(op faultcas.Op, _ int) faultcas.Fault {
					if op == faultcas.Load {
						return faultcas.Fault{Refuse: class}
					}
					return faultcas.Fault{}
				})
				b.run()
				sleep(time.Minute)
				if got := b.reg.Calls(faultcas.Create) + b.reg.Calls(faultcas.Replace); got != 0 {
					t.Errorf("%d writes while every read answers %q", got, class)
				}
				// It recovers by itself.
				b.reg.Plan(nil)
				sleep(8 * time.Second)
				if b.role() != RoleLeader {
					t.Error("did not recover")
				}
				b.stop()
			})
		})
	}
}

func TestAStandbyWhoseReadsFailContestsNothingThatIsRenewed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		a := w.replica("a", fast).run()
		sleep(7 * time.Second)
		b := w.replica("b", fast).run()
		sleep(2 * time.Second)
		b.reg.Plan(func(op faultcas.Op, _ int) faultcas.Fault {
			if op == faultcas.Load {
				return faultcas.Fault{Refuse: cas.Ambiguous}
			}
			return faultcas.Fault{}
		})
		sleep(10 * time.Minute)
		if a.role() != RoleLeader || a.count(Lost) != 0 || b.count(Acquired) != 0 {
			t.Errorf("a %s, lost %d; b acquired %d", a.role(), a.count(Lost), b.count(Acquired))
		}
		a.stop()
		b.stop()
	})
}

func TestADeletedLeaseIsSurrenderedAndComesBackHigher(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		a := w.replica("a", fast).run()
		sleep(7 * time.Second)
		w.store.Remove(leaseName)
		sleep(2100 * time.Millisecond)
		if a.count(Lost) != 1 || a.role() != RoleStandby {
			t.Fatalf("lost %d, role %s", a.count(Lost), a.role())
		}
		sleep(4500 * time.Millisecond)
		if a.count(Acquired) != 1 {
			t.Error("an absence was claimed before it had stood a whole window")
		}
		sleep(20 * time.Second)
		if rec := w.record(); rec.Epoch != 2 {
			t.Errorf("epoch %d after a loss, want 2", rec.Epoch)
		}
		a.stop()
		w.noOverlap()
	})
}
