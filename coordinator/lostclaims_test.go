package coordinator

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sf2loki/sf2loki-ha/cas"
	"github.com/sf2loki/sf2loki-ha/internal/faultcas"
)

// text is a record of another process as it stands in the store.
func text(t *testing.T, r Record) string {
	t.Helper()
	r.Lease = "mem://" + leaseName
	data, err := r.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// claimable are the states that a candidate claims, with what it needs to know
// of the checkpoint document and how long it waits.
var claimable = map[string]struct {
	before *Record
	fence  Fence
	wait   time.Duration
	epoch  int64
}{
	"an absent lease":  {nil, Fence{}, 6 * time.Second, 1},
	"a stale lease":    {ptr(held(4, "dead")), Fence{Epoch: 4, Found: true}, 6 * time.Second, 5},
	"a released lease": {ptr(released(4, "gone")), Fence{Epoch: 4, Found: true}, 0, 5},
}

// candidate starts a replica in front of one of those states, whose first write
// meets the fault.
func (w *world) candidate(before *Record, fence Fence, fault func(op faultcas.Op) faultcas.Fault) *replica {
	w.t.Helper()
	if before != nil {
		w.put(text(w.t, *before))
	}
	a := w.replica("a", fast, WithFence(&fences{fence: fence}))
	first := true
	a.reg.Plan(func(op faultcas.Op, _ int) faultcas.Fault {
		if op == faultcas.Load || !first {
			return faultcas.Fault{}
		}
		first = false
		return fault(op)
	})
	return a.run()
}

// The acquisition landed and its answer did not arrive: the write id tells, at
// the next read, and nobody waits for the lease of a replica that is there.
func TestAnAcquisitionWhoseAnswerIsLostLeadsWithoutAnotherWindow(t *testing.T) {
	for state, c := range claimable {
		for answer, fault := range map[string]faultcas.Fault{
			"applied, then 503 or timeout": {Lose: cas.Ambiguous},
			"applied, then 409":            {Lose: cas.Contended},
			"success without a version":    {NoVersion: true},
			"applied, no answer ever":      {Late: time.Hour},
		} {
			t.Run(state+", "+answer, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					w := newWorld(t)
					a := w.candidate(c.before, c.fence, func(faultcas.Op) faultcas.Fault { return fault })
					defer a.stop()
					sleep(c.wait + 2*time.Second)
					if rec := w.record(); a.role() != RoleLeader || rec.Epoch != c.epoch || rec.Incarnation != a.elector.Incarnation() {
						t.Fatalf("%s, record %+v; want it to lead at epoch %d", a.role(), rec, c.epoch)
					}
					sleep(10 * time.Minute)
					if n := len(w.starts()); n != 1 || a.count(Lost)+a.count(Expired) != 0 {
						t.Errorf("%d terms, lost %d, expired %d; want one that stays", n, a.count(Lost), a.count(Expired))
					}
				})
			})
		}
	}
}

// A claim that is refused is tried again, about a poll later; the election goes
// on whatever the store said.
func TestAClaimThatIsRefusedIsTriedAgainAndEndsNothing(t *testing.T) {
	for state, c := range claimable {
		for _, class := range []cas.Class{cas.Ambiguous, cas.Contended, cas.Denied, cas.NoBucket, cas.Unsupported, cas.Corrupt} {
			t.Run(fmt.Sprintf("%s, %s", state, class), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					w := newWorld(t)
					a := w.candidate(c.before, c.fence, func(faultcas.Op) faultcas.Fault { return faultcas.Fault{Refuse: class} })
					defer a.stop()
					sleep(c.wait + 3*time.Second)
					if rec := w.record(); a.role() != RoleLeader || rec.Epoch != c.epoch {
						t.Errorf("%s, epoch %d; want leader at %d", a.role(), rec.Epoch, c.epoch)
					}
					op := faultcas.Replace
					if c.before == nil {
						op = faultcas.Create
					}
					if n := a.reg.Calls(op); n < 2 || n > 4 {
						t.Errorf("%d writes, want the refused one and the next, and at most two renewals", n)
					}
				})
			})
		}
	}
}

// A 409 to a create says neither that the lease exists nor that it does not:
// the read that follows decides.
func TestAContendedCreateIsDecidedByTheNextRead(t *testing.T) {
	t.Run("nothing was stored: claimed again", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t)
			begun := time.Now()
			a := w.candidate(nil, Fence{}, func(faultcas.Op) faultcas.Fault { return faultcas.Fault{Refuse: cas.Contended} })
			for a.role() != RoleLeader && time.Since(begun) < time.Minute {
				sleep(10 * time.Millisecond)
			}
			if waited := time.Since(begun); waited > 8*time.Second {
				t.Errorf("led after %v: the absence had stood its window of 6 s already", waited)
			}
			a.stop()
		})
	})
	t.Run("somebody else was faster: a standby, calmly", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t)
			a := w.candidate(nil, Fence{}, func(faultcas.Op) faultcas.Fault {
				w.put(text(t, held(1, "faster")))
				return faultcas.Fault{Refuse: cas.Contended}
			})
			sleep(11 * time.Second)
			if rec := w.record(); a.role() != RoleStandby || a.count(Acquired) != 0 || rec.Incarnation != "faster" {
				t.Errorf("%s, %d acquisitions, held by %q", a.role(), a.count(Acquired), rec.Incarnation)
			}
			sleep(3 * time.Second) // it never renews: a whole window after it was seen
			if a.role() != RoleLeader || w.record().Epoch != 2 {
				t.Errorf("%s at epoch %d; want the takeover of the stale lease", a.role(), w.record().Epoch)
			}
			a.stop()
		})
	})
}

// An acquisition that may have landed is never counted as one: until a read
// shows it, nothing starts and nobody calls himself leader.
func TestAnAcquisitionIsNoneUntilItIsConfirmed(t *testing.T) {
	for state, c := range claimable {
		t.Run(state, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				if c.before != nil {
					w.put(text(t, *c.before))
				}
				a := w.replica("a", fast, WithFence(&fences{fence: c.fence}))
				blind := false
				a.reg.Plan(func(op faultcas.Op, _ int) faultcas.Fault {
					switch {
					case op != faultcas.Load:
						blind = true
						return faultcas.Fault{Lose: cas.Ambiguous}
					case blind:
						return faultcas.Fault{Refuse: cas.Ambiguous}
					}
					return faultcas.Fault{}
				})
				a.run()
				sleep(time.Minute)
				if !blind || len(w.starts()) != 0 || a.count(Acquired) != 0 || a.role() != RoleStandby {
					t.Errorf("claimed %v, %d terms worked, role %s", blind, len(w.starts()), a.role())
				}
				a.reg.Plan(nil)
				a.stop()
			})
		})
	}
}
