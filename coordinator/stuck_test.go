package coordinator

import (
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sf2loki/sf2loki-ha/cas"
	"github.com/sf2loki/sf2loki-ha/internal/faultcas"
)

// A process whose election stands still neither leads nor competes: it must not
// look healthy. Its term is over by the clock all the same, and a store that is
// down for hours is no reason to call anybody stuck.
func TestAnElectionThatStandsStillIsReportedAndLeadsNoLonger(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		var gate atomic.Pointer[chan struct{}]
		a := w.replica("a", fast, WithObserver(func(Event) {
			if shut := gate.Load(); shut != nil {
				<-*shut
			}
		}))
		a.run()
		sleep(7 * time.Second)
		if err := a.elector.Stuck(); err != nil || a.role() != RoleLeader {
			t.Fatalf("%v, %s", err, a.role())
		}
		shut := make(chan struct{})
		gate.Store(&shut) // the next event stops the loop
		sleep(20 * time.Second)
		if err := a.elector.Stuck(); err != nil || a.role() == RoleLeader {
			t.Errorf("after 20 s: %v, %s; want no alarm yet, and no leader", err, a.role())
		}
		sleep(30 * time.Second)
		if a.elector.Stuck() == nil {
			t.Error("nothing has moved for 50 s, and nobody says so")
		}
		close(shut)
		sleep(time.Second)
		if err := a.elector.Stuck(); err != nil {
			t.Errorf("it goes on: %v", err)
		}
		a.stop()
	})
}

func TestAStoreThatIsDownForHoursMakesNobodyStuck(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		a := w.replica("a", fast)
		a.reg.Plan(refusing(cas.Ambiguous, faultcas.Load, faultcas.Create, faultcas.Replace))
		a.run()
		for range 100 {
			sleep(100 * time.Second)
			if err := a.elector.Stuck(); err != nil {
				t.Fatal(err)
			}
		}
		a.reg.Plan(nil)
		sleep(10 * time.Second)
		if a.role() != RoleLeader {
			t.Error("did not recover")
		}
		a.stop()
		if err := a.elector.Stuck(); err != nil {
			t.Errorf("after its end: %v", err)
		}
	})
}
