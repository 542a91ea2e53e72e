package coordinator

import (
	"testing"
	"time"
)

// What a standby read ahead, to find out whether it could, is not what an attempt
// decides by: a hold may have been set in between.
func TestAnAttemptDoesNotUseWhatWasReadAheadOfIt(t *testing.T) {
	cfg := fast
	cfg.PollInterval = 5 * time.Second
	b := newBench(t, cfg, true)
	b.m.hasRequests = true
	b.m.rehearseFrom = 0
	l := Lease{Version: "v1", Record: held(3, "x")}
	b.tick(0)
	b.reads(l)
	ahead, ok := b.request()
	if !ok || ahead.kind != doAsk {
		t.Fatalf("nothing was read ahead: %+v", b.last)
	}
	b.answer(input{fence: Fence{Epoch: 2, Found: true}})
	b.until(doRead, 6*time.Second)
	b.reads(l) // still the same; stale one second later
	b.m.rehearseFrom = b.now
	b.tick(0)
	if a, ok := b.request(); !ok || a.kind != doAsk {
		t.Fatalf("nothing was read ahead: %+v", b.last)
	}
	b.answer(input{fence: Fence{Epoch: 2, Found: true}})
	// The lease becomes stale before the next poll; meanwhile a hold was set.
	for range 100 {
		b.tick(50 * time.Millisecond)
		if a, ok := b.request(); ok {
			if a.kind == doWrite {
				t.Error("claimed without having read the request object and the fence in this attempt")
			}
			return
		}
	}
	t.Error("never claimed")
}

// A process that was frozen with the answer in its hand has not read the request
// object now.
func TestAnAnswerThatIsTakenLongAfterItsCallWasGivenUpIsNotUsedForAClaim(t *testing.T) {
	b := askedBench(t, true)
	b.tick(0)
	b.reads(Lease{Version: "v1", Record: released(3, "x")})
	if a, ok := b.request(); !ok || a.kind != doAsk {
		t.Fatalf("%+v", b.last)
	}
	b.now = b.now.Add(10 * time.Minute) // frozen
	b.answer(input{fence: Fence{Epoch: 2, Found: true}})
	if a, ok := b.request(); ok && a.kind == doWrite {
		t.Error("claims on what the request object and the fence were ten minutes ago")
	}
}
