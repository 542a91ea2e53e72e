package coordinator

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sf2loki/sf2loki-ha/cas"
	"github.com/sf2loki/sf2loki-ha/internal/faultcas"
)

func TestNoTwoWritesOfALeaseHaveEqualBytes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		a := w.replica("a", fast).run()
		sleep(7 * time.Second)
		var last []byte
		for range 50 {
			v, err := w.reg.Load(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if bytes.Equal(last, v.Data) {
				t.Fatal("two renewals with equal bytes: an S3 ETag would not change")
			}
			last = v.Data
			sleep(2 * time.Second)
		}
		a.stop()
	})
}

// The times in a record are for people: an hour off either way changes nothing
// (C-05); only how long the version stood counts.
func TestAnUpstreamRecordIsHonouredByObservedTimeAlone(t *testing.T) {
	for _, offset := range []time.Duration{-time.Hour, 0, time.Hour} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t)
			w.put(fmt.Sprintf(`{"holder":"upstream-1","expires_at":%q,"epoch":7}`, time.Now().Add(offset).UTC().Format(time.RFC3339)))
			b := w.replica("b", fast).run()
			sleep(59 * time.Second)
			if b.role() != RoleStandby {
				t.Fatal("contested a foreign lease before it stood unchanged for 60 s")
			}
			sleep(2 * time.Second)
			if rec := w.record(); b.role() != RoleLeader || rec.Epoch != 8 {
				t.Errorf("role %s, epoch %d; want leader at 8", b.role(), rec.Epoch)
			}
			b.stop()
		})
	}
}

// fences is a scripted checkpoint document.
type fences struct {
	mu    sync.Mutex
	fence Fence
	err   error
}

func (f *fences) Floor(context.Context) (int64, string, time.Duration, bool, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.fence.Epoch, f.fence.Term, f.fence.TTL, f.fence.Found, f.err
}

func (f *fences) set(fence Fence, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.fence, f.err = fence, err
}

func TestTheEpochExceedsTheFenceOfTheCheckpointDocument(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		a := w.replica("a", fast, WithFence(&fences{fence: Fence{Epoch: 7, Found: true}})).run()
		sleep(7 * time.Second)
		if got := w.record().Epoch; got != 8 {
			t.Errorf("epoch %d over an absent lease and a document sealed at 7, want 8", got)
		}
		a.stop()
	})
}

func TestAReplicaThatCannotReadTheCheckpointDocumentIsNoCandidate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		f := &fences{err: &cas.Error{Class: cas.Denied}}
		a := w.replica("a", fast, WithFence(f)).run()
		sleep(time.Minute)
		if n := a.reg.Calls(faultcas.Create); n != 0 {
			t.Fatalf("%d claims although the floor is unknown", n)
		}
		f.set(Fence{}, nil)
		sleep(3 * time.Second)
		if a.role() != RoleLeader {
			t.Error("did not recover")
		}
		a.stop()
	})
}

type fencedError struct{ epoch int64 }

func (e *fencedError) Error() string      { return "fenced" }
func (e *fencedError) FencedEpoch() int64 { return e.epoch }

func TestFencedWorkReleasesAndComesBackAboveTheFence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		a := w.replica("a", fast)
		a.fail = fmt.Errorf("seal: %w", &fencedError{epoch: 40})
		a.run()
		sleep(6500 * time.Millisecond)
		if rec := w.record(); rec.State != Released || rec.Epoch != 1 {
			t.Fatalf("after the seal was refused: %+v", rec)
		}
		a.mu.Lock()
		a.fail = nil
		a.mu.Unlock()
		sleep(10 * time.Second)
		if got := w.record().Epoch; got != 41 {
			t.Errorf("epoch %d, want 41", got)
		}
		a.stop()
	})
}

func TestFailingWorkGivesTheOtherReplicaItsChance(t *testing.T) {
	for name, opts := range map[string]struct {
		fence []Option
		after time.Duration // of the tombstone
	}{
		"with a checkpoint document, at once": {[]Option{WithFence(&fences{fence: Fence{Found: true}})}, 2 * time.Second},
		"without one, after the window":       {nil, 8 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				a := w.replica("a", fast, opts.fence...)
				a.fail = errors.New("crashed at once")
				a.run()
				sleep(time.Second)
				b := w.replica("b", fast, opts.fence...).run()
				sleep(5*time.Second + opts.after)
				if b.role() != RoleLeader || a.count(Acquired) != 1 {
					t.Errorf("b is %s, a acquired %d times", b.role(), a.count(Acquired))
				}
				a.stop()
				b.stop()
			})
		})
	}
}

func TestAnAcquisitionInFlightAtTheStopIsGivenBack(t *testing.T) {
	for name, fault := range map[string]faultcas.Fault{
		"slow":        {Delay: 300 * time.Millisecond},
		"answer lost": {Lose: cas.Ambiguous},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				a := w.replica("a", fast)
				a.reg.Plan(func(op faultcas.Op, _ int) faultcas.Fault {
					if op == faultcas.Create {
						return fault
					}
					return faultcas.Fault{}
				})
				a.run()
				sleep(6*time.Second + time.Millisecond)
				a.stop()
				if rec := w.record(); rec.State != Released || len(w.starts()) != 0 {
					t.Errorf("state %q, %d terms worked; want the lease given back", rec.State, len(w.starts()))
				}
			})
		})
	}
}

func TestAClaimThatLandsLateIsAdoptedOnlyWhileItsTimeLasts(t *testing.T) {
	for name, c := range map[string]struct {
		lands time.Duration
		works bool
	}{
		"soon":              {time.Second, true},
		"after its own ttl": {10 * time.Second, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				a := w.replica("a", fast)
				first := true
				a.reg.Plan(func(op faultcas.Op, _ int) faultcas.Fault {
					if op != faultcas.Create {
						return faultcas.Fault{}
					}
					if first {
						first = false
						return faultcas.Fault{LandLater: c.lands}
					}
					return faultcas.Fault{Refuse: cas.Ambiguous}
				})
				a.run()
				sleep(6*time.Second + c.lands + 1500*time.Millisecond)
				if worked := len(w.starts()) == 1; worked != c.works {
					t.Errorf("worked under it: %v, want %v", worked, c.works)
				}
				a.reg.Plan(nil)
				a.stop()
				w.noOverlap()
			})
		})
	}
}

// The old leader's release is conditional: it changes nothing once another
// replica has taken over (D1).
func TestALoserNeverWritesOverItsSuccessor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		a := w.replica("a", fast)
		stuck := make(chan struct{})
		ctx, cancel := context.WithCancel(t.Context())
		go func() {
			a.done <- a.elector.Run(ctx, func(ctx context.Context, _ *Term) error {
				<-stuck
				return nil
			})
		}()
		sleep(7 * time.Second)
		b := w.replica("b", fast).run()
		a.reg.Plan(func(faultcas.Op, int) faultcas.Fault { return faultcas.Fault{Refuse: cas.Ambiguous} })
		sleep(20 * time.Second) // b has taken over; a's work would not end
		a.reg.Plan(nil)
		cancel()
		close(stuck)
		if err := <-a.done; err != nil {
			t.Error(err)
		}
		if rec := w.record(); rec.Holder != "b" || rec.State != Held || b.role() != RoleLeader || b.count(Lost) != 0 {
			t.Errorf("the loser's release hit its successor: %+v", rec)
		}
		b.stop()
	})
}

// An object that is no record, whatever its size, is a state like any other: it
// has to go stale, and then it is replaced.
func TestJunkInPlaceOfTheLeaseIsReplacedOnceStale(t *testing.T) {
	for name, junk := range map[string]string{"not JSON": "hello", "huge": strings.Repeat("x", cas.MaxSize+1), "an epoch out of range": `{"epoch":1e99}`} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				w.put(junk)
				a := w.replica("a", fast, WithFence(&fences{fence: Fence{Epoch: 11, Found: true}})).run()
				sleep(59 * time.Second)
				if a.role() != RoleStandby {
					t.Fatal("junk was replaced before it stood for 60 s")
				}
				sleep(2 * time.Second)
				if a.role() != RoleLeader || w.record().Epoch != 12 {
					t.Errorf("role %s, epoch %d; want leader above the fence of the document", a.role(), w.record().Epoch)
				}
				a.stop()
			})
		})
	}
}

// A lease that was created and deleted again is a new absence, if this replica
// learned of the holder in any way: here by losing the race for it.
func TestTheAbsenceAfterALostRaceIsANewOne(t *testing.T) {
	b := newBench(t, fast, false)
	b.tick(0)
	b.fails(cas.NotFound)
	b.until(doWrite, 10*time.Second)
	b.fails(cas.Conflict) // somebody was faster
	lost := b.now
	b.fails(cas.NotFound) // and was deleted before our next read
	b.until(doWrite, 20*time.Second)
	if waited := b.now.Sub(lost); waited < 6*time.Second {
		t.Errorf("claimed after %v, want a whole window: the holder may not have noticed", waited)
	}
}
