package coordinator

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sf2loki/sf2loki-ha/cas"
	"github.com/sf2loki/sf2loki-ha/internal/faultcas"
)

// spaced refuses writes that come too early after the last one of the object, as
// Cloud Storage does.
type spaced struct {
	cas.Register
	every time.Duration
	last  time.Time
}

func (r *spaced) Replace(ctx context.Context, data []byte, old cas.Version) (cas.Version, error) {
	if time.Since(r.last) < r.every {
		return "", &cas.Error{Class: cas.Contended, Op: "replace", Object: r.Describe(), Err: context.DeadlineExceeded}
	}
	v, err := r.Register.Replace(ctx, data, old)
	if err == nil {
		r.last = time.Now()
	}
	return v, err
}

// From the end of the work to the acquisition by the other replica, at whatever
// moment between two renewals and two polls the stop is asked for.
func TestAHandoverStaysWithinItsBudget(t *testing.T) {
	for name, cfg := range profilesOnStores(t) {
		t.Run(name, func(t *testing.T) {
			bound, longest := cfg.Budget().Handover, time.Duration(0)
			for phase := time.Duration(0); phase < cfg.RenewInterval; phase += 293 * time.Millisecond {
				for _, drain := range []time.Duration{cfg.PollInterval + 2*RoundTrip, cfg.RenewInterval + 100*time.Millisecond, cfg.RenewInterval + 900*time.Millisecond} {
					synctest.Test(t, func(t *testing.T) { longest = max(longest, handedOver(t, cfg, phase, drain)) })
				}
			}
			t.Logf("longest %v, published %v", longest, bound)
			if longest > bound {
				t.Errorf("a handover took %v; published is %v", longest, bound)
			}
			if longest < bound/3 {
				t.Errorf("the longest handover took %v; %v is no bound worth publishing", longest, bound)
			}
		})
	}
}

// handedOver stops a leader and measures it.
func handedOver(t *testing.T, cfg Config, phase, drain time.Duration) time.Duration {
	t.Helper()
	w := newWorld(t)
	w.reg = &spaced{Register: w.reg, every: cfg.MinWriteInterval}
	far := func(faultcas.Op, int) faultcas.Fault {
		return faultcas.Fault{Delay: RoundTrip / 2, Late: RoundTrip / 2}
	}
	start := func(name string) *replica {
		cfg.Identity = name
		r := w.replica(name, cfg)
		r.reg.Plan(far)
		r.drain = drain
		return r.run()
	}
	a := start("a")
	sleep(cfg.TTL + time.Second)
	b := start("b")
	defer b.stop()
	sleep(cfg.TTL + phase)
	a.stop()
	sleep(cfg.Budget().Handover)
	ends, starts := w.ends(), w.starts()
	if len(ends) != 1 || len(starts) < 2 {
		t.Fatalf("%d ends and %d starts; the record is %+v", len(ends), len(starts), w.record())
	}
	w.noOverlap()
	return starts[1].at.Sub(ends[0].at)
}
