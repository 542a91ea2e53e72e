package coordinator

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/sf2loki/sf2loki-ha/cas"
)

// What people are told of a hold is what is left of it, not how long it was.
func TestWhatIsLeftOfAHoldIsSaid(t *testing.T) {
	b := askedBench(t, true)
	b.tick(0)
	b.reads(Lease{Version: "v1", Record: released(3, "x")})
	b.answer(input{fence: Fence{Epoch: 2, Found: true}, request: holdFor(20*time.Second, 15*time.Second)})
	for _, a := range b.last {
		if a.kind == doEmit && a.event.Kind == OnHold && a.event.Left != 5*time.Second {
			t.Errorf("says that %v are left, want 5s", a.event.Left)
		}
	}
	if left := b.m.held.until.Sub(b.now); left != 5*time.Second {
		t.Errorf("%v are left, want 5s", left)
	}
}

// largeRegister holds an object that is too large to be read.
type largeRegister struct{ cas.Register }

func (largeRegister) Load(context.Context) (cas.Value, error) {
	return cas.Value{Version: "q7"}, &cas.Error{Class: cas.Corrupt, Op: "load", Err: errors.New("too large")}
}

// A damaged document must not stop a pair.
func TestARequestObjectThatIsTooLargeToReadAsksForNothing(t *testing.T) {
	s, err := RequestsFrom(largeRegister{}).ReadRequest(t.Context())
	if err != nil || s.Version != "q7" || s.Problem == nil || s.Request.Hold != nil {
		t.Errorf("%+v, %v", s, err)
	}
}

// A replica whose work failed leaves its own tombstone alone for longer than one
// that stepped down, so that others try first; but not much longer than a ttl.
func TestAReplicaWhoseWorkFailedStaysOutLongerThanOneThatSteppedDown(t *testing.T) {
	back := func(err error) time.Duration {
		b := newBench(t, fast, false)
		b.leads()
		b.step(input{kind: inWorkEnded, err: err})
		tomb, ok := b.request()
		if !ok || tomb.rec.State != Released {
			t.Fatalf("%+v", b.last)
		}
		b.answer(input{version: "v9"})
		begun := b.now
		if a, ok := b.watch(Lease{Version: "v9", Record: tomb.rec}, RequestState{}, time.Minute); !ok || a.kind != doWrite {
			t.Fatal("never came back")
		}
		return b.now.Sub(begun)
	}
	if got := back(nil); got > 3*time.Second {
		t.Errorf("work that ended keeps it out for %v", got)
	}
	if got := back(errors.New("not sealed")); got < fast.TTL || got > fast.TTL+4*time.Second {
		t.Errorf("work that failed keeps it out for %v, want a ttl and the turn of the others", got)
	}
}

// endsTerm lets a leader that has been asked announce, drain and release, and
// claim again; the announcement gets this answer.
func (b *bench) endsTerm(announced input) (tomb Record) {
	b.t.Helper()
	if a, ok := b.request(); !ok || a.kind != doWrite || !a.rec.Stopping {
		b.t.Fatalf("not announced: %+v", b.last)
	}
	b.answer(announced)
	b.step(input{kind: inWorkEnded})
	b.tick(0)
	a, ok := b.request()
	if !ok || a.rec.State != Released {
		b.t.Fatalf("not released: %+v", b.last)
	}
	b.answer(input{version: "tomb"})
	return a.rec
}

// The announcement may not arrive; then the tombstone says what was obeyed.
func TestATombstoneSaysWhatWasObeyedThoughTheAnnouncementWasRefused(t *testing.T) {
	b := askedBench(t, false)
	b.leads()
	b.until(doAsk, 3*time.Second)
	b.answer(input{request: RequestState{Request: stepDown(Target{Incarnation: "own"}), Version: "q"}})
	if tomb := b.endsTerm(input{err: cas.Denied}); tomb.Obeyed != "s" {
		t.Errorf("obeyed %q", tomb.Obeyed)
	}
}

// A hold that was obeyed after it does not make a process forget a step-down
// that still stands in the document.
func TestAStepDownIsNotObeyedAgainAfterAHold(t *testing.T) {
	b := askedBench(t, false)
	b.leads()
	down := RequestState{Request: stepDown(Target{Incarnation: "own"}), Version: "q1"}
	both := RequestState{Request: down.Request.WithHold(&Hold{ID: "h", For: time.Second}), Version: "q2"}
	for i, r := range []RequestState{down, both} {
		b.until(doAsk, 3*time.Second)
		b.answer(input{request: r})
		if b.endCause() == "" {
			t.Fatalf("request %d is not obeyed", i)
		}
		tomb := b.endsTerm(input{version: "announced"})
		if a, ok := b.watch(Lease{Version: "tomb", Record: tomb}, down, 30*time.Second); !ok || a.kind != doWrite {
			t.Fatal("it never came back")
		}
		b.answer(input{version: cas.Version([]string{"v20", "v30"}[i])})
	}
	b.until(doAsk, 3*time.Second)
	if b.answer(input{request: down}); b.endCause() != "" {
		t.Errorf("obeyed again: %s", b.endCause())
	}
}

// A poll that shows the lease unchanged is no reason to decide by what was read
// before it.
func TestWhatWasReadBeforeAPollIsReadAgainInTheAttempt(t *testing.T) {
	b := askedBench(t, true)
	b.m.cfg.Revision, b.m.rehearseFrom = "", 0
	l := Lease{Version: "v1", Record: held(3, "x")}
	b.tick(0)
	b.reads(l)
	if a, ok := b.request(); !ok || a.kind != doAsk {
		t.Fatalf("nothing was read ahead: %+v", b.last)
	}
	b.answer(input{fence: Fence{Epoch: 2, Found: true}})
	for range 200 {
		b.tick(50 * time.Millisecond)
		switch a, ok := b.request(); {
		case ok && a.kind == doRead:
			b.reads(l)
		case ok && a.kind == doWrite:
			t.Fatal("claimed on what was read before the last polls")
		}
		if a, ok := b.request(); ok && a.kind == doAsk && a.ask == (inquiry{fence: true, request: true}) {
			return
		}
	}
	t.Error("never tried to claim")
}
