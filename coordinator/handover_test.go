package coordinator

import (
	"testing"
	"time"

	"github.com/sf2loki/sf2loki-ha/cas"
)

// Rule of the handover: the successor first, then third parties, then the one
// that gave it away.
func TestATombstoneIsLeftToItsSuccessorFirst(t *testing.T) {
	claim := func(successor, releasedBy string) time.Duration {
		b := askedBench(t, true)
		b.tick(0)
		r := released(3, releasedBy)
		r.Successor = successor
		begun := b.now
		if _, ok := b.watch(Lease{Version: "v1", Record: r}, RequestState{}, 20*time.Second); !ok {
			t.Fatal("never claimed")
		}
		return b.now.Sub(begun)
	}
	successor, third, giver := claim("own", "x"), claim("other", "x"), claim("other", "own")
	if successor > 100*time.Millisecond || third < 2*time.Second || third > 2200*time.Millisecond || giver < third+2*time.Second {
		t.Errorf("the successor claims after %v, others after %v, the giver after %v", successor, third, giver)
	}
}

func TestAStandbyOfANewRevisionAsksForAHandoverOnce(t *testing.T) {
	old := held(3, "x")
	old.Revision = "r1"
	was := old
	was.History = []PastTerm{{Epoch: 2, Revision: "r2"}}
	same, foreign, stopping, unnamed := old, Record{Holder: "u", Epoch: 3}, old, old
	same.Revision, stopping.Stopping, unnamed.Revision = "r2", true, ""
	target := Target{Epoch: 3, Term: "t"}
	for name, c := range map[string]struct {
		record  Record
		request RequestState
		asks    bool
	}{
		"the leader is older":                {old, RequestState{}, true},
		"a document exists":                  {old, RequestState{Version: "q", Request: stepDown(Target{Incarnation: "z"})}, true},
		"a handover of a past term":          {old, RequestState{Version: "q", Request: Request{}.WithHandover(&Handover{ID: "p", Incarnation: "i", Revision: "r0", Target: Target{Epoch: 2, Term: "s"}})}, true},
		"it has led before":                  {was, RequestState{}, false},
		"the leader is the same":             {same, RequestState{}, false},
		"the leader is another program":      {foreign, RequestState{}, false},
		"the leader stops already":           {stopping, RequestState{}, false},
		"the leader does not say":            {unnamed, RequestState{}, false},
		"somebody else has asked":            {old, RequestState{Version: "q", Request: Request{}.WithHandover(&Handover{ID: "p", Incarnation: "i", Revision: "r3", Target: target})}, false},
		"a hold":                             {old, holdFor(time.Hour, 0), false},
		"a document that nobody understands": {old, RequestState{Version: "q", Problem: cas.Corrupt}, false},
	} {
		t.Run(name, func(t *testing.T) {
			b := askedBench(t, true)
			b.tick(0)
			asked := 0
			for i := range 8 { // the leader renews
				l := Lease{Version: cas.Version(rune('a' + i)), Record: c.record}
				a, ok := b.watch(l, c.request, 2*time.Second)
				if !ok {
					continue
				}
				if a.kind != doRequest {
					t.Fatal("claimed a lease that is renewed")
				}
				asked++
				h := a.request.Handover
				if h == nil || h.Incarnation != "own" || h.Revision != "r2" || h.Target != target || a.cond.absent != (c.request.Version == "") || a.cond.version != c.request.Version {
					t.Errorf("%+v on %+v", h, a.cond)
				}
				if a.request.StepDown != c.request.Request.StepDown {
					t.Error("another part of the document was touched")
				}
				b.answer(input{version: "q2"})
			}
			if want := map[bool]int{true: 1}[c.asks]; asked != want {
				t.Errorf("asked %d times, want %d", asked, want)
			}
		})
	}
}

func TestAStandbyThatIsNotAdmittedOrCannotReadTheDocumentDoesNotAskForAHandover(t *testing.T) {
	old := held(3, "x")
	old.Revision = "r1"
	b := askedBench(t, true)
	b.m.admit = func() error { return cas.Ambiguous }
	b.tick(0)
	for i := range 5 {
		if _, ok := b.watch(Lease{Version: cas.Version(rune('a' + i)), Record: old}, RequestState{}, 2*time.Second); ok {
			t.Fatal("asked without being ready")
		}
	}
	b.m.admit = nil
	for i := range 3 {
		b.reads2(Lease{Version: cas.Version(rune('m' + i)), Record: old})
		if a, ok := b.request(); ok && a.kind == doRequest {
			t.Fatal("asked although the checkpoint document cannot be read")
		}
	}
}

// reads2 lets two seconds pass in which the lease is read and everything beside
// it is denied.
func (b *bench) reads2(l Lease) {
	for range 40 {
		b.tick(50 * time.Millisecond)
		if b.m.op != nil && b.m.op.kind == opRead {
			b.reads(l)
		}
		if b.m.op != nil && b.m.op.kind == opAsk {
			b.fails(cas.Denied)
		}
	}
}
