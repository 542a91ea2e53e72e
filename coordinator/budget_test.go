package coordinator

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/sf2loki/sf2loki-ha/cas"
)

// profiles are all of them on both kinds of store.
func profilesOnStores(t *testing.T) map[string]Config {
	t.Helper()
	all := map[string]Config{}
	for _, name := range Profiles() {
		for store, spacing := range map[string]time.Duration{"S3": 0, "Cloud Storage": time.Second} {
			c, err := Config{Identity: "x", MinWriteInterval: spacing}.WithProfile(name)
			if err != nil {
				t.Fatal(err)
			}
			all[name+" on "+store] = c
		}
	}
	return all
}

func TestEveryProfileIsValid(t *testing.T) {
	for name, c := range profilesOnStores(t) {
		if err := c.Validate(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := (Config{}).WithProfile("fats"); err == nil {
		t.Error("a profile that does not exist was applied")
	}
	given := Config{}.WithDefaults()
	got, err := Config{}.WithProfile("default")
	if err != nil || got.TTL != given.TTL || got.RenewInterval != given.RenewInterval || got.PollInterval != given.PollInterval {
		t.Errorf("the profile default is %+v, %v; the defaults are %+v", got, err, given)
	}
}

// ride plays an outage of that length to a leader; it begins just before a renewal
// is due. fate says what happens to a request that meets it: how long it takes to
// fail. It tells whether the leader still leads once the store has answered again.
func ride(t *testing.T, cfg Config, outage time.Duration, fate func() time.Duration, jitter func() float64) bool {
	t.Helper()
	b := newBench(t, cfg, false)
	b.tick(0)
	b.fails(cas.NotFound)
	b.until(doWrite, cfg.TTL+time.Second)
	b.answer(input{version: "v1"})
	b.m.jitter = jitter
	begin := b.m.term.sentAt.Add(b.m.cfg.RenewInterval)
	for writes := 0; b.m.phase == leading; {
		// 1. To the next thing that happens.
		if b.m.op == nil {
			b.now = max(b.now, b.wake)
			b.step(input{kind: inTick})
			continue
		}
		op := b.m.op
		if b.now < begin.Add(outage) {
			// 2. Sent into the outage. What takes too long is given up.
			b.now = min(b.now.Add(fate()), op.giveUp)
			if b.now < op.giveUp {
				b.fails(cas.Ambiguous)
			} else {
				b.step(input{kind: inTick})
			}
			continue
		}
		// 3. Sent after it: the old version, or success.
		b.now = b.now.Add(RoundTrip)
		if op.kind == opRead {
			b.reads(Lease{Version: b.m.ver, Record: b.m.mine})
			continue
		}
		writes++
		if b.answer(input{version: cas.Version(fmt.Sprint("w", writes))}); b.m.phase == leading {
			return true
		}
	}
	return false
}

func TestAnOutageOfThePublishedLengthIsTolerated(t *testing.T) {
	for name, cfg := range profilesOnStores(t) {
		t.Run(name, func(t *testing.T) {
			b := cfg.Budget()
			rng := rand.New(rand.NewPCG(3, 4))
			survived := func(outage time.Duration) bool {
				// Histories of one character, and of all mixed.
				quick, slow := rng.Float64(), rng.Float64()
				fate := func() time.Duration {
					switch {
					case rng.Float64() < quick:
						return 0
					case rng.Float64() < slow:
						return time.Minute
					}
					return time.Duration(rng.Int64N(int64(RoundTrip)))
				}
				bias := []float64{0, 0.999, rng.Float64()}[rng.IntN(3)]
				return ride(t, cfg, outage, fate, func() float64 {
					if bias == 0 || bias == 0.999 {
						return bias
					}
					return rng.Float64()
				})
			}
			for range 3000 {
				if outage := time.Duration(rng.Int64N(int64(b.Outage) + 1)); !survived(outage) {
					t.Fatalf("%v of outage ended a term; published is %v", outage, b.Outage)
				}
			}
			for range 100 {
				if survived(b.StopAfter - cfg.RenewInterval) {
					t.Fatal("an outage up to the stop instant ended no term: the play has lost its bite")
				}
			}
			// What cannot be had: the attempt that hangs, a pause and a read beside it.
			if least := b.StopAfter - cfg.RenewInterval - cfg.WithDefaults().CallTimeout - max(500*time.Millisecond, cfg.MinWriteInterval) - 500*time.Millisecond; b.Outage < least {
				t.Errorf("an outage of %v is tolerated, want %v", b.Outage, least)
			}
		})
	}
}
