package coordinator

import (
	"testing"
	"time"
)

// The same document written anew, or another hold, begins anew.
func TestAHoldThatIsProlongedLastsAndOneThatIsShortenedEnds(t *testing.T) {
	for name, c := range map[string]struct{ first, then, want time.Duration }{
		"prolonged": {20 * time.Second, 60 * time.Second, 70 * time.Second},
		"shortened": {60 * time.Second, 5 * time.Second, 15 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			b := askedBench(t, true)
			b.tick(0)
			l := Lease{Version: "v1", Record: released(3, "x")}
			begun := b.now
			for b.now < begun.Add(5*time.Minute) {
				passed := b.now.Sub(begun)
				r := holdFor(c.first, passed)
				if passed >= 10*time.Second { // somebody changes it, under the same id
					r = holdFor(c.then, passed-10*time.Second)
					r.Version = "q2"
				}
				if a, ok := b.watch(l, r, 50*time.Millisecond); ok && a.kind == doWrite {
					if got := b.now.Sub(begun); got < c.want || got > c.want+1200*time.Millisecond {
						t.Errorf("claimed after %v, want %v", got, c.want)
					}
					return
				}
			}
			t.Error("never claimed")
		})
	}
}
