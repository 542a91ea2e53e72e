package coordinator

import (
	"testing"
	"time"
)

// A store that does not say when the document was written, or whose clock stands
// behind the time it gave, says the age 0 in every answer. The hold then counts
// from the first read, and it ends.
func TestAHoldOfUnknownAgeEndsForACandidateThatReadsItAgainAndAgain(t *testing.T) {
	for name, age := range map[string]func(passed time.Duration) time.Duration{
		"the store never says":        func(time.Duration) time.Duration { return 0 },
		"the store's clock stands":    func(time.Duration) time.Duration { return 5 * time.Second },
		"its clock goes back by 10 s": func(d time.Duration) time.Duration { return max(0, d-10*time.Second) },
	} {
		t.Run(name, func(t *testing.T) {
			b := askedBench(t, true)
			b.tick(0)
			l := Lease{Version: "v1", Record: released(3, "x")}
			begun := b.now
			for b.now < begun.Add(10*time.Minute) {
				if a, ok := b.watch(l, holdFor(20*time.Second, age(b.now.Sub(begun))), 50*time.Millisecond); ok && a.kind == doWrite {
					if got := b.now.Sub(begun); got > 22*time.Second {
						t.Errorf("claimed after %v, want 20 s after the first read at the latest", got)
					}
					return
				}
			}
			t.Error("the hold never ends")
		})
	}
}
