package coordinator

import (
	"testing"
	"testing/synctest"
	"time"
)

// Rule 1: the new epoch is one above the record, the fence of the checkpoint
// document and everything this process ever saw, whichever is the highest. A
// lease that was deleted, damaged or restored does not set it back.
func TestTheNewEpochIsOneAboveEverythingThatIsKnown(t *testing.T) {
	of := func(r Record) string { return text(t, r) }
	for name, c := range map[string]struct {
		seen  string // a record of before, or ""
		lease string // what is there to be claimed, or "" for nothing
		fence *Fence // nil: no checkpoint document is configured
		epoch int64
	}{
		"nothing at all":                             {"", "", nil, 1},
		"no document yet":                            {"", "", &Fence{}, 1},
		"a document never sealed":                    {"", "", &Fence{Found: true}, 1},
		"no lease, a document sealed at 7":           {"", "", &Fence{Epoch: 7, Found: true}, 8},
		"a lease of 9, a document of 3":              {"", of(held(9, "x")), &Fence{Epoch: 3, Found: true}, 10},
		"a lease of 3, a document of 9":              {"", of(held(3, "x")), &Fence{Epoch: 9, Found: true}, 10},
		"a lease of 5, a document of 5":              {"", of(held(5, "x")), &Fence{Epoch: 5, Found: true}, 6},
		"a tombstone of 5, a document of 5":          {"", of(released(5, "x")), &Fence{Epoch: 5, Found: true}, 6},
		"a tombstone of 2, a document of 5":          {"", of(released(2, "x")), &Fence{Epoch: 5, Found: true}, 6},
		"a lease of 9, no document":                  {"", of(held(9, "x")), nil, 10},
		"upstream's lease of 6, a document of 2":     {"", `{"holder":"u","expires_at":"2026-01-01T00:00:00Z","epoch":6}`, &Fence{Epoch: 2, Found: true}, 7},
		"upstream's lease without an epoch":          {"", `{"holder":"u"}`, &Fence{Epoch: 2, Found: true}, 3},
		"garbage, a document of 7":                   {"", "garbage", &Fence{Epoch: 7, Found: true}, 8},
		"garbage, no document":                       {"", "[1, 2]", nil, 1},
		"an epoch out of range, a document of 7":     {"", `{"holder":"u","epoch":9007199254740992}`, &Fence{Epoch: 7, Found: true}, 8},
		"12 was seen, 4 was restored":                {of(held(12, "x")), of(held(4, "y")), &Fence{Epoch: 3, Found: true}, 13},
		"12 was seen, then garbage":                  {of(held(12, "x")), "garbage", &Fence{Epoch: 3, Found: true}, 13},
		"12 was seen, then it was deleted":           {of(held(12, "x")), "deleted", nil, 13},
		"12 was seen, then released as 4 (restored)": {of(held(12, "x")), of(released(4, "y")), &Fence{Epoch: 3, Found: true}, 13},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				var opts []Option
				if c.fence != nil {
					opts = append(opts, WithFence(&fences{fence: *c.fence}))
				}
				if c.seen != "" {
					w.put(c.seen)
				} else if c.lease != "" {
					w.put(c.lease)
				}
				a := w.replica("a", fast, opts...).run()
				defer a.stop()
				sleep(1500 * time.Millisecond)
				switch {
				case c.seen == "":
				case c.lease == "deleted":
					w.store.Remove(leaseName)
				default:
					w.put(c.lease)
				}
				for begun := time.Now(); a.role() != RoleLeader && time.Since(begun) < 2*time.Minute; {
					sleep(500 * time.Millisecond)
				}
				if rec := w.record(); a.role() != RoleLeader || rec.Epoch != c.epoch {
					t.Errorf("%s at epoch %d, want %d", a.role(), rec.Epoch, c.epoch)
				}
			})
		})
	}
}

// The renewals of a term keep its epoch and move what people see.
func TestARenewalKeepsTheTermAndMovesWhatPeopleSee(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		a := w.replica("a", fast).run()
		defer a.stop()
		sleep(7 * time.Second)
		last := w.record()
		for range 20 {
			sleep(fast.RenewInterval)
			rec := w.record()
			if rec.Epoch != last.Epoch || rec.Term != last.Term || rec.Incarnation != last.Incarnation || !rec.AcquiredAt.Equal(last.AcquiredAt) {
				t.Fatalf("a renewal changed the term: %+v after %+v", rec, last)
			}
			if !rec.RenewedAt.After(last.RenewedAt) || !rec.ExpiresAt.After(last.ExpiresAt) || rec.WriteID == last.WriteID {
				t.Fatalf("a renewal that nobody can see: %+v after %+v", rec, last)
			}
			if got := rec.ExpiresAt.Sub(rec.RenewedAt); got != fast.TTL {
				t.Errorf("expires %v after it was renewed", got)
			}
			last = rec
		}
	})
}
