package checkpoint_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sf2loki/sf2loki-ha/cas"
	"github.com/sf2loki/sf2loki-ha/checkpoint"
	"github.com/sf2loki/sf2loki-ha/internal/faultcas"
)

// The end of a call's patience is not the end of its write. A commit of the old
// term that lands after the next term's seal is refused by the store; one that
// lands before it is what the next term starts from.
func TestACommitThatLandsAroundTheNextSealIsInItOrRefused(t *testing.T) {
	const sealed = 200 * time.Millisecond
	for late := 20 * time.Millisecond; late < 2*sealed; late += 20 * time.Millisecond {
		if late == sealed {
			continue // both at one instant: either is right
		}
		synctest.Test(t, func(t *testing.T) {
			o := newObject(nil)
			a := o.seal(t, &term{epoch: 1, id: "a"}, checkpoint.WithMaxAttempts(1))
			commit(t, a, "k", "old")
			o.Plan(nth(faultcas.Replace, 1, faultcas.Fault{LandLater: late}))
			if err := a.Commit(t.Context(), map[string]string{"k": "late"}); err == nil {
				t.Fatal("a write without an answer counts as stored")
			}
			elapse(sealed)
			b := o.seal(t, &term{epoch: 2, id: "b"})
			want := map[bool]string{true: "late", false: "old"}[late < sealed]
			if got, _ := b.Get("k"); got != want {
				t.Errorf("landing after %v: the next term starts from %q, want %q", late, got, want)
			}
			commit(t, b, "k", "new")
			elapse(time.Second)
			if got := o.value(t, "k"); got != "new" {
				t.Errorf("landing after %v: k = %q", late, got)
			}
			wantFenced(t, a.Commit(t.Context(), map[string]string{"k": "stale"}), 2, "b")
		})
	}
}

// A committer that slept through its takeover with a lost answer in hand asks
// before it does anything else. Its commit had landed; it is not made again, and
// not under another number.
func TestACommitterThatSleptThroughItsTakeoverWritesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := newObject(nil)
		a := o.seal(t, &term{epoch: 1, id: "a"})
		o.Plan(func(op faultcas.Op, _ int) faultcas.Fault {
			if op == faultcas.Replace {
				return faultcas.Fault{Lose: cas.Ambiguous}
			}
			return faultcas.Fault{Delay: 3 * time.Second} // its settling read: it sleeps
		})
		done := make(chan error, 1)
		go func() { done <- a.Commit(t.Context(), map[string]string{"k": "from A"}) }()
		synctest.Wait()
		elapse(time.Second)
		b, err := checkpoint.Open(o.plain, checkpoint.WithLease(leaseName, time.Second)).Seal(t.Context(), &term{epoch: 2, id: "b"})
		if err != nil {
			t.Fatal(err)
		}
		if got, _ := b.Get("k"); got != "from A" {
			t.Errorf("B starts from %q", got)
		}
		commit(t, b, "k", "from B")
		after := o.content(t)
		writes := o.Calls(faultcas.Replace) + o.Calls(faultcas.Create)
		wantFenced(t, <-done, 2, "b")
		if n := o.Calls(faultcas.Replace) + o.Calls(faultcas.Create) - writes; n != 0 || o.content(t) != after {
			t.Errorf("%d writes after it woke: %s", n, o.content(t))
		}
	})
}

// That a document exists proves nothing about who made it: after a create
// without an answer only the write id does.
func TestADocumentThatExistsIsNoProofThatOurCreateLanded(t *testing.T) {
	for name, c := range map[string]struct {
		theirs string
		fenced bool
	}{
		"another term of the same epoch": {doc(1, "other", leaseName), true},
		"a later term":                   {doc(2, "other", leaseName), true},
		"somebody who never seals":       {`{"k": "v"}`, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var n counter
				o := newObject(nil)
				o.Plan(func(op faultcas.Op, _ int) faultcas.Fault {
					if op == faultcas.Create {
						o.put(t, c.theirs)
						return faultcas.Fault{Refuse: cas.Ambiguous}
					}
					return faultcas.Fault{}
				})
				s, err := o.open(n.observer()).Seal(t.Context(), &term{epoch: 1, id: "mine"})
				var fenced *checkpoint.FencedError
				if errors.As(err, &fenced) != c.fenced || n.settled != 0 {
					t.Fatalf("error %v, %d settled", err, n.settled)
				}
				if c.fenced {
					if o.content(t) != c.theirs {
						t.Errorf("their document was overwritten: %s", o.content(t))
					}
					return
				}
				commit(t, s, "mine", "1")
				if o.value(t, "k") != "v" {
					t.Errorf("their key is gone: %s", o.content(t))
				}
			})
		})
	}
}

// A commit that fails in the middle leaves the document before it as it was, and
// readable, whatever the store answered: the next term starts from it.
func TestAFailedCommitLeavesTheDocumentBeforeItIntact(t *testing.T) {
	for _, class := range []cas.Class{cas.Ambiguous, cas.Contended, cas.Denied, cas.NoBucket, cas.Unsupported} {
		synctest.Test(t, func(t *testing.T) {
			o := newObject(nil)
			a := o.seal(t, &term{epoch: 1, id: "a"}, checkpoint.WithMaxAttempts(4))
			commit(t, a, "k", "1")
			before := o.content(t)
			o.Plan(always(faultcas.Replace, faultcas.Fault{Refuse: class}))
			for i := range 20 {
				if err := a.Commit(t.Context(), map[string]string{"k": fmt.Sprint(i), "n": "2"}); !errors.Is(err, class) {
					t.Fatalf("%s: error %v", class, err)
				}
			}
			if o.content(t) != before {
				t.Errorf("%s: %s", class, o.content(t))
			}
			o.Plan(nil)
			if f, err := o.open().Fence(t.Context()); err != nil || f.Epoch != 1 {
				t.Errorf("%s: the election cannot read its floor: %+v, %v", class, f, err)
			}
			b := o.seal(t, &term{epoch: 2, id: "b"})
			if got, _ := b.Get("k"); got != "1" {
				t.Errorf("%s: k = %q", class, got)
			}
		})
	}
}

// A seal under way ends with its term: nothing is written for a term that is
// over, and nobody waits for a store that does not answer.
func TestASealUnderWayEndsWithItsContext(t *testing.T) {
	for name, fault := range map[string]faultcas.Fault{"slow": {Delay: time.Hour}, "refused": {Refuse: cas.Ambiguous}} {
		for _, op := range []faultcas.Op{faultcas.Load, faultcas.Create} {
			t.Run(name+" "+string(op), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					lost := errors.New("lease lost")
					o := newObject(always(op, fault))
					ctx, cancel := context.WithCancelCause(t.Context())
					time.AfterFunc(1500*time.Millisecond, func() { cancel(lost) })
					begun := time.Now()
					_, err := o.open(checkpoint.WithMaxAttempts(1000)).Seal(ctx, &term{epoch: 1, id: "a"})
					if took := time.Since(begun); took != 1500*time.Millisecond || !errors.Is(err, lost) && !errors.Is(err, context.Canceled) {
						t.Errorf("error %v after %v", err, took)
					}
				})
			})
		}
	}
}
