package coordinator

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sf2loki/sf2loki-ha/internal/faultcas"
)

// Rule 10: the ttl in the checkpoint document may be all that is left of a lease
// that was deleted under a working leader. An absence, and what nobody can read,
// stand for that long.
func TestWhatIsLeftOfADeletedLeaseStandsForTheTTLInTheDocument(t *testing.T) {
	for name, c := range map[string]struct {
		lease string
		ttl   time.Duration
		from  time.Duration
	}{
		"absent, a longer ttl":         {"", 30 * time.Second, 30 * time.Second},
		"absent, a shorter ttl":        {"", time.Second, 6 * time.Second},
		"absent, no ttl known":         {"", 0, 6 * time.Second},
		"absent, a ttl beyond all":     {"", time.Hour, MaxTTL},
		"unreadable, a ttl of 2 min":   {"junk", 2 * time.Minute, 2 * time.Minute},
		"a tombstone that is outdated": {text(t, released(4, "x")), 30 * time.Second, 30 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				if c.lease != "" {
					w.put(c.lease)
				}
				a := w.replica("a", fast, WithFence(&fences{fence: Fence{Epoch: 7, TTL: c.ttl, Found: true}})).run()
				defer a.stop()
				for begun := time.Now(); a.role() != RoleLeader && time.Since(begun) < 2*MaxTTL; {
					sleep(20 * time.Millisecond)
				}
				starts := w.starts()
				if len(starts) != 1 || starts[0].epoch != 8 {
					t.Fatalf("%+v, want one term at epoch 8", starts)
				}
				if after := starts[0].at.Sub(w.start); after < c.from || after > c.from+2*time.Second {
					t.Errorf("led after %v, want %v", after, c.from)
				}
			})
		})
	}
}

// deaf is a checkpoint document behind a connection that does not even honour
// its context.
type deaf struct {
	fences
	freed chan struct{}
}

func (d *deaf) Floor(ctx context.Context) (int64, string, time.Duration, bool, error) {
	<-d.freed
	return d.fences.Floor(ctx)
}

// A checkpoint document that never answers keeps a replica from claiming, and
// from nothing else: it goes on watching the lease, stops when it is told to, and
// recovers.
func TestADocumentThatNeverAnswersOnlyKeepsFromClaiming(t *testing.T) {
	for name, stops := range map[string]bool{"and then it does": false, "and then a stop": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				d := &deaf{freed: make(chan struct{})}
				a := w.replica("a", fast, WithFence(d)).run()
				sleep(10 * time.Minute)
				if n := a.reg.Calls(faultcas.Create); n != 0 {
					t.Errorf("%d claims without the floor", n)
				}
				if n := a.reg.Calls(faultcas.Load); n < 200 {
					t.Errorf("%d reads of the lease in 10 min", n)
				}
				if err := a.elector.Stuck(); err != nil {
					t.Error(err)
				}
				if stops {
					asked := time.Now()
					a.stop()
					if took := time.Since(asked); took > time.Second {
						t.Errorf("stopped after %v", took)
					}
					close(d.freed)
					return
				}
				close(d.freed)
				sleep(3 * time.Second)
				if a.role() != RoleLeader {
					t.Error("did not recover")
				}
				a.stop()
			})
		})
	}
}
