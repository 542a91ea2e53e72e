package checkpoint_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sf2loki/sf2loki-ha/cas"
	"github.com/sf2loki/sf2loki-ha/cas/mem"
	"github.com/sf2loki/sf2loki-ha/checkpoint"
	"github.com/sf2loki/sf2loki-ha/internal/faultcas"
)

func doc(epoch int64, termID, lease string) string {
	var d checkpoint.Document
	d.Set("k", "v")
	d.Set(checkpoint.EpochKey, fmt.Sprint(epoch))
	if termID != "" {
		d.Set(checkpoint.FenceKey, fmt.Sprintf(`{"term": %q, "lease": %q, "ttl_ms": 15000, "write_id": "w"}`, termID, lease))
	}
	return string(d.Encode())
}

func TestSealWinsOnlyOverALowerEpochOrItsOwnPair(t *testing.T) {
	const mine = 7
	for _, c := range []struct {
		name, before string
		refused      string
	}{
		{"no document", "", ""},
		{"document of sf2loki without a fence", `{"k": "v"}`, ""},
		{"lower epoch", doc(6, "other", leaseName), ""},
		{"lower epoch, written by sf2loki's file lease", doc(6, "", ""), ""},
		{"own pair", doc(7, "mine", leaseName), ""},
		{"own pair sealed by a process that knows another lease name", doc(7, "mine", "elsewhere"), ""},
		{"equal epoch of another term", doc(7, "other", leaseName), "fenced"},
		{"equal epoch without a term", doc(7, "", ""), "fenced"},
		{"higher epoch", doc(8, "other", leaseName), "fenced"},
		{"higher epoch, own term id", doc(8, "mine", leaseName), "fenced"},
		{"lower epoch of another lease", doc(1, "other", "elsewhere"), "sf2loki-ha state adopt"},
		{"higher epoch of another lease", doc(99, "other", "elsewhere"), "sf2loki-ha state adopt"},
	} {
		t.Run(c.name, func(t *testing.T) {
			o := newObject(nil)
			if c.before != "" {
				o.put(t, c.before)
			}
			s, err := o.open().Seal(t.Context(), &term{epoch: mine, id: "mine"})
			if c.refused != "" {
				if err == nil || !strings.Contains(err.Error(), c.refused) {
					t.Fatalf("error %v, want one with %q", err, c.refused)
				}
				if o.content(t) != c.before || o.Calls(faultcas.Replace) != 0 {
					t.Errorf("a refused seal wrote: %s", o.content(t))
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			f, err := o.open().Fence(t.Context())
			if err != nil || f.Epoch != mine || f.Term != "mine" || !f.Found {
				t.Errorf("fence %+v, %v", f, err)
			}
			if c.before != "" && o.value(t, "k") != "v" {
				t.Errorf("the seal lost the user's key: %s", o.content(t))
			}
			commit(t, s, "k", "w")
		})
	}
}

func TestSealAlwaysMovesTheVersion(t *testing.T) {
	o := newObject(nil)
	tm := &term{epoch: 1, id: "a"}
	o.seal(t, tm)
	before, err := o.plain.Load(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	o.seal(t, tm)
	after, err := o.plain.Load(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if before.Version == after.Version || string(before.Data) == string(after.Data) {
		t.Error("the second seal of one term left the version that a stale child may know")
	}
}

func TestSealSettlesALostAnswerByReading(t *testing.T) {
	for _, c := range []struct {
		name string
		seed string
		op   faultcas.Op
	}{
		{"first document", "", faultcas.Create},
		{"existing document", doc(6, "old", leaseName), faultcas.Replace},
	} {
		for _, class := range []cas.Class{cas.Ambiguous, cas.Contended} {
			t.Run(c.name+", "+string(class), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					var n counter
					o := newObject(nth(c.op, 1, faultcas.Fault{Lose: class}))
					if c.seed != "" {
						o.put(t, c.seed)
					}
					s := o.seal(t, &term{epoch: 7, id: "mine"}, n.observer())
					if o.Calls(c.op) != 1 || n.settled != 1 || n.ambiguous != 1 {
						t.Errorf("%d writes, %+v; the write that landed should be recognised", o.Calls(c.op), n)
					}
					loads := o.Calls(faultcas.Load)
					commit(t, s, "a", "1")
					if o.Calls(faultcas.Load) != loads {
						t.Error("the version was not adopted: the commit had to read")
					}
				})
			})
		}
	}
}

func TestSealSurvivesAWriteThatLandsLate(t *testing.T) {
	// The delayed write arrives at every point of what follows.
	for late := time.Millisecond; late < 400*time.Millisecond; late += 7 * time.Millisecond {
		synctest.Test(t, func(t *testing.T) {
			o := newObject(nth(faultcas.Replace, 1, faultcas.Fault{LandLater: late}))
			o.put(t, doc(6, "old", leaseName))
			s := o.seal(t, &term{epoch: 7, id: "mine"})
			commit(t, s, "a", "1")
			elapse(time.Second)
			commit(t, s, "b", "2")
			if o.value(t, "a") != "1" || o.value(t, "b") != "2" || o.value(t, "k") != "v" {
				t.Fatalf("landing after %v: %s", late, o.content(t))
			}
		})
	}
}

func TestSealRetriesReadsAndWritesWithoutAnAnswer(t *testing.T) {
	for _, c := range []struct {
		name string
		op   faultcas.Op
		f    faultcas.Fault
	}{
		{"503 on read", faultcas.Load, faultcas.Fault{Refuse: cas.Ambiguous}},
		{"429 on read", faultcas.Load, faultcas.Fault{Refuse: cas.Contended}},
		{"answer of the read lost in its body", faultcas.Load, faultcas.Fault{Lose: cas.Ambiguous}},
		{"503 on write", faultcas.Replace, faultcas.Fault{Refuse: cas.Ambiguous}},
		{"409 on write", faultcas.Replace, faultcas.Fault{Refuse: cas.Contended}},
		{"412 on write", faultcas.Replace, faultcas.Fault{Refuse: cas.Conflict}},
		{"success without a version", faultcas.Replace, faultcas.Fault{NoVersion: true}},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				o := newObject(nth(c.op, 1, c.f))
				o.put(t, doc(6, "old", leaseName))
				s := o.seal(t, &term{epoch: 7, id: "mine"})
				if o.Calls(faultcas.Load) != 2 {
					t.Errorf("%d reads, want the whole read repeated once", o.Calls(faultcas.Load))
				}
				commit(t, s, "a", "1")
			})
		})
	}
}

func TestSealReturnsDefiniteRefusalsAtOnce(t *testing.T) {
	for _, op := range []faultcas.Op{faultcas.Load, faultcas.Replace} {
		for _, class := range []cas.Class{cas.Denied, cas.NoBucket, cas.Unsupported} {
			o := newObject(always(op, faultcas.Fault{Refuse: class}))
			o.put(t, doc(6, "old", leaseName))
			_, err := o.open().Seal(t.Context(), &term{epoch: 7, id: "mine"})
			if !errors.Is(err, class) || o.Calls(op) != 1 {
				t.Errorf("%s %s: error %v after %d requests", op, class, err, o.Calls(op))
			}
		}
	}
}

func TestSealIsBoundedByItsContextAndByAttempts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := newObject(always(faultcas.Load, faultcas.Fault{Refuse: cas.Ambiguous}))
		start := time.Now()
		_, err := o.open(checkpoint.WithMaxAttempts(4)).Seal(t.Context(), &term{epoch: 7, id: "mine"})
		if !errors.Is(err, cas.Ambiguous) || o.Calls(faultcas.Load) != 4 || !strings.Contains(err.Error(), "4 attempts") {
			t.Errorf("error %v after %d requests", err, o.Calls(faultcas.Load))
		}
		if took := time.Since(start); took < 175*time.Millisecond || took > 350*time.Millisecond {
			t.Errorf("waited %v in all, want 50+100+200 ms less up to half of it", took)
		}

		o = newObject(always(faultcas.Load, faultcas.Fault{Refuse: cas.Ambiguous}))
		ctx, cancel := context.WithTimeout(t.Context(), 7500*time.Millisecond)
		defer cancel()
		start = time.Now()
		_, err = o.open(checkpoint.WithMaxAttempts(1000)).Seal(ctx, &term{epoch: 7, id: "mine"})
		if !errors.Is(err, context.DeadlineExceeded) || !errors.Is(err, cas.Ambiguous) || time.Since(start) != 7500*time.Millisecond {
			t.Errorf("error %v after %v", err, time.Since(start))
		}
	})
}

func TestACallThatHangsIsBoundedByTheCallTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := newObject(nth(faultcas.Load, 1, faultcas.Fault{Delay: time.Hour}))
		start := time.Now()
		o.seal(t, &term{epoch: 1, id: "a"}, checkpoint.WithCallTimeout(2*time.Second))
		if took := time.Since(start); took < 2*time.Second || took > 3*time.Second {
			t.Errorf("sealed after %v", took)
		}
	})
}

func TestSealAsksTheTermBeforeEachAttempt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := newObject(nil)
		o.put(t, doc(6, "old", leaseName))
		tm := &term{epoch: 7, id: "mine"}
		o.Plan(func(op faultcas.Op, _ int) faultcas.Fault {
			if op == faultcas.Replace {
				tm.end(errTermOver)
				return faultcas.Fault{Refuse: cas.Ambiguous}
			}
			return faultcas.Fault{}
		})
		_, err := o.open().Seal(t.Context(), tm)
		if !errors.Is(err, errTermOver) || o.Calls(faultcas.Replace) != 1 {
			t.Errorf("error %v after %d writes", err, o.Calls(faultcas.Replace))
		}
	})
}

func TestSealDoesNotRecreateADocumentDeletedUnderIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := newObject(nil)
		o.put(t, doc(6, "old", leaseName))
		o.Plan(func(op faultcas.Op, _ int) faultcas.Fault {
			if op == faultcas.Replace {
				o.store.Remove(objectName)
			}
			return faultcas.Fault{}
		})
		_, err := o.open().Seal(t.Context(), &term{epoch: 7, id: "mine"})
		var vanished *checkpoint.VanishedError
		if !errors.As(err, &vanished) || o.Calls(faultcas.Create) != 0 || o.content(t) != "" {
			t.Errorf("error %v, %d creates", err, o.Calls(faultcas.Create))
		}
	})
}

func TestTwoSealsOfOneEpochHaveOneWinner(t *testing.T) {
	// Two leases were deleted and recreated, or two leases share a document: the
	// epoch cannot tell the terms apart.
	for range 50 {
		synctest.Test(t, func(t *testing.T) {
			o := newObject(func(faultcas.Op, int) faultcas.Fault { return faultcas.Fault{Delay: time.Millisecond} })
			results := make(chan error, 2)
			for _, id := range []string{"a", "b"} {
				go func() {
					_, err := o.open().Seal(t.Context(), &term{epoch: 1, id: id})
					results <- err
				}()
			}
			first, second := <-results, <-results
			if (first == nil) == (second == nil) {
				t.Fatalf("results %v and %v, want one winner", first, second)
			}
			loser := first
			if loser == nil {
				loser = second
			}
			var fenced *checkpoint.FencedError
			if !errors.As(loser, &fenced) || fenced.Epoch != 1 {
				t.Errorf("the loser got %v", loser)
			}
		})
	}
}

func TestJoinNeedsTheSealOfItsOwnTerm(t *testing.T) {
	for _, c := range []struct {
		name, before string
		sealed       bool
		fenced       bool
	}{
		{"no document", "", false, false},
		{"never sealed", `{}`, false, false},
		{"lower epoch", doc(6, "mine", leaseName), false, false},
		{"own pair", doc(7, "mine", "any lease"), true, false},
		{"another term", doc(7, "other", leaseName), false, true},
		{"higher epoch", doc(8, "mine", leaseName), false, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			o := newObject(nil)
			if c.before != "" {
				o.put(t, c.before)
			}
			s, err := checkpoint.Open(o).Join(t.Context(), &term{epoch: 7, id: "mine"})
			var fenced *checkpoint.FencedError
			switch {
			case c.sealed:
				if err != nil {
					t.Fatal(err)
				}
				commit(t, s, "a", "1")
				if f, err := checkpoint.Open(o).Fence(t.Context()); err != nil || f.Lease != "any lease" || f.TTL != 15*time.Second {
					t.Errorf("the commit changed the lease: %+v, %v", f, err)
				}
			case c.fenced != errors.As(err, &fenced), c.fenced == errors.Is(err, checkpoint.ErrNotSealed):
				t.Errorf("error %v", err)
			}
			if !c.sealed && o.Calls(faultcas.Create)+o.Calls(faultcas.Replace) != 0 {
				t.Error("join wrote")
			}
		})
	}
}

func TestTermsThatAreNoTermsAreRefused(t *testing.T) {
	o := newObject(nil)
	for _, tm := range []*term{{epoch: 0, id: "a"}, {epoch: -1, id: "a"}, {epoch: checkpoint.MaxEpoch + 1, id: "a"}, {epoch: 1}} {
		if _, err := o.open().Seal(t.Context(), tm); err == nil {
			t.Errorf("sealed for (%d, %q)", tm.epoch, tm.id)
		}
	}
	if o.Calls(faultcas.Load) != 0 {
		t.Error("a request was sent")
	}
}

// The way out that was documented before there was a command for it still works.
func TestADocumentIsHandedOverByRemovingTheFenceKey(t *testing.T) {
	reg := mem.New().Open().Register("state.json")
	if _, err := checkpoint.Open(reg, checkpoint.WithLease("old", time.Minute)).Seal(t.Context(), &term{epoch: 5, id: "a"}); err != nil {
		t.Fatal(err)
	}
	ours := checkpoint.Open(reg, checkpoint.WithLease("new", time.Minute))
	var refused *checkpoint.LeaseError
	if _, err := ours.Seal(t.Context(), &term{epoch: 6, id: "b"}); !errors.As(err, &refused) {
		t.Fatalf("%v, want a LeaseError", err)
	}
	v, err := reg.Load(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	doc, err := checkpoint.ParseDocument(v.Data)
	if err != nil {
		t.Fatal(err)
	}
	doc.Delete(checkpoint.FenceKey)
	if _, err := reg.Replace(t.Context(), doc.Encode(), v.Version); err != nil {
		t.Fatal(err)
	}
	if f, err := ours.Fence(t.Context()); err != nil || f.Epoch != 5 {
		t.Fatalf("floor %d, %v; the epoch must survive the hand-over", f.Epoch, err)
	}
	if _, err := ours.Seal(t.Context(), &term{epoch: 6, id: "b"}); err != nil {
		t.Errorf("after the hand-over: %v", err)
	}
}
