package coordinator

import (
	"fmt"
	"testing"
	"time"

	"github.com/sf2loki/sf2loki-ha/cas"
)

// One refused or lost write must not cost a new revision its turn for as long as
// the leader's term lasts, which may be weeks.
func TestANominationThatDidNotReachTheDocumentIsTriedAgain(t *testing.T) {
	old := held(3, "x")
	old.Revision = "r1"
	for _, class := range []cas.Class{cas.Contended, cas.Ambiguous, cas.Denied} {
		t.Run(string(class), func(t *testing.T) {
			b := askedBench(t, true)
			b.tick(0)
			asked := 0
			for i := range 60 { // the leader renews for two minutes
				a, ok := b.watch(Lease{Version: cas.Version(fmt.Sprint("v", i)), Record: old}, RequestState{}, 2*time.Second)
				if ok && a.kind == doRequest {
					asked++
					b.fails(class) // and the document stays as it is
				}
			}
			if asked < 2 {
				t.Errorf("asked %d times in two minutes although the document never said so", asked)
			}
			if asked > 61 {
				t.Errorf("asked %d times in two minutes", asked)
			}
		})
	}
}

// The two reads of a nomination may take longer than what is left of a poll
// interval; a document of a megabyte does.
func TestANominationIsNotStarvedByThePolls(t *testing.T) {
	old := held(3, "x")
	old.Revision = "r1"
	b := askedBench(t, true)
	b.m.cfg = Config{Identity: "me", Lease: "mem://lease", Revision: "r2"}.WithDefaults() // poll 1 s, call timeout 1.5 s
	reads, asks := 0, 0
	b.tick(0)
	for at := b.now; b.now < at.Add(30*time.Second); {
		if b.m.op == nil {
			b.tick(10 * time.Millisecond)
			continue
		}
		switch b.m.op.kind {
		case opRead:
			reads++
			b.now = b.now.Add(50 * time.Millisecond)
			b.reads(Lease{Version: cas.Version(fmt.Sprint("v", int64(b.now.Sub(at)/(2*time.Second)))), Record: old})
		case opAsk:
			asks++
			b.now = b.now.Add(1100 * time.Millisecond)
			b.answer(input{fence: Fence{Epoch: 2, Found: true}})
		case opRequest:
			return
		}
	}
	t.Errorf("never asked for a handover in 30 s: %d reads of the lease, %d of what a candidate needs", reads, asks)
}
