package coordinator

import (
	"fmt"
	"testing"
	"time"

	"github.com/sf2loki/sf2loki-ha/cas"
)

// nominations is how often a standby of revision r2 asks for a handover in two
// minutes in which a leader renews rec, the document is r, and each of its writes
// gets this answer.
func nominations(t *testing.T, rec Record, r RequestState, answer input) (n int, last Request) {
	t.Helper()
	b := askedBench(t, true)
	b.m.jitter = func() float64 { return 0 }
	b.tick(0)
	for i := range 60 {
		a, ok := b.watch(Lease{Version: cas.Version(fmt.Sprint("v", i)), Record: rec}, r, 2*time.Second)
		if ok && a.kind == doRequest {
			n, last = n+1, a.request
			b.answer(answer)
		}
	}
	return n, last
}

func olderRevision() Record {
	r := held(3, "x")
	r.Revision = "r1"
	return r
}

func TestAStandbyAsksNoLeaderItCouldNotFollow(t *testing.T) {
	tomb := olderRevision()
	tomb.State = Released
	failed := olderRevision()
	failed.Work = failed.Work.failed("own")
	newer := olderRevision()
	newer.Version, newer.MinVersion = RecordVersion+1, RecordVersion+1
	for name, rec := range map[string]Record{
		"the lease is released":                        tomb,
		"its own work failed and has to wait":          failed,
		"the record is for newer readers than this is": newer,
	} {
		t.Run(name, func(t *testing.T) {
			b := askedBench(t, true)
			b.tick(0)
			b.reads(Lease{Version: "v", Record: rec})
			if at := b.m.nominateAt(); at != Never {
				t.Errorf("asks in %v", at.Sub(b.now))
			}
		})
	}
}

func TestAnotherChangeOfTheDocumentMeanwhileDelaysANominationOnly(t *testing.T) {
	n, _ := nominations(t, olderRevision(), RequestState{}, input{err: cas.Conflict})
	if n < 10 || n > 61 {
		t.Errorf("asked %d times in two minutes in which somebody else was always quicker", n)
	}
}

// Whoever writes the document anew takes what has passed off the hold.
func TestANominationDoesNotReviveAHoldThatIsOver(t *testing.T) {
	n, request := nominations(t, olderRevision(), holdFor(time.Minute, 2*time.Minute), input{version: "q2"})
	if n != 1 || request.Hold != nil {
		t.Errorf("asked %d times, with the hold %+v", n, request.Hold)
	}
}
