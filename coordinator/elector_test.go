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

func TestAnEmptyBucketGetsItsFirstLeaderAfterOneWindow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		a := w.replica("a", fast).run()
		defer a.stop()
		sleep(6*time.Second - time.Millisecond)
		if a.role() != RoleStandby {
			t.Fatalf("claimed an absent lease before a whole ttl had passed")
		}
		sleep(100 * time.Millisecond)
		if a.role() != RoleLeader || w.record().Epoch != 1 {
			t.Fatalf("role %s, record %+v; want leader at epoch 1", a.role(), w.record())
		}
	})
}

func TestOneOfManyReplicasLeadsAndKeepsItsEpoch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		var all []*replica
		for i := range 10 {
			all = append(all, w.replica(fmt.Sprint("r", i), fast).run())
		}
		sleep(time.Hour)
		leaders := 0
		for _, r := range all {
			if r.role() == RoleLeader {
				leaders++
			}
		}
		rec := w.record()
		if leaders != 1 || rec.Epoch != 1 || len(w.starts()) != 1 {
			t.Errorf("%d leaders, epoch %d, %d terms; want one leader, epoch 1, one term", leaders, rec.Epoch, len(w.starts()))
		}
		for _, r := range all {
			r.stop()
		}
		w.noOverlap()
	})
}

func TestTheOldWorkEndsBeforeAPartitionedLeaderIsReplaced(t *testing.T) {
	for _, drain := range []time.Duration{0, time.Hour} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t)
			a := w.replica("a", fast)
			a.drain = drain
			a.run()
			sleep(7 * time.Second)
			b := w.replica("b", fast).run()
			sleep(time.Minute)
			a.reg.Plan(func(faultcas.Op, int) faultcas.Fault { return faultcas.Fault{Refuse: cas.Ambiguous} })
			cut := time.Now()
			sleep(20 * time.Second)
			if b.role() != RoleLeader || a.role() != RoleStandby {
				t.Fatalf("a is %s, b is %s; want b to lead", a.role(), b.role())
			}
			w.noOverlap()
			end := w.ends()[0]
			if !errors.Is(end.cause, ErrExpired) {
				t.Errorf("the work ended with %v, want ErrExpired", end.cause)
			}
			if took := w.starts()[1].at.Sub(cut); took > fast.Budget().Failover {
				t.Errorf("takeover after %v, published bound %v", took, fast.Budget().Failover)
			}
			if rec := w.record(); rec.Epoch != 2 || rec.Holder != "b" {
				t.Errorf("record %+v; want b at epoch 2", rec)
			}
			a.reg.Plan(nil)
			b.stop()
			a.stop()
		})
	}
}

func TestACleanStopHandsOverWithinAboutOnePoll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		a := w.replica("a", fast)
		a.drain = 1500 * time.Millisecond
		a.run()
		sleep(8 * time.Second)
		b := w.replica("b", fast).run()
		sleep(3 * time.Second)
		stopped := time.Now()
		a.stop()
		if rec := w.record(); rec.State != Released || rec.Epoch != 1 || rec.Incarnation != a.elector.Incarnation() {
			t.Errorf("after a clean stop: %+v; want our tombstone with epoch 1", rec)
		}
		sleep(time.Second)
		if b.role() != RoleLeader {
			t.Fatal("the standby did not take over")
		}
		w.noOverlap()
		if took := w.starts()[1].at.Sub(stopped) - a.drain; took > 300*time.Millisecond {
			t.Errorf("handover %v after the work had ended; a standby polls every 200 ms during a planned stop", took)
		}
		b.stop()
	})
}

func TestACleanConflictEndsTheTermAtOnceWithoutAReadBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		a := w.replica("a", fast)
		a.drain = time.Hour // would drain for ever if it were given any grace
		a.run()
		sleep(7 * time.Second)
		reads := a.reg.Calls(faultcas.Load)
		w.put(`{"holder":"thief","expires_at":"","epoch":9}`)
		for len(w.ends()) == 0 {
			sleep(time.Millisecond)
			if a.role() != RoleLeader && len(w.ends()) == 0 {
				t.Fatal("no longer leading, and the work still runs")
			}
		}
		if got := a.reg.Calls(faultcas.Load); got > reads+1 {
			t.Errorf("%d reads in the loss path; want none before the work was dead", got-reads)
		}
		if cause := w.ends()[0].cause; !errors.Is(cause, ErrLost) {
			t.Errorf("cause %v, want ErrLost", cause)
		}
		if a.count(Lost) != 1 {
			t.Errorf("%d lost events", a.count(Lost))
		}
		a.stop()
		if w.record().Holder != "thief" {
			t.Error("a loser wrote over the lease it lost")
		}
	})
}

// An answer may be lost for every single renewal: the write landed, so the
// leader must not demote itself (S-02, A1, A2, A7).
func TestALostAnswerPerRenewalForAnHourKeepsTheLeader(t *testing.T) {
	for name, fault := range map[string]faultcas.Fault{
		"applied, then timeout": {Lose: cas.Ambiguous},
		"applied, then 409":     {Lose: cas.Contended},
		"success, no version":   {NoVersion: true},
		"applied, answer late":  {Late: time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				a := w.replica("a", fast).run()
				b := w.replica("b", fast).run()
				sleep(10 * time.Second)
				leader := a
				if b.role() == RoleLeader {
					leader = b
				}
				odd := false
				leader.reg.Plan(func(op faultcas.Op, n int) faultcas.Fault {
					if op == faultcas.Replace {
						if odd = !odd; odd {
							return fault
						}
					}
					return faultcas.Fault{}
				})
				sleep(time.Hour)
				if leader.role() != RoleLeader || leader.count(Lost)+leader.count(Expired) != 0 {
					t.Fatalf("role %s, lost %d, expired %d; a landed write never causes self-demotion", leader.role(), leader.count(Lost), leader.count(Expired))
				}
				if w.record().Epoch != 1 || leader.count(WriteSettled) == 0 {
					t.Errorf("epoch %d, %d writes settled", w.record().Epoch, leader.count(WriteSettled))
				}
				leader.reg.Plan(nil)
				a.stop()
				b.stop()
				w.noOverlap()
			})
		})
	}
}

func TestARefusedRenewalIsRetriedAtOnceAndCostsNothing(t *testing.T) {
	for _, class := range []cas.Class{cas.Ambiguous, cas.Contended, cas.Denied, cas.NoBucket, cas.Unsupported} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t)
			a := w.replica("a", fast).run()
			sleep(7 * time.Second)
			n := 0
			a.reg.Plan(func(op faultcas.Op, _ int) faultcas.Fault {
				if n++; n%3 != 0 {
					return faultcas.Fault{Refuse: class}
				}
				return faultcas.Fault{}
			})
			sleep(10 * time.Minute)
			if a.role() != RoleLeader || a.count(Acquired) != 1 {
				t.Errorf("%s, %s, twice in a row: role %s", class, class, a.role())
			}
			a.reg.Plan(nil)
			a.stop()
		})
	}
}

func TestARenewalThatHangsForEverDoesNotOutliveTheDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		a := w.replica("a", fast).run()
		sleep(7 * time.Second)
		b := w.replica("b", fast).run()
		a.reg.Plan(func(faultcas.Op, int) faultcas.Fault { return faultcas.Fault{Hang: true} })
		sleep(15 * time.Second)
		if b.role() != RoleLeader || a.role() != RoleStandby {
			t.Errorf("a %s, b %s", a.role(), b.role())
		}
		w.noOverlap()
		a.reg.Plan(nil)
		a.reg.Free()
		a.stop()
		b.stop()
	})
}

func TestOnlyADefiniteAbsenceIsEverClaimed(t *testing.T) {
	for _, class := range cas.Classes() {
		if class == cas.NotFound {
			continue
		}
		t.Run(string(class), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				b := w.replica("b", fast)
				b.reg.Plan(func(op faultcas.Op, _ int) faultcas.Fault {
					if op == faultcas.Load {
						return faultcas.Fault{Refuse: class}
					}
					return faultcas.Fault{}
				})
				b.run()
				sleep(time.Minute)
				if got := b.reg.Calls(faultcas.Create) + b.reg.Calls(faultcas.Replace); got != 0 {
					t.Errorf("%d writes while every read answers %q", got, class)
				}
				// It recovers by itself.
				b.reg.Plan(nil)
				sleep(8 * time.Second)
				if b.role() != RoleLeader {
					t.Error("did not recover")
				}
				b.stop()
			})
		})
	}
}

func TestAStandbyWhoseReadsFailContestsNothingThatIsRenewed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		a := w.replica("a", fast).run()
		sleep(7 * time.Second)
		b := w.replica("b", fast).run()
		sleep(2 * time.Second)
		b.reg.Plan(func(op faultcas.Op, _ int) faultcas.Fault {
			if op == faultcas.Load {
				return faultcas.Fault{Refuse: cas.Ambiguous}
			}
			return faultcas.Fault{}
		})
		sleep(10 * time.Minute)
		if a.role() != RoleLeader || a.count(Lost) != 0 || b.count(Acquired) != 0 {
			t.Errorf("a %s, lost %d; b acquired %d", a.role(), a.count(Lost), b.count(Acquired))
		}
		a.stop()
		b.stop()
	})
}

func TestADeletedLeaseIsSurrenderedAndComesBackHigher(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		a := w.replica("a", fast).run()
		sleep(7 * time.Second)
		w.store.Remove(leaseName)
		sleep(2100 * time.Millisecond)
		if a.count(Lost) != 1 || a.role() != RoleStandby {
			t.Fatalf("lost %d, role %s", a.count(Lost), a.role())
		}
		sleep(4500 * time.Millisecond)
		if a.count(Acquired) != 1 {
			t.Error("an absence was claimed before it had stood a whole window")
		}
		sleep(20 * time.Second)
		if rec := w.record(); rec.Epoch != 2 {
			t.Errorf("epoch %d after a loss, want 2", rec.Epoch)
		}
		a.stop()
		w.noOverlap()
	})
}

func TestALeaseIsNotReleasedWhileItsWorkRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		a := w.replica("a", fast)
		stuck := make(chan struct{})
		ctx, cancel := context.WithCancel(t.Context())
		go func() {
			a.done <- a.elector.Run(ctx, func(ctx context.Context, _ *Term) error {
				<-stuck // ignores its context
				return nil
			})
		}()
		sleep(7 * time.Second)
		cancel()
		sleep(time.Minute)
		if w.record().State != Held || a.count(Overran) != 1 {
			t.Fatalf("state %q, overran %d: a lease whose work did not end must run out, not be released", w.record().State, a.count(Overran))
		}
		close(stuck)
		sleep(time.Second)
		if w.record().State != Released {
			t.Error("not released after the work had ended")
		}
		if err := <-a.done; err != nil {
			t.Error(err)
		}
	})
}

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

func TestTwoProcessesWithOneIdentityAreTwoReplicas(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		cfg := fast
		cfg.Identity = "localhost-1"
		a, b := w.replica("a", cfg).run(), w.replica("b", cfg).run()
		sleep(time.Minute)
		if (a.role() == RoleLeader) == (b.role() == RoleLeader) {
			t.Errorf("a %s, b %s; want exactly one leader", a.role(), b.role())
		}
		a.stop()
		sleep(10 * time.Second)
		if b.role() != RoleLeader || w.record().Epoch > 2 {
			t.Errorf("b %s at epoch %d", b.role(), w.record().Epoch)
		}
		b.stop()
		w.noOverlap()
	})
}

func TestARestartedProcessDoesNotResumeItsFormerLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		cfg := fast
		cfg.Identity = "task-1"
		a := w.replica("a", cfg).run()
		sleep(7 * time.Second)
		a.reg.Plan(func(faultcas.Op, int) faultcas.Fault { return faultcas.Fault{Hang: true} }) // killed: writes nothing more
		again := w.replica("a2", cfg).run()
		sleep(5 * time.Second)
		if again.role() != RoleStandby {
			t.Fatal("took its predecessor's lease without waiting")
		}
		sleep(4 * time.Second)
		if again.role() != RoleLeader || w.record().Epoch != 2 {
			t.Errorf("role %s, epoch %d; want a new epoch", again.role(), w.record().Epoch)
		}
		a.reg.Plan(nil)
		a.reg.Free()
		a.stop()
		again.stop()
	})
}

// fences is a scripted checkpoint document.
type fences struct {
	mu    sync.Mutex
	fence Fence
	err   error
}

func (f *fences) Floor(context.Context) (int64, time.Duration, bool, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.fence.Epoch, f.fence.TTL, f.fence.Found, f.err
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

func TestRunTwiceIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		a := w.replica("a", fast).run()
		sleep(time.Second)
		if err := a.elector.Run(t.Context(), a.lead); err == nil {
			t.Error("a second Run was accepted")
		}
		a.stop()
	})
}

func TestAHundredTermsLeaveNothingBehind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		a, b := w.replica("a", fast).run(), w.replica("b", fast).run()
		sleep(10 * time.Second)
		for range 100 {
			a.elector.StepDown("test")
			b.elector.StepDown("test")
			sleep(10 * time.Second)
		}
		if got := len(w.starts()); got < 101 {
			t.Errorf("%d terms", got)
		}
		if got := len(w.record().History); got != maxHistory {
			t.Errorf("history of %d terms, want %d", got, maxHistory)
		}
		a.stop()
		b.stop()
		w.noOverlap()
		// synctest fails the test if a goroutine is left.
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
