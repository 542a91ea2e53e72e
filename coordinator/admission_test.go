package coordinator

import (
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sf2loki/sf2loki-ha/internal/faultcas"
)

// gate is an admission that a test opens.
type gate struct{ open atomic.Bool }

func (g *gate) admit() error {
	if g.open.Load() {
		return nil
	}
	return errors.New("not yet")
}

func TestAReplicaThatIsNotAdmittedReadsAndClaimsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, g := newWorld(t), &gate{}
		a := w.replica("a", fast, WithAdmission(g.admit)).run()
		defer a.stop()
		sleep(time.Minute)
		if n := a.reg.Calls(faultcas.Create) + a.reg.Calls(faultcas.Replace); n != 0 || a.role() != RoleStandby {
			t.Fatalf("%d writes, role %s", n, a.role())
		}
		if n := a.reg.Calls(faultcas.Load); n < 55 || n > 61 {
			t.Errorf("%d reads in a minute at one a second", n)
		}
		// The window has passed meanwhile: nobody waits for it again.
		g.open.Store(true)
		sleep(2 * admissionPause)
		if a.role() != RoleLeader {
			t.Errorf("not the leader %v after its admission", 2*admissionPause)
		}
	})
}

func TestAnAdmissionThatComesWithinTheWindowCostsNoTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, g := newWorld(t), &gate{}
		a := w.replica("a", fast, WithAdmission(g.admit)).run()
		defer a.stop()
		sleep(3 * time.Second)
		g.open.Store(true)
		sleep(3*time.Second + 10*time.Millisecond)
		if a.role() != RoleLeader {
			t.Error("not the leader after one window")
		}
	})
}

func TestAnAdmissionThatIsTakenBackDoesNotTouchTheTerm(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, g := newWorld(t), &gate{}
		g.open.Store(true)
		a := w.replica("a", fast, WithAdmission(g.admit)).run()
		defer a.stop()
		sleep(7 * time.Second)
		g.open.Store(false)
		sleep(time.Hour)
		if a.role() != RoleLeader || w.record().Epoch != 1 {
			t.Errorf("role %s, epoch %d", a.role(), w.record().Epoch)
		}
		a.elector.StepDown("test")
		sleep(time.Hour)
		if a.role() != RoleStandby || w.record().State != Released {
			t.Errorf("role %s, record %+v; want its own tombstone left alone", a.role(), w.record())
		}
	})
}
