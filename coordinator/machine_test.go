package coordinator

import (
	"fmt"
	"testing"
	"time"

	"github.com/sf2loki/sf2loki-ha/cas"
)

func held(epoch int64, incarnation string) Record {
	return Record{Holder: "other", Epoch: epoch, Incarnation: incarnation, Term: "t", WriteID: "w", TTL: 6 * time.Second, State: Held, Lease: "mem://lease"}
}

func released(epoch int64, incarnation string) Record {
	r := held(epoch, incarnation)
	r.State = Released
	return r
}

// Rule 11: when is a tombstone claimed at once?
func TestATombstoneIsClaimedAtOnceOnlyIfNothingCouldBeNewer(t *testing.T) {
	copied := released(5, "x")
	copied.Lease = "mem://other"
	for name, c := range map[string]struct {
		before *Record // a held record seen first
		tomb   Record
		fence  *Fence // nil: no checkpoint document is configured
		atOnce bool
	}{
		"document agrees":                           {nil, released(5, "x"), &Fence{Epoch: 5, Found: true}, true},
		"document is older":                         {nil, released(5, "x"), &Fence{Epoch: 3, Found: true}, true},
		"document was sealed later":                 {nil, released(5, "x"), &Fence{Epoch: 6, Found: true}, false},
		"document does not exist, nothing seen":     {nil, released(5, "x"), &Fence{}, false},
		"document does not exist, held record seen": {ptr(held(5, "x")), released(5, "x"), &Fence{}, true},
		"no document, nothing seen":                 {nil, released(5, "x"), nil, false},
		"no document, held record seen":             {ptr(held(5, "x")), released(5, "x"), nil, true},
		"of another incarnation than was seen":      {ptr(held(5, "y")), released(5, "x"), &Fence{Epoch: 5, Found: true}, false},
		"older than what was seen (restored)":       {ptr(held(9, "y")), released(5, "x"), &Fence{Epoch: 5, Found: true}, false},
		"a copy of another lease":                   {nil, copied, &Fence{Epoch: 5, Found: true}, false},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, fast, c.fence != nil)
			b.tick(0)
			if c.before != nil {
				b.reads(Lease{Version: "v1", Record: *c.before})
				b.tick(time.Second)
			}
			b.reads(Lease{Version: "v2", Record: c.tomb})
			if c.fence != nil {
				if a, ok := b.request(); !ok || a.kind != doAsk {
					t.Fatalf("the fence was not read in the attempt: %+v", b.last)
				}
				b.answer(input{fence: *c.fence})
			}
			a, ok := b.request()
			if claims := ok && a.kind == doWrite; claims != c.atOnce {
				t.Fatalf("claimed at once: %v, want %v", claims, c.atOnce)
			}
			if c.atOnce {
				return
			}
			// It still goes stale like any other version.
			begun := b.now
			for b.now < begun.Add(20*time.Second) {
				b.tick(50 * time.Millisecond)
				switch a, ok := b.request(); {
				case ok && a.kind == doRead:
					b.reads(Lease{Version: "v2", Record: c.tomb})
				case ok && a.kind == doAsk:
					b.answer(input{fence: *c.fence})
				}
				if a, ok := b.request(); ok && a.kind == doWrite {
					waited := b.now.Sub(begun)
					if waited < 6*time.Second-50*time.Millisecond || waited > 8*time.Second {
						t.Errorf("claimed after %v, want the window of 6 s", waited)
					}
					return
				}
			}
			t.Error("never claimed")
		})
	}
}

func ptr[T any](v T) *T { return &v }

func TestTheWindowIsTheLargestTTLThatCouldStillRun(t *testing.T) {
	long := held(3, "x")
	long.TTL = 45 * time.Second
	huge := held(3, "x")
	huge.TTL = MaxTTL
	for name, c := range map[string]struct {
		lease  Lease
		window time.Duration
	}{
		"a shorter ttl than ours":         {Lease{Version: "v", Record: Record{Epoch: 1, Incarnation: "x", TTL: time.Second}}, 6 * time.Second},
		"a longer ttl than ours":          {Lease{Version: "v", Record: long}, 45 * time.Second},
		"the largest ttl":                 {Lease{Version: "v", Record: huge}, MaxTTL},
		"a record of upstream's":          {Lease{Version: "v", Record: Record{Holder: "u", Epoch: 4}}, time.Minute},
		"not a record at all":             {Lease{Version: "v", Corrupt: fmt.Errorf("junk")}, time.Minute},
		"a tombstone of nobody we know":   {Lease{Version: "v", Record: released(3, "x")}, 6 * time.Second},
		"a state this code does not know": {Lease{Version: "v", Record: Record{Epoch: 1, Incarnation: "x", State: "frozen"}}, 6 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, fast, false)
			b.tick(0)
			b.reads(c.lease)
			seen := b.now
			b.until(doWrite, 11*time.Minute)
			if got := b.now.Sub(seen); got < c.window || got > c.window+200*time.Millisecond {
				t.Errorf("claimed after %v, want %v", got, c.window)
			}
		})
	}
}

func TestARecordForNewerReadersIsNeverClaimed(t *testing.T) {
	b := newBench(t, fast, false)
	b.tick(0)
	r := held(3, "x")
	r.Version, r.MinVersion = 9, 9
	b.reads(Lease{Version: "v", Record: r})
	for range 1200 {
		b.tick(time.Second)
		if b.m.op != nil && b.m.op.kind == opWrite {
			t.Fatal("claimed")
		}
		if b.m.op != nil {
			b.reads(Lease{Version: "v", Record: r})
		}
	}
	// A newer record without that demand is taken over once stale.
	r.MinVersion = 0
	b.m.seen = sighting{}
	b.tick(time.Second)
	b.reads(Lease{Version: "v2", Record: r})
	b.until(doWrite, 10*time.Second)
}

// A process that was frozen while its answer waited checks the time before it
// does anything else (C-04, F2).
func TestAfterAFreezeTheDeadlineComesBeforeTheAnswer(t *testing.T) {
	b := newBench(t, fast, false)
	b.leads()
	b.until(doWrite, 3*time.Second) // a renewal is in flight
	b.now = b.now.Add(time.Minute)
	b.answer(input{version: "v2"}) // success, received long ago
	if b.m.phase != draining || !b.has(Expired) {
		t.Fatalf("phase %d; want the work to be stopped", b.m.phase)
	}
	if _, sent := b.request(); sent {
		t.Error("a request was sent for a term that is over")
	}
	// Whatever comes later, this term stays over.
	if b.tick(time.Second); b.m.phase == leading {
		t.Error("leadership came back")
	}
}

func TestAFrozenObserverTakesNothingOver(t *testing.T) {
	b := newBench(t, fast, false)
	b.tick(0)
	b.reads(Lease{Version: "v1", Record: held(3, "x")})
	b.now = b.now.Add(10 * time.Minute)
	b.step(input{kind: inTick})
	a, ok := b.request()
	if !ok || a.kind != doWrite || a.cond.version != "v1" {
		t.Fatalf("%+v: want the conditional write, which is itself the check", a)
	}
	b.fails(cas.Conflict)
	if b.m.phase != standby || b.has(Acquired) {
		t.Error("took over a lease that was renewed meanwhile")
	}
	b.reads(Lease{Version: "v9", Record: held(3, "x")})
	if b.tick(5 * time.Second); b.m.phase != standby {
		t.Error("did not start a new window")
	}
}

// Rule 6, for the leader: what follows an answer to a renewal.
func TestEachAnswerToARenewal(t *testing.T) {
	for name, c := range map[string]struct {
		doubtFirst bool // an earlier attempt on this version has no answer
		class      cas.Class
		leads      bool
		next       actionKind // the next request, if it still leads
	}{
		"conflict":                     {false, cas.Conflict, false, 0},
		"conflict in doubt":            {true, cas.Conflict, true, doRead},
		"contended":                    {false, cas.Contended, true, doWrite},
		"ambiguous":                    {false, cas.Ambiguous, true, doWrite},
		"denied":                       {false, cas.Denied, true, doWrite},
		"denied in doubt":              {true, cas.Denied, true, doWrite},
		"no bucket":                    {false, cas.NoBucket, true, doWrite},
		"unsupported":                  {false, cas.Unsupported, true, doWrite},
		"corrupt (a refused document)": {false, cas.Corrupt, true, doWrite},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, fast, false)
			b.leads()
			b.until(doWrite, 3*time.Second)
			if c.doubtFirst {
				b.fails(cas.Ambiguous)
				b.until(doWrite, time.Second)
			}
			b.fails(c.class)
			if got := b.m.phase == leading; got != c.leads {
				t.Fatalf("leads: %v, want %v", got, c.leads)
			}
			if !c.leads {
				if _, sent := b.request(); sent {
					t.Error("a clean conflict was followed by a request")
				}
				if b.m.killAt() != b.now {
					t.Error("the work was given grace")
				}
				return
			}
			begun := b.now
			for i := 0; ; i++ {
				if a, ok := b.request(); ok {
					if a.kind != c.next {
						t.Errorf("next request is of kind %d, want %d", a.kind, c.next)
					}
					break
				}
				if i > 20 {
					t.Fatal("no retry within a second")
				}
				b.tick(50 * time.Millisecond)
			}
			if waited := b.now.Sub(begun); waited > 500*time.Millisecond {
				t.Errorf("retried after %v, want at once with jitter", waited)
			}
		})
	}
}

// What the read that settles a doubt may show.
func TestEachAnswerToTheSettlingRead(t *testing.T) {
	for name, c := range map[string]struct {
		answer func(b *bench) input
		leads  bool
	}{
		"our attempt landed": {func(b *bench) input {
			return input{lease: Lease{Version: "v2", Record: b.m.doubt.attempts[0].rec}}
		}, true},
		"the version still is the old one": {func(b *bench) input { return input{lease: Lease{Version: "v1", Record: b.m.mine}} }, true},
		"another holder":                   {func(*bench) input { return input{lease: Lease{Version: "v2", Record: held(7, "x")}} }, false},
		"deleted":                          {func(*bench) input { return input{err: cas.NotFound} }, false},
		"overwritten with too much":        {func(*bench) input { return input{err: cas.Corrupt} }, false},
		"overwritten with junk":            {func(*bench) input { return input{lease: Lease{Version: "v2", Corrupt: fmt.Errorf("junk")}} }, false},
		"no answer":                        {func(*bench) input { return input{err: cas.Ambiguous} }, true},
		"denied":                           {func(*bench) input { return input{err: cas.Denied} }, true},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, fast, false)
			b.leads()
			b.until(doWrite, 3*time.Second)
			b.fails(cas.Ambiguous)
			b.until(doWrite, time.Second)
			b.fails(cas.Conflict)
			b.until(doRead, time.Second)
			b.answer(c.answer(b))
			if got := b.m.phase == leading; got != c.leads {
				t.Errorf("leads: %v, want %v", got, c.leads)
			}
		})
	}
}

func TestASettledWriteCountsFromTheAttemptThatLanded(t *testing.T) {
	b := newBench(t, fast, false)
	b.leads()
	b.until(doWrite, 3*time.Second)
	first := b.m.op.sentAt
	b.fails(cas.Ambiguous)
	landed := b.m.doubt.attempts[0].rec
	b.until(doWrite, time.Second)
	second := b.m.op.sentAt
	if second == first {
		t.Fatal("the attempts were sent at one instant; the test proves nothing")
	}
	b.tick(300 * time.Millisecond)
	b.fails(cas.Conflict)
	b.answer(input{lease: Lease{Version: "v2", Record: landed}})
	if got, want := b.m.term.deadline, first.Add(b.m.cfg.lifetime()); got != want {
		t.Errorf("deadline %v, want %v: counted from the send of the attempt that landed", got, want)
	}
}

func TestAStoreThatLimitsWritesGetsItsInterval(t *testing.T) {
	cfg := Config{TTL: 8 * time.Second, RenewInterval: 2 * time.Second, PollInterval: time.Second, MinWriteInterval: time.Second}
	b := newBench(t, cfg, false)
	b.leads()
	var sent []Instant
	for range 2000 {
		if a, ok := b.request(); ok && a.kind == doWrite {
			sent = append(sent, b.now)
			b.fails(cas.Contended)
			continue
		}
		if a, ok := b.request(); ok && a.kind == doRead {
			b.reads(Lease{Version: b.m.ver, Record: b.m.mine})
			continue
		}
		if b.m.phase != leading {
			break
		}
		b.tick(20 * time.Millisecond)
	}
	if len(sent) < 3 {
		t.Fatalf("%d attempts before the stop instant, want at least 3", len(sent))
	}
	for i := range sent[1:] {
		if d := sent[i+1].Sub(sent[i]); d < time.Second {
			t.Errorf("two writes within %v", d)
		}
	}
}

func TestEveryCallFitsThreeTimesBeforeTheStopInstant(t *testing.T) {
	b := newBench(t, fast, false)
	b.leads()
	for b.m.phase == leading {
		if a, ok := b.request(); ok {
			left := b.m.term.stopAt.Sub(b.now)
			if least := min(300*time.Millisecond, b.m.cfg.CallTimeout); a.timeout > max(left/3, least) {
				t.Fatalf("a call of %v with %v left", a.timeout, left)
			}
			b.now = b.now.Add(a.timeout)
			b.fails(cas.Ambiguous)
			continue
		}
		b.tick(10 * time.Millisecond)
	}
}

func TestTheMachineAlwaysSleeps(t *testing.T) {
	// A wake in the past with a request in flight would be a busy loop.
	for name, cut := range map[string]func(b *bench){
		"leading":   func(b *bench) {},
		"stopping":  func(b *bench) { b.step(input{kind: inStop, reason: "x", final: true}) },
		"releasing": func(b *bench) { b.step(input{kind: inWorkEnded}) },
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, fast, false)
			b.leads()
			cut(b)
			for range 2000 {
				if b.wake <= b.now {
					b.tick(0) // what is due now is done now
				}
				if b.wake <= b.now && b.m.phase != finished {
					t.Fatalf("phase %d wants to wake %v ago", b.m.phase, b.now.Sub(b.wake))
				}
				b.tick(10 * time.Millisecond) // no request is ever answered
			}
		})
	}
}
