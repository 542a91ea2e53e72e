package coordinator

import (
	"testing"
	"time"

	"github.com/sf2loki/sf2loki-ha/cas"
)

// claimsOn answers reads with l and inquiries with f until a claim is sent, and
// returns how long l had been standing.
func (b *bench) claimsOn(l Lease, f Fence) time.Duration {
	b.t.Helper()
	b.reads(l)
	seen := b.now
	for b.now < seen.Add(2*time.Minute) {
		a, ok := b.request()
		switch {
		case ok && a.kind == doAsk:
			b.answer(input{fence: f})
		case ok && a.kind == doWrite:
			return b.now.Sub(seen)
		case ok:
			b.reads(l)
		default:
			b.now = b.wake
			b.step(input{kind: inTick})
		}
	}
	b.t.Fatal("never claimed")
	return 0
}

// Rules 2, 10 and 11: whoever sealed may be at work, whatever tombstone stands.
func TestATombstoneIsNotTrustedOverTheSealOfAnotherTermOfItsEpoch(t *testing.T) {
	for name, c := range map[string]struct {
		fence       Fence
		least, most time.Duration
	}{
		"its own seal":                      {Fence{Epoch: 2, Term: "a-term", TTL: 20 * time.Second, Found: true}, 0, time.Second},
		"a former seal":                     {Fence{Epoch: 1, Term: "b-term", TTL: 20 * time.Second, Found: true}, 0, time.Second},
		"a later one":                       {Fence{Epoch: 3, Term: "b-term", TTL: 20 * time.Second, Found: true}, 20 * time.Second, 22 * time.Second},
		"another of its epoch":              {Fence{Epoch: 2, Term: "b-term", TTL: 20 * time.Second, Found: true}, 20 * time.Second, 22 * time.Second},
		"of its epoch, by nobody knows who": {Fence{Epoch: 2, Found: true}, 0, time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, fast, true)
			b.tick(0)
			r := released(2, "a")
			r.Term = "a-term"
			if got := b.claimsOn(Lease{Version: "v2", Record: r}, c.fence); got < c.least || got > c.most {
				t.Errorf("claimed after %v, want %v", got, c.least)
			}
		})
	}
}

func TestACopiedTombstoneStandsForTheLongestTTLThatMayRun(t *testing.T) {
	b := newBench(t, fast, true)
	b.tick(0)
	r := held(2, "x")
	r.TTL = 20 * time.Second
	b.reads(Lease{Version: "v1", Record: r})
	b.until(doRead, 3*time.Second)
	c := released(3, "elsewhere")
	c.Lease = "mem://elsewhere"
	fence := Fence{Epoch: 2, Term: r.Term, TTL: 20 * time.Second, Found: true}
	if got := b.claimsOn(Lease{Version: "v2", Record: c}, fence); got < 20*time.Second || got > 22*time.Second {
		t.Errorf("claimed after %v, want 20 s", got)
	}
}

// Rule 1: what was read for an attempt whose outcome is in doubt is not fresh for
// the next one, however long the reads in between hang.
func TestACandidateInDoubtReadsTheDocumentAnew(t *testing.T) {
	b := newBench(t, fast, true)
	old := Fence{Epoch: 3, Term: "t", TTL: 6 * time.Second, Found: true}
	b.tick(0)
	b.claimsOn(Lease{Version: "v1", Record: held(3, "x")}, old)
	b.fails(cas.Ambiguous)
	var answered Instant
	for end := b.now.Add(5 * time.Minute); b.now < end; {
		a, ok := b.request()
		switch {
		case ok && a.kind == doAsk && answered == 0:
			b.now = b.now.Add(300 * time.Millisecond) // when the next read is due already
			b.answer(input{fence: old})
			answered = b.now
		case ok && a.kind == doAsk:
			return // it asks again
		case ok && a.kind == doWrite:
			if age := b.now.Sub(answered); age > time.Second {
				t.Errorf("claims by what it read %v ago", age)
			}
			b.fails(cas.Ambiguous)
			answered = 0
		case ok && answered != 0 && b.now < answered.Add(time.Minute):
			b.now = b.wake // the read hangs until it is given up
			b.step(input{kind: inTick})
		case ok:
			b.fails(cas.Ambiguous)
		default:
			b.now = b.wake
			b.step(input{kind: inTick})
		}
	}
	t.Error("neither asked again nor claimed")
}
