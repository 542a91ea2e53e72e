package coordinator

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sf2loki/sf2loki-ha/cas"
)

// The guard kills at its instant and accepts no later one: an answer that was
// waiting in a frozen process must not bring the term back (I4).
func TestATermWhoseKillInstantPassedIsNotProlonged(t *testing.T) {
	b := newBench(t, fast, false)
	b.leads()
	for {
		b.until(doWrite, 3*time.Second)
		if b.m.term.stopAt.Sub(b.now) < time.Second {
			break
		}
		b.now = b.now.Add(200 * time.Millisecond)
		b.fails(cas.Ambiguous)
	}
	was := b.m.term
	b.now = was.killAt.Add(time.Millisecond) // frozen meanwhile
	b.answer(input{version: "v2"})
	if b.m.phase != draining || b.m.term.deadline != was.deadline {
		t.Errorf("phase %d, deadline moved by %v; want the term to be over", b.m.phase, b.m.term.deadline.Sub(was.deadline))
	}
}

// An old version that was put back over a longer lease: its holder may be
// working, cut off, until its own ttl ends (rules 1 and 10; I1).
func TestARestoredRecordWaitsForTheLongestTTLThatMayRun(t *testing.T) {
	for name, c := range map[string]struct {
		seen  bool // the later term's record was read
		fence *Fence
	}{
		"known from its record":   {true, nil},
		"known from the document": {false, &Fence{Epoch: 7, TTL: 30 * time.Second, Found: true}},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, fast, c.fence != nil)
			b.tick(0)
			if c.seen {
				later := held(7, "x")
				later.TTL = 30 * time.Second
				b.reads(Lease{Version: "v7", Record: later})
				b.tick(time.Second)
			}
			b.reads(Lease{Version: "v8", Record: held(3, "y")})
			seen := b.now
			for b.now.Sub(seen) < time.Minute {
				a, ok := b.request()
				if ok && a.kind == doWrite {
					break
				}
				switch {
				case ok && a.kind == doAsk:
					b.answer(input{fence: *c.fence})
				case b.m.op != nil:
					b.reads(b.m.seen.lease)
				default:
					b.tick(50 * time.Millisecond)
				}
			}
			if got := b.now.Sub(seen); got < 30*time.Second || got > 31*time.Second {
				t.Errorf("claimed after %v, want 30 s", got)
			}
		})
	}
}

// Rule 1: the epoch a holder reads of its own loss is a floor too (I2).
func TestALoserExceedsTheEpochItReadOfItsLoss(t *testing.T) {
	b := newBench(t, fast, false)
	b.leads()
	b.until(doWrite, 3*time.Second)
	b.fails(cas.Ambiguous)
	b.until(doWrite, time.Second)
	b.fails(cas.Conflict)
	b.answer(input{lease: Lease{Version: "v7", Record: held(7, "x")}})
	b.step(input{kind: inWorkEnded})
	b.tick(time.Millisecond)
	b.fails(cas.NotFound) // deleted meanwhile
	if a := b.until(doWrite, 20*time.Second); a.rec.Epoch != 8 {
		t.Errorf("claims epoch %d, has read 7", a.rec.Epoch)
	}
}

// A store that answers reads and refuses every write is not flooded, and one
// that limits writes gets its interval from a candidate as well.
func TestACandidateInDoubtIsCalm(t *testing.T) {
	cfg := Config{TTL: 8 * time.Second, RenewInterval: 2 * time.Second, PollInterval: time.Second, MinWriteInterval: time.Second}
	b := newBench(t, cfg, false)
	b.tick(0)
	b.fails(cas.NotFound)
	b.until(doWrite, 10*time.Second)
	begun, requests, last := b.now, 0, Instant(0)
	for b.now < begun.Add(30*time.Second) {
		a, ok := b.request()
		if !ok {
			b.tick(10 * time.Millisecond)
			continue
		}
		requests++
		if a.kind == doRead {
			b.fails(cas.NotFound)
			continue
		}
		if last != 0 && b.now.Sub(last) < time.Second {
			t.Fatalf("two writes within %v", b.now.Sub(last))
		}
		last = b.now
		b.fails(cas.Contended)
	}
	if requests > 30*7 {
		t.Errorf("%d requests in 30 s", requests)
	}
}

// The tombstone follows the last attempt, not only the last confirmed renewal.
func TestAReleaseKeepsTheWriteIntervalAfterAFailedRenewal(t *testing.T) {
	cfg := Config{TTL: 8 * time.Second, RenewInterval: 2 * time.Second, PollInterval: time.Second, MinWriteInterval: time.Second}
	b := newBench(t, cfg, false)
	b.leads()
	b.until(doWrite, 3*time.Second)
	renewal := b.now
	b.fails(cas.Contended)
	b.step(input{kind: inWorkEnded})
	if a := b.until(doWrite, 3*time.Second); a.rec.State != Released || b.now.Sub(renewal) < time.Second {
		t.Errorf("%s written %v after an attempt", a.rec.State, b.now.Sub(renewal))
	}
}

func TestAnEpochBeyondTheMaximumIsNotWrapped(t *testing.T) {
	b := newBench(t, fast, true)
	b.tick(0)
	b.fails(cas.NotFound)
	b.until(doAsk, 10*time.Second)
	b.answer(input{fence: Fence{Epoch: 1<<63 - 1, Found: true}})
	if a, ok := b.request(); ok && a.kind == doWrite {
		t.Errorf("claims epoch %d", a.rec.Epoch)
	}
}

func TestNoopEndsItsTermsAndForgetsAStaleStepDown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := NewNoop(nil)
		ctx, cancel := context.WithCancel(t.Context())
		var terms []*Term
		done := make(chan error, 1)
		go func() {
			done <- n.Run(ctx, func(ctx context.Context, term *Term) error {
				terms = append(terms, term)
				if len(terms) > 1 {
					<-ctx.Done()
				}
				return nil
			})
		}()
		sleep(500 * time.Millisecond) // the pause after the first term
		if terms[0].CheckFence() == nil {
			t.Error("a term may act although its work has returned")
		}
		n.StepDown("nobody leads")
		sleep(10 * time.Second)
		if len(terms) != 2 || n.Status().Role != RoleLeader {
			t.Errorf("%d terms; a step-down without work ended the next one", len(terms))
		}
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

func TestALongPollIsNotTakenForAStuckLoop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		cfg := Config{TTL: 2 * time.Minute, RenewInterval: 30 * time.Second, PollInterval: time.Minute}
		a := w.replica("a", cfg).run()
		sleep(59 * time.Second)
		if err := a.elector.Stuck(); err != nil {
			t.Error(err)
		}
		a.stop()
	})
}

// A standby reads the fence before it needs it. What it then learned of the ttl
// still counts when another document, or none, is read in the attempt (rule 10).
func TestTheTTLOfAFenceThatWasReadIsNotForgotten(t *testing.T) {
	b := newBench(t, fast, true)
	b.m.rehearseFrom = 0
	b.tick(0)
	b.reads(Lease{Version: "v1", Record: held(3, "x")})
	b.answer(input{fence: Fence{Epoch: 3, TTL: 40 * time.Second, Found: true}})
	b.until(doRead, 3*time.Second)
	b.fails(cas.NotFound)
	absent := b.now
	b.until(doWrite, 2*time.Minute)
	if got := b.now.Sub(absent); got < 40*time.Second {
		t.Errorf("claimed after %v of a window of 40 s", got)
	}
}

// Two absences with a term in between look alike. A seal that is new tells them
// apart: whoever sealed may be working (rule 10; I1).
func TestAnAbsenceCountsAnewIfTheDocumentWasSealedMeanwhile(t *testing.T) {
	for name, c := range map[string]struct {
		first, second Fence
		seen          *Record // read before the lease was absent
		anew          bool
	}{
		"no document, then one":              {Fence{}, Fence{Epoch: 1, Term: "t", Found: true}, nil, true},
		"sealed again by the same term":      {Fence{Epoch: 3, Term: "t", Found: true}, Fence{Epoch: 3, Term: "t", Found: true}, nil, false},
		"sealed by a later term":             {Fence{Epoch: 3, Term: "t", Found: true}, Fence{Epoch: 4, Term: "u", Found: true}, nil, true},
		"sealed at that epoch by another":    {Fence{Epoch: 3, Term: "t", Found: true}, Fence{Epoch: 3, Term: "u", Found: true}, nil, true},
		"by the term whose record was read":  {Fence{Epoch: 3, Term: "t", Found: true}, Fence{Epoch: 7, Term: "x7", Found: true}, ptr(held(7, "x")), false},
		"by another of that epoch":           {Fence{Epoch: 3, Term: "t", Found: true}, Fence{Epoch: 7, Term: "other", Found: true}, ptr(held(7, "x")), true},
		"a document that was never sealed":   {Fence{Found: true}, Fence{Found: true}, nil, false},
		"sealed by sf2loki's own file store": {Fence{Found: true}, Fence{Epoch: 2, Found: true}, nil, true},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, fast, true)
			fence := c.first
			b.tick(0)
			if c.seen != nil {
				c.seen.Term = "x7"
				b.reads(Lease{Version: "v7", Record: *c.seen})
				b.until(doRead, 3*time.Second)
			}
			b.fails(cas.NotFound)
			absent, changed := b.now, b.now.Add(b.m.cfg.TTL/2)
			for b.now.Sub(absent) < time.Minute {
				a, ok := b.request()
				switch {
				case ok && a.kind == doWrite:
					want := b.m.cfg.TTL
					if c.anew {
						want += b.m.cfg.TTL
					}
					if got := b.now.Sub(absent); got < want || got > want+time.Second {
						t.Errorf("claimed after %v, want %v", got, want)
					}
					return
				case ok && a.kind == doAsk:
					if b.now > changed {
						fence = c.second
					}
					b.answer(input{fence: fence})
				case b.m.op != nil:
					b.fails(cas.NotFound)
				default:
					b.tick(50 * time.Millisecond)
				}
			}
			t.Error("never claimed")
		})
	}
}

// An acquisition that landed may have been deleted when the next attempt lands:
// two acquisitions are two terms (rule 2).
func TestEveryAttemptToAcquireIsATermOfItsOwn(t *testing.T) {
	b := newBench(t, fast, false)
	b.tick(0)
	b.fails(cas.NotFound)
	terms := map[string]bool{}
	for range 3 {
		a := b.until(doWrite, 20*time.Second)
		if terms[a.rec.Term] {
			t.Errorf("term %q again", a.rec.Term)
		}
		terms[a.rec.Term] = true
		b.fails(cas.Ambiguous)
	}
}

// A loss that is noticed just after the end of a requested stop must not move the
// kill instant forward again (I4).
func TestALossDoesNotPutOffTheEndOfAStop(t *testing.T) {
	b := newBench(t, Config{TTL: 15 * time.Second, RenewInterval: 5 * time.Second, PollInterval: time.Second, ShutdownGrace: time.Millisecond}, false)
	b.leads()
	b.step(input{kind: inStop, reason: "asked"})
	limit := b.m.killAt()
	b.until(doWrite, time.Second) // the announcement
	b.now = limit.Add(3 * time.Millisecond)
	b.fails(cas.Conflict)
	if !b.m.lost || b.m.killAt() > limit {
		t.Errorf("lost %v, the kill instant moved by %v", b.m.lost, b.m.killAt().Sub(limit))
	}
}

// A store that takes one write of an object in a second has just taken the
// tombstone: an earlier claim would be refused and come a poll later.
func TestATombstoneOnAStoreThatLimitsWritesIsClaimedAfterItsInterval(t *testing.T) {
	cfg := Config{TTL: 8 * time.Second, RenewInterval: 2 * time.Second, PollInterval: time.Second, MinWriteInterval: time.Second}
	b := newBench(t, cfg, false)
	b.tick(0)
	b.reads(Lease{Version: "v1", Record: held(5, "x")})
	b.until(doRead, 2*time.Second)
	b.reads(Lease{Version: "v2", Record: released(5, "x")})
	seen := b.now
	b.until(doWrite, 5*time.Second)
	if got := b.now.Sub(seen); got < time.Second || got > 1100*time.Millisecond {
		t.Errorf("claimed after %v, want 1 s", got)
	}
}
