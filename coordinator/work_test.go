package coordinator

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"
)

func TestBackoffDoublesToAMinuteAndRemembersWhoFailed(t *testing.T) {
	w := Work{}
	for i, want := range []time.Duration{1, 2, 4, 8, 16, 32, 60, 60, 60} {
		if w = w.failed(fmt.Sprint(i % 3)); w.Backoff != want*time.Second || w.Failures != i+1 {
			t.Errorf("after %d failures: %+v", i+1, w)
		}
	}
	if !slices.Equal(w.Incarnations, []string{"0", "1", "2"}) {
		t.Errorf("%v", w.Incarnations)
	}
	for i := range 3000 {
		w = w.failed(fmt.Sprint("p", i))
	}
	if w.Failures != maxFailures || len(w.Incarnations) != maxFailed || w.pause("p2999") != maxBackoff || w.pause("0") != 0 {
		t.Errorf("%d failures, %d incarnations", w.Failures, len(w.Incarnations))
	}
}

func TestADamagedBackoffOfARecordOnlyEverMakesSomebodyWaitAMinute(t *testing.T) {
	for _, c := range []struct {
		json string
		want time.Duration
	}{
		{`{"failures":3,"incarnations":["me"],"backoff_ms":4000}`, 4 * time.Second},
		{`{"failures":3,"incarnations":["me"],"backoff_ms":99999999999999}`, time.Minute},
		{`{"failures":3,"incarnations":["me"],"backoff_ms":-1}`, 0},
		{`{"failures":-3,"incarnations":["me"],"backoff_ms":4000}`, 0},
		{`{"failures":3,"incarnations":"me","backoff_ms":4000}`, 0},
		{`"often"`, 0}, {`null`, 0}, {`[]`, 0},
	} {
		r, err := ParseRecord([]byte(`{"holder":"h","epoch":1,"incarnation":"i","work":` + c.json + `}`))
		if err != nil {
			t.Fatalf("%s costs the record: %v", c.json, err)
		}
		if got := r.Work.pause("me"); got != c.want {
			t.Errorf("%s: waits %v, want %v", c.json, got, c.want)
		}
	}
}

// looped is a tombstone of work that failed three times on the incarnation.
func looped(incarnation string) Record {
	r := released(3, incarnation)
	for range 3 {
		r.Work = r.Work.failed(incarnation)
	}
	return r
}

func TestWhoseWorkFailedWaitsForTheBackoffAndOthersTryAtOnce(t *testing.T) {
	claim := func(tomb Record) time.Duration {
		b := newBench(t, fast, true)
		b.tick(0)
		begun := b.now
		if _, ok := b.watch(Lease{Version: "v1", Record: tomb}, RequestState{}, 2*time.Minute); !ok {
			t.Fatal("never claimed")
		}
		return b.now.Sub(begun)
	}
	if got := claim(looped("x")); got > 100*time.Millisecond {
		t.Errorf("a fresh one claims after %v", got)
	}
	both := looped("x")
	for range 3 {
		both.Work = both.Work.failed("own")
	}
	if got := claim(both); got < 32*time.Second || got > 32500*time.Millisecond {
		t.Errorf("one whose work failed claims after %v, want the back-off of 32 s", got)
	}
	// It holds for a record that went stale as well: its holder died meanwhile.
	stale := both
	stale.State = Held
	if got := claim(stale); got < 32*time.Second || got > 32500*time.Millisecond {
		t.Errorf("after %v", got)
	}
}

func TestFailuresGoIntoTheNextRenewalAndAreForgottenOnceTheWorkRunsWell(t *testing.T) {
	b := newBench(t, fast, false)
	b.leads()
	b.step(input{kind: inWorkFailed, term: b.m.term.id})
	b.step(input{kind: inWorkFailed, term: b.m.term.id})
	a := b.until(doWrite, 3*time.Second)
	if a.rec.Work.Failures != 2 || a.rec.Work.pause("own") != 2*time.Second {
		t.Errorf("renewed with %+v", a.rec.Work)
	}
	// What fails while the renewal is in flight is not lost with its answer.
	b.step(input{kind: inWorkFailed, term: b.m.term.id})
	b.answer(input{version: "v2"})
	if a := b.until(doWrite, 3*time.Second); a.rec.Work.Failures != 3 {
		t.Errorf("renewed with %+v", a.rec.Work)
	}
	b.answer(input{version: "v3"})
	b.step(input{kind: inWorkSettled, term: b.m.term.id})
	if a := b.until(doWrite, 3*time.Second); a.rec.Work.Failures != 0 || len(a.rec.Work.Incarnations) != 0 {
		t.Errorf("renewed with %+v", a.rec.Work)
	}
}

func TestACrashLoopReleasesWithTheBackoffAndWithoutAnotherStayOut(t *testing.T) {
	b := newBench(t, fast, true)
	b.tick(0)
	b.reads(Lease{Version: "v0", Record: looped("x")})
	b.answer(input{fence: Fence{Epoch: 2, Found: true}})
	b.answer(input{version: "v1"})
	if got := b.m.term.failures; got != 3 {
		t.Errorf("the term begins after %d failures, want the 3 of the record", got)
	}
	for range 3 {
		b.step(input{kind: inWorkFailed, term: b.m.term.id})
	}
	b.step(input{kind: inWorkEnded, err: fmt.Errorf("supervise: %w", ErrCrashLoop)})
	tomb, ok := b.request()
	if !ok || tomb.rec.State != Released || tomb.rec.Work.Failures != 6 || tomb.rec.Work.Backoff != 32*time.Second {
		t.Fatalf("tombstone %+v", tomb.rec.Work)
	}
	if last := tomb.rec.History[len(tomb.rec.History)-1]; last.Reason != "crash loop" {
		t.Errorf("reason %q", last.Reason)
	}
	b.answer(input{version: "v2"})
	begun := b.now
	if _, ok := b.watch(Lease{Version: "v2", Record: tomb.rec}, RequestState{}, 2*time.Minute); !ok || b.now.Sub(begun) < 32*time.Second || b.now.Sub(begun) > 36*time.Second {
		t.Errorf("back after %v, want the back-off of 32 s", b.now.Sub(begun))
	}
}

func TestOtherFailuresOfTheWorkKeepTheirStayOut(t *testing.T) {
	b := newBench(t, fast, false)
	b.leads()
	b.step(input{kind: inWorkEnded, err: errors.New("not sealed")})
	if b.m.outUntil <= b.now {
		t.Error("no stay-out")
	}
	if a, ok := b.request(); !ok || a.rec.Work.Failures != 0 {
		t.Error("counts as a failure of the work")
	}
}
