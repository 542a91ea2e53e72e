package coordinator

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/sf2loki/sf2loki-ha/cas"
)

// askedBench is a machine that has a request object, of revision "r2".
func askedBench(t *testing.T, hasFence bool) *bench {
	cfg := fast
	cfg.Revision = "r2"
	b := newBench(t, cfg, hasFence)
	b.m.hasRequests = true
	return b
}

func holdFor(d, age time.Duration) RequestState {
	return RequestState{Request: Request{}.WithHold(&Hold{ID: "h", Reason: "repair", For: d}), Version: "q1", Age: age}
}

// watch lets time pass on a standby that reads l and the request r, until it
// writes the lease or the limit is over.
func (b *bench) watch(l Lease, r RequestState, limit time.Duration) (action, bool) {
	b.t.Helper()
	for end := b.now.Add(limit); b.now < end; b.tick(50 * time.Millisecond) {
		for range 4 {
			a, ok := b.request()
			switch {
			case ok && (a.kind == doWrite || a.kind == doRequest):
				return a, true
			case b.m.op == nil:
			case b.m.op.kind == opRead:
				b.reads(l)
			case b.m.op.kind == opAsk:
				b.answer(input{fence: Fence{Epoch: 2, Found: true}, request: r})
			}
		}
	}
	return action{}, false
}

func (b *bench) endCause() string {
	for _, a := range b.last {
		if a.kind == doEnd {
			return a.cause.Error()
		}
	}
	return ""
}

func TestNobodyClaimsWithoutHavingReadTheRequestObjectInTheAttempt(t *testing.T) {
	b := askedBench(t, true)
	b.tick(0)
	b.reads(Lease{Version: "v1", Record: released(3, "x")})
	a, ok := b.request()
	if !ok || a.kind != doAsk || !a.ask.fence || !a.ask.request {
		t.Fatalf("not both were read at once: %+v", a)
	}
	for _, class := range []cas.Class{cas.Denied, cas.Ambiguous, cas.NoBucket, cas.Contended, cas.Unsupported} {
		b.fails(class)
		if a, ok := b.request(); ok && a.kind == doWrite {
			t.Fatalf("claimed although the request object was %v", class)
		}
		b.until(doAsk, 3*time.Second)
	}
	b.answer(input{fence: Fence{Epoch: 2, Found: true}})
	if a, ok := b.request(); !ok || a.kind != doWrite {
		t.Fatal("its definite absence does not let a candidate claim")
	}
}

func TestNobodyClaimsDuringAHold(t *testing.T) {
	for name, c := range map[string]struct {
		request RequestState
		wait    time.Duration
	}{
		"fresh":                  {holdFor(20*time.Second, 0), 20 * time.Second},
		"written 15 s ago":       {holdFor(20*time.Second, 15*time.Second), 5 * time.Second},
		"over":                   {holdFor(20*time.Second, 20*time.Second), 0},
		"long over":              {holdFor(20*time.Second, time.Hour), 0},
		"damaged: asks nothing":  {RequestState{Version: "q", Problem: cas.Corrupt}, 0},
		"longer than the lease?": {holdFor(2*time.Minute, time.Second), 119 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			b := askedBench(t, true)
			begun := b.now
			b.tick(0)
			request := c.request
			l := Lease{Version: "v1", Record: released(3, "x")}
			for b.now < begun.Add(5*time.Minute) {
				if a, ok := b.watch(l, request, 50*time.Millisecond); ok && a.kind == doWrite {
					if got := b.now.Sub(begun); got < c.wait || got > c.wait+1200*time.Millisecond {
						t.Errorf("claimed after %v, want %v", got, c.wait)
					}
					return
				}
				request.Age = c.request.Age + b.now.Sub(begun)
			}
			t.Error("never claimed")
		})
	}
}

func TestAHoldThatIsTakenBackLetsTheLeaseBeClaimedWithinAPoll(t *testing.T) {
	b := askedBench(t, true)
	b.tick(0)
	l := Lease{Version: "v1", Record: released(3, "x")}
	if _, ok := b.watch(l, holdFor(time.Hour, 0), 30*time.Second); ok {
		t.Fatal("claimed during the hold")
	}
	begun := b.now
	if a, ok := b.watch(l, RequestState{}, 5*time.Second); !ok || a.kind != doWrite || b.now.Sub(begun) > 1200*time.Millisecond {
		t.Errorf("claimed %v after %v", ok, b.now.Sub(begun))
	}
}

func TestAnAcquisitionThatTurnsOutToHaveLandedDuringAHoldIsGivenBack(t *testing.T) {
	b := askedBench(t, false)
	b.tick(0)
	b.reads(Lease{Version: "v1", Record: held(3, "x")})
	b.until(doAsk, 8*time.Second)
	b.answer(input{}) // nothing is asked
	landed, _ := b.request()
	b.fails(cas.Ambiguous)
	b.m.held = hold{id: "h", until: b.now.Add(time.Hour)} // as the next attempt reads
	b.until(doRead, 3*time.Second)
	b.reads(Lease{Version: "v2", Record: landed.rec})
	for _, a := range b.last {
		if a.kind == doStart {
			t.Error("work starts during a hold")
		}
	}
	if a, ok := b.request(); !ok || a.rec.State != Released {
		t.Errorf("not given back: %+v", b.last)
	}
}

// During a hold the document of checkpoints, which may be large, is not read in
// every poll.
func TestDuringAHoldOnlyTheRequestObjectIsRead(t *testing.T) {
	b := askedBench(t, true)
	b.tick(0)
	b.reads(Lease{Version: "v1", Record: released(3, "x")})
	b.answer(input{fence: Fence{Epoch: 2, Found: true}, request: holdFor(time.Hour, 0)})
	if !b.has(OnHold) {
		t.Error("nobody is told of the hold")
	}
	a := b.until(doAsk, 3*time.Second)
	if a.ask.fence || !a.ask.request {
		t.Errorf("asked for %+v", a.ask)
	}
	b.answer(input{})
	if !b.has(Resumed) {
		t.Error("nobody is told of its end")
	}
	if a, ok := b.request(); !ok || a.kind != doAsk || !a.ask.fence {
		t.Error("the fence was not read before the claim")
	}
}

// A permission that is missing must be known before the failover that needs it.
func TestAStandbyReadsWhatItWouldNeedBeforeItIsNeededAndAgainEveryHour(t *testing.T) {
	b := askedBench(t, true)
	b.m.rehearseFrom = 0
	b.m.cfg.Revision = ""
	b.tick(0)
	asks, failures := 0, 0
	for i := range 3 * 3600 {
		l := Lease{Version: cas.Version(fmt.Sprint("v", i)), Record: held(3, "x")}
		b.tick(time.Second)
		if b.m.op != nil && b.m.op.kind == opRead {
			b.reads(l)
		}
		if b.m.op == nil || b.m.op.kind != opAsk {
			continue
		}
		if asks++; b.m.op.ask != (inquiry{fence: true, request: true}) {
			t.Fatalf("asked for %+v", b.m.op.ask)
		}
		if asks <= 3 {
			b.fails(cas.Denied)
			if b.has(StoreFailed) {
				failures++
			}
			continue
		}
		b.answer(input{fence: Fence{Epoch: 2, Found: true}})
	}
	if failures != 3 || asks != 3+3 {
		t.Errorf("%d reads in three hours, %d failures said", asks, failures)
	}
}

func TestALeaderObeysWhatNamesItAndNothingElse(t *testing.T) {
	history := []PastTerm{{Epoch: 1, Revision: "bad"}}
	for name, c := range map[string]struct {
		request Request
		age     time.Duration
		obeys   string // part of the cause; "": it goes on
		next    string // successor in the tombstone
	}{
		"nothing":                       {request: Request{}},
		"a hold":                        {request: Request{}.WithHold(&Hold{ID: "h", Reason: "repair", For: time.Minute}), obeys: "hold: repair"},
		"a hold that is over":           {request: Request{}.WithHold(&Hold{ID: "h", For: time.Minute}), age: time.Minute},
		"a step-down of this term":      {request: stepDown(Target{Epoch: 1, Term: "TERM"}), obeys: "step-down: please"},
		"a step-down of this process":   {request: stepDown(Target{Incarnation: "own"}), obeys: "step-down: please"},
		"a step-down of another term":   {request: stepDown(Target{Epoch: 1, Term: "old"})},
		"a step-down of another epoch":  {request: stepDown(Target{Epoch: 9, Term: "TERM"})},
		"a step-down of another one":    {request: stepDown(Target{Incarnation: "other"})},
		"a handover":                    {request: handover("next", "r3"), obeys: "handover to revision r3", next: "next"},
		"a handover to the same":        {request: handover("next", "r2")},
		"a handover to one that failed": {request: handover("next", "bad")},
		"a handover to oneself":         {request: handover("own", "r3")},
		"a handover of a past term":     {request: Request{}.WithHandover(&Handover{ID: "o", Incarnation: "next", Revision: "r3", Target: Target{Epoch: 1, Term: "old"}})},
		"a hold and a step-down":        {request: stepDown(Target{Incarnation: "own"}).WithHold(&Hold{ID: "h", For: time.Minute}), obeys: "hold"},
	} {
		t.Run(name, func(t *testing.T) {
			b := askedBench(t, false)
			b.leads()
			b.m.mine.History = history
			r := c.request
			if r.StepDown != nil && r.StepDown.Target.Term == "TERM" {
				r.StepDown.Target.Term = b.m.term.id
			}
			if r.Handover != nil && r.Handover.Target.Term == "TERM" {
				r.Handover.Target.Term = b.m.term.id
			}
			a := b.until(doAsk, 3*time.Second)
			if a.ask.fence || !a.ask.request {
				t.Errorf("a leader asked for %+v", a.ask)
			}
			b.answer(input{request: RequestState{Request: r, Version: "q", Age: c.age}})
			cause := b.endCause()
			if (cause != "") != (c.obeys != "") || !strings.Contains(cause, c.obeys) {
				t.Fatalf("ended with %q, want %q", cause, c.obeys)
			}
			if c.obeys == "" {
				return
			}
			announced, ok := b.request()
			if !ok || announced.kind != doWrite || !announced.rec.Stopping || announced.rec.Obeyed == "" {
				t.Fatalf("the stop was not announced: %+v", announced.rec)
			}
			b.answer(input{version: "v9"})
			b.step(input{kind: inWorkEnded})
			b.tick(0)
			tomb, ok := b.request()
			if !ok || tomb.rec.State != Released || tomb.rec.Successor != c.next || tomb.rec.Obeyed != announced.rec.Obeyed {
				t.Errorf("tombstone %+v", tomb.rec)
			}
		})
	}
}

func stepDown(target Target) Request {
	return Request{}.WithStepDown(&StepDown{ID: "s", Reason: "please", Target: target})
}

func handover(to, revision string) Request {
	return Request{}.WithHandover(&Handover{ID: "o", Incarnation: to, Revision: revision, Target: Target{Epoch: 1, Term: "TERM"}})
}

func TestARequestIsObeyedOnceAlsoByTheSameProcess(t *testing.T) {
	b := askedBench(t, false)
	b.leads()
	r := RequestState{Request: stepDown(Target{Incarnation: "own"}), Version: "q"}
	b.until(doAsk, 3*time.Second)
	b.answer(input{request: r})
	b.answer(input{version: "v8"}) // announced
	b.step(input{kind: inWorkEnded})
	b.tick(0)
	b.answer(input{version: "v9"}) // the tombstone
	a, ok := b.watch(Lease{Version: "v9", Record: b.m.seen.lease.Record}, r, 20*time.Second)
	if !ok || a.kind != doWrite {
		t.Fatal("it never came back")
	}
	b.answer(input{version: "v10"})
	b.until(doAsk, 3*time.Second)
	// Also after a hold has been obeyed in between.
	b.m.obeyed = append(b.m.obeyed, "a hold")
	if b.answer(input{request: r}); b.endCause() != "" {
		t.Errorf("obeyed again: %s", b.endCause())
	}
}

func TestALeaderReadsTheRequestObjectOncePerRenewalAndNeverRenewsLaterForIt(t *testing.T) {
	b := askedBench(t, false)
	b.leads()
	asks, renewals, last := 0, 0, b.now
	for end := b.now.Add(20 * time.Second); b.now < end; b.tick(10 * time.Millisecond) {
		a, ok := b.request()
		switch {
		case ok && a.kind == doAsk:
			asks++ // never answered
		case ok && a.kind == doWrite:
			if late := b.now.Sub(last); late > 2010*time.Millisecond {
				t.Fatalf("renewed after %v", late)
			}
			renewals, last = renewals+1, b.now
			b.answer(input{version: cas.Version(rune('a' + renewals))})
			if a, ok := b.request(); ok && a.kind == doAsk {
				asks++
			}
		}
	}
	if renewals < 9 || asks < renewals-1 || asks > renewals+1 {
		t.Errorf("%d renewals, %d reads of the request object", renewals, asks)
	}
}

func TestALeaderThatCannotReadTheRequestObjectStays(t *testing.T) {
	b := askedBench(t, false)
	b.leads()
	for _, class := range cas.Classes() {
		b.until(doAsk, 3*time.Second)
		if b.fails(class); b.endCause() != "" {
			t.Errorf("%v ended the term", class)
		}
		b.until(doWrite, 3*time.Second)
		b.answer(input{version: cas.Version(class)})
	}
}

// Whoever wrote something that is not understood believes that it was heard.
func TestEachVersionOfARequestThatIsNotUnderstoodIsSaidOnce(t *testing.T) {
	b := askedBench(t, false)
	b.leads()
	said := func(r RequestState) bool {
		for b.m.op == nil || b.m.op.kind != opAsk {
			if b.m.op != nil {
				b.answer(input{version: cas.Version(b.m.op.rec.WriteID)})
				continue
			}
			b.tick(50 * time.Millisecond)
		}
		b.answer(input{request: r})
		return b.has(RequestUnclear)
	}
	bad := RequestState{Version: "q1", Problem: cas.Corrupt}
	if !said(bad) || said(bad) {
		t.Error("not once")
	}
	bad.Version = "q2"
	if !said(bad) || said(RequestState{Version: "q3"}) || !said(bad) {
		t.Error("another version, or the same after a sound one, is not said")
	}
}

func TestADamagedPartDoesNotKeepANewRevisionFromAsking(t *testing.T) {
	old := held(3, "x")
	old.Revision = "r1"
	damaged, problem := ParseRequest([]byte(`{"step_down":{"id":"s"},"hold":{"id":"h","for_ms":"15m"}}`))
	b := askedBench(t, true)
	b.tick(0)
	a, ok := b.watch(Lease{Version: "v", Record: old}, RequestState{Version: "q", Request: damaged, Problem: problem}, 2*time.Second)
	if !ok || a.kind != doRequest || !strings.Contains(string(a.request.Marshal()), `"step_down":{"id":"s"}`) {
		t.Errorf("asked %v: %s", ok, a.request.Marshal())
	}
	if !strings.Contains(problem.Error(), `"hold": for_ms must be a number, not a string`) {
		t.Errorf("%v", problem)
	}
}
