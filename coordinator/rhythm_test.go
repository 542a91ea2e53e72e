package coordinator

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/sf2loki/sf2loki-ha/cas"
)

// renewals plays a holder that renews every 5 s, with some jitter, to a standby
// that polls every second, and returns how late each renewal was noticed and how
// many reads were made.
func renewals(t *testing.T, n int, jitter time.Duration) (lags []time.Duration, reads int) {
	t.Helper()
	cfg := Config{TTL: 15 * time.Second, RenewInterval: 5 * time.Second, PollInterval: time.Second}
	b := newBench(t, cfg, false)
	rng := rand.New(rand.NewPCG(1, 2))
	rec := held(3, "x")
	rec.TTL, rec.Renew = cfg.TTL, cfg.RenewInterval
	b.now = b.now.Add(370 * time.Millisecond) // out of step
	landed, version := b.now, 0
	next := landed.Add(rec.Renew)
	for version < n {
		b.tick(5 * time.Millisecond)
		if b.now >= next {
			landed, version = b.now, version+1
			next = landed.Add(rec.Renew + time.Duration(rng.Int64N(int64(jitter)+1)))
		}
		if b.m.op == nil || b.m.op.kind != opRead {
			continue
		}
		reads++
		seen := Lease{Version: cas.Version(fmt.Sprint("v", version)), Record: rec}
		b.now = b.now.Add(20 * time.Millisecond) // on the way back
		if known := b.m.seen.lease.Version; known != seen.Version {
			lags = append(lags, b.now.Sub(landed))
		}
		b.reads(seen)
	}
	return lags, reads
}

func TestAStandbyMovesItsReadsBehindTheRenewals(t *testing.T) {
	lags, reads := renewals(t, 60, 0)
	for i, lag := range lags[8:] {
		if lag > 100*time.Millisecond {
			t.Errorf("renewal %d was noticed %v late", i+8, lag)
		}
	}
	if per := float64(reads) / 60; per > 7.5 {
		t.Errorf("%.1f reads a renewal", per)
	}
}

func TestRenewalsThatComeWhenTheyLikeAreStillNoticedWithinAPoll(t *testing.T) {
	lags, reads := renewals(t, 100, 900*time.Millisecond)
	for i, lag := range lags[1:] {
		if lag > 1100*time.Millisecond {
			t.Errorf("renewal %d was noticed %v late", i+1, lag)
		}
	}
	if per := float64(reads) / 100; per > 8.5 {
		t.Errorf("%.1f reads a renewal", per)
	}
}
