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
	"github.com/sf2loki/sf2loki-ha/checkpoint"
	"github.com/sf2loki/sf2loki-ha/internal/faultcas"
)

func TestStaleLeaderCannotKnockOutTheNewOne(t *testing.T) {
	o := newObject(nil)
	// 1. A leads and commits; it knows the version of the document.
	a := o.seal(t, &term{epoch: 1, id: "a"})
	commit(t, a, "k", "from A")
	// 2. B takes over. It has not committed anything yet.
	b := o.seal(t, &term{epoch: 2, id: "b"})
	if v, ok := b.Get("k"); !ok || v != "from A" {
		t.Errorf("B starts from %q, %v", v, ok)
	}
	// 3. A, which still believes that it leads, is refused by the store, though
	// nobody has committed since.
	err := a.Commit(t.Context(), map[string]string{"k": "stale"})
	wantFenced(t, err, 2, "b")
	// 4. B's first commit works.
	commit(t, b, "k", "from B")
	// 5. A stays refused, without asking again.
	requests := o.Calls(faultcas.Load) + o.Calls(faultcas.Replace)
	wantFenced(t, a.Commit(t.Context(), map[string]string{"k": "stale"}), 2, "b")
	wantFenced(t, a.Delete(t.Context(), "k"), 2, "b")
	if now := o.Calls(faultcas.Load) + o.Calls(faultcas.Replace); now != requests {
		t.Errorf("a fenced session sent %d requests", now-requests)
	}
	if got := o.value(t, "k"); got != "from B" {
		t.Errorf("k = %q", got)
	}
}

func TestStaleWriterThatRewritesWhatItLoadedIsStoppedByTheSeal(t *testing.T) {
	// Like sf2loki's own store: load once, keep the version, rewrite the whole
	// document.
	o := newObject(nil)
	o.put(t, `{"k": "old"}`)
	loaded, err := o.plain.Load(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	o.seal(t, &term{epoch: 2, id: "b"})
	if _, err := o.plain.Replace(t.Context(), []byte(`{"k": "stale"}`), loaded.Version); !errors.Is(err, cas.Conflict) {
		t.Fatalf("the stale write was answered with %v", err)
	}
	if got := o.value(t, "k"); got != "old" {
		t.Errorf("k = %q", got)
	}
}

func TestEachTermStartsFromTheDocumentAndNotFromMemory(t *testing.T) {
	o := newObject(nil)
	store := o.open()
	seal := func(s *checkpoint.Store, epoch int64) *checkpoint.Session {
		t.Helper()
		session, err := s.Seal(t.Context(), &term{epoch: epoch, id: fmt.Sprint(epoch)})
		if err != nil {
			t.Fatal(err)
		}
		return session
	}
	commit(t, seal(store, 1), "k", "v1")
	commit(t, seal(o.open(), 2), "k", "v2")
	again := seal(store, 3)
	if v, _ := again.Get("k"); v != "v2" {
		t.Errorf("after re-acquiring, k = %q, want v2", v)
	}
	commit(t, again, "other", "x")
	if o.value(t, "k") != "v2" {
		t.Errorf("the re-acquired leader moved k back: %s", o.content(t))
	}
}

func TestCommitInSteadyStateIsOneConditionalPut(t *testing.T) {
	o := newObject(nil)
	s := o.seal(t, &term{epoch: 1, id: "a"})
	loads := o.Calls(faultcas.Load)
	for i := range 100 {
		commit(t, s, "k", fmt.Sprint(i))
	}
	if o.Calls(faultcas.Load) != loads || o.Calls(faultcas.Replace) != 100 || o.Calls(faultcas.Create) != 1 {
		t.Errorf("%d reads, %d replaces, %d creates", o.Calls(faultcas.Load)-loads, o.Calls(faultcas.Replace), o.Calls(faultcas.Create))
	}
}

func TestManyKeysAreOneWrite(t *testing.T) {
	o := newObject(nil)
	s := o.seal(t, &term{epoch: 1, id: "a"})
	values := map[string]string{}
	for i := range 50 {
		values[fmt.Sprintf("key%02d", i)] = "v"
	}
	if err := s.Commit(t.Context(), values); err != nil {
		t.Fatal(err)
	}
	if n := o.Calls(faultcas.Replace); n != 1 {
		t.Errorf("%d writes", n)
	}
	if keys := s.Keys(); len(keys) != 50 || keys[0] != "key00" || keys[49] != "key49" {
		t.Errorf("keys %q", keys)
	}
}

func TestNoTwoWritesHaveEqualBytes(t *testing.T) {
	o := newObject(nil)
	s := o.seal(t, &term{epoch: 1, id: "a"})
	seen := map[string]bool{}
	for range 20 {
		commit(t, s, "k", "the same value")
		if text := o.content(t); seen[text] {
			t.Fatalf("written twice: %s", text)
		} else {
			seen[text] = true
		}
	}
}

func TestCommitWhoseAnswerWasLostIsSettledByReading(t *testing.T) {
	for _, class := range []cas.Class{cas.Ambiguous, cas.Contended} {
		t.Run(string(class), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var n counter
				o := newObject(nil)
				s := o.seal(t, &term{epoch: 1, id: "a"}, n.observer())
				o.Plan(nth(faultcas.Replace, 1, faultcas.Fault{Lose: class}))
				loads := o.Calls(faultcas.Load)
				commit(t, s, "k", "1")
				if o.Calls(faultcas.Replace) != 1 || o.Calls(faultcas.Load) != loads+1 || n.settled != 1 {
					t.Errorf("%d writes, %d reads, %+v", o.Calls(faultcas.Replace), o.Calls(faultcas.Load)-loads, n)
				}
				commit(t, s, "k", "2")
				if o.Calls(faultcas.Load) != loads+1 || o.value(t, "k") != "2" {
					t.Errorf("the next commit had to read, or was lost: %s", o.content(t))
				}
			})
		})
	}
}

func TestDeleteWhoseAnswerWasLostIsSettledByReading(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := newObject(nil)
		s := o.seal(t, &term{epoch: 1, id: "a"})
		commit(t, s, "k", "1")
		o.Plan(nth(faultcas.Replace, 1, faultcas.Fault{Lose: cas.Ambiguous}))
		writes := o.Calls(faultcas.Replace)
		if err := s.Delete(t.Context(), "k"); err != nil {
			t.Fatal(err)
		}
		if _, ok := s.Get("k"); ok || o.Calls(faultcas.Replace) != writes+1 || strings.Contains(o.content(t), `"k"`) {
			t.Errorf("%d writes: %s", o.Calls(faultcas.Replace)-writes, o.content(t))
		}
	})
}

func TestCommitThatLandsLateNeverUndoesALaterOne(t *testing.T) {
	for late := time.Millisecond; late < 400*time.Millisecond; late += 7 * time.Millisecond {
		synctest.Test(t, func(t *testing.T) {
			o := newObject(nil)
			s := o.seal(t, &term{epoch: 1, id: "a"})
			o.Plan(nth(faultcas.Replace, 1, faultcas.Fault{LandLater: late}))
			commit(t, s, "k", "1")
			commit(t, s, "k", "2")
			elapse(time.Second)
			commit(t, s, "other", "x")
			if o.value(t, "k") != "2" {
				t.Fatalf("landing after %v: %s", late, o.content(t))
			}
		})
	}
}

func TestCommitRetriesByClassWithExactCounts(t *testing.T) {
	for _, c := range []struct {
		class  cas.Class
		writes int
		reads  int
	}{
		{cas.Ambiguous, 2, 1}, {cas.Contended, 2, 1}, {cas.Conflict, 2, 1},
		{cas.Denied, 1, 0}, {cas.NoBucket, 1, 0}, {cas.Unsupported, 1, 0},
	} {
		t.Run(string(c.class), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				o := newObject(nil)
				s := o.seal(t, &term{epoch: 1, id: "a"})
				loads := o.Calls(faultcas.Load)
				o.Plan(nth(faultcas.Replace, 1, faultcas.Fault{Refuse: c.class}))
				err := s.Commit(t.Context(), map[string]string{"k": "1"})
				if (err == nil) != (c.writes == 2) || (err != nil && !errors.Is(err, c.class)) {
					t.Errorf("error %v", err)
				}
				if o.Calls(faultcas.Replace) != c.writes || o.Calls(faultcas.Load)-loads != c.reads {
					t.Errorf("%d writes and %d reads, want %d and %d", o.Calls(faultcas.Replace), o.Calls(faultcas.Load)-loads, c.writes, c.reads)
				}
				// Whatever it was, the session is as good as before.
				commit(t, s, "k", "2")
			})
		})
	}
}

func TestCommitUnderItsOwnPairMergesAndKeepsOthersKeys(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var n counter
		o := newObject(nil)
		s := o.seal(t, &term{epoch: 1, id: "a"}, n.observer())
		commit(t, s, "mine", "1")
		o.edit(t, func(d *checkpoint.Document) {
			d.Set("theirs", "x")
			d.Set("mine", "set back by an operator")
		})
		commit(t, s, "more", "2")
		if o.value(t, "theirs") != "x" || o.value(t, "mine") != "set back by an operator" || o.value(t, "more") != "2" {
			t.Errorf("%s", o.content(t))
		}
		if v, _ := s.Get("theirs"); v != "x" || n.merged != 1 {
			t.Errorf("the session does not know what it merged: %q, %+v", v, n)
		}
	})
}

func TestCommitNeverMergesOntoADocumentThatWentBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := newObject(nil)
		old := o.seal(t, &term{epoch: 1, id: "a"})
		commit(t, old, "k", "1")
		copied := o.content(t)
		s := o.seal(t, &term{epoch: 2, id: "b"})
		commit(t, s, "k", "2")
		o.put(t, copied)
		for range 2 {
			err := s.Commit(t.Context(), map[string]string{"k": "3"})
			if !errors.Is(err, cas.Corrupt) || !strings.Contains(err.Error(), "went back from 2 to 1") {
				t.Fatalf("error %v", err)
			}
		}
		if o.content(t) != copied {
			t.Errorf("the restored copy was overwritten: %s", o.content(t))
		}
	})
}

func TestVanishedDocumentIsNeverRecreated(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := newObject(nil)
		s := o.seal(t, &term{epoch: 1, id: "a"})
		commit(t, s, "k", "1")
		o.store.Remove(objectName)
		for range 2 {
			err := s.Commit(t.Context(), map[string]string{"k": "2"})
			var vanished *checkpoint.VanishedError
			if !errors.As(err, &vanished) || vanished.Object != o.Describe() {
				t.Fatalf("error %v", err)
			}
		}
		if o.content(t) != "" {
			t.Errorf("recreated: %s", o.content(t))
		}
		// A new term starts from an empty document, with a fence.
		o.seal(t, &term{epoch: 2, id: "b"})
		if _, ok := s.Get("k"); !ok {
			t.Error("the ended session forgot what it knew")
		}
	})
}

func TestDocumentThatBecomesCorruptEndsTheSession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := newObject(nil)
		s := o.seal(t, &term{epoch: 1, id: "a"})
		o.put(t, `{"k": "v"`)
		for range 2 {
			if err := s.Commit(t.Context(), map[string]string{"k": "2"}); !errors.Is(err, cas.Corrupt) {
				t.Fatalf("error %v", err)
			}
		}
		if o.content(t) != `{"k": "v"` {
			t.Errorf("overwritten: %s", o.content(t))
		}
	})
}

func TestEqualEpochOfAnotherTermIsFenced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := newObject(nil)
		s := o.seal(t, &term{epoch: 1, id: "a"})
		o.put(t, doc(1, "b", leaseName))
		wantFenced(t, s.Commit(t.Context(), map[string]string{"k": "2"}), 1, "b")
	})
}

func TestEveryAttemptAsksTheTermFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tm := &term{epoch: 1, id: "a"}
		o := newObject(nil)
		s := o.seal(t, tm)
		// Attempt 1 is answered with 503, and meanwhile the term ends.
		o.Plan(func(op faultcas.Op, _ int) faultcas.Fault {
			if op == faultcas.Replace {
				tm.end(errTermOver)
				return faultcas.Fault{Refuse: cas.Ambiguous}
			}
			return faultcas.Fault{}
		})
		before := o.content(t)
		err := s.Commit(t.Context(), map[string]string{"k": "1"})
		if !errors.Is(err, errTermOver) || !strings.Contains(err.Error(), "may have been written") {
			t.Errorf("error %v", err)
		}
		if o.Calls(faultcas.Replace) != 1 || o.content(t) != before {
			t.Errorf("%d attempts after the term ended: %s", o.Calls(faultcas.Replace), o.content(t))
		}

		// A term that is over sends nothing at all.
		requests := o.Calls(faultcas.Load) + o.Calls(faultcas.Replace)
		o.Plan(nil)
		fresh := o.open()
		if _, err := fresh.Seal(t.Context(), tm); !errors.Is(err, errTermOver) {
			t.Errorf("seal: %v", err)
		}
		if n := o.Calls(faultcas.Replace); n != 1 || o.Calls(faultcas.Load)+n > requests+1 {
			t.Errorf("%d writes", n)
		}
	})
}

func TestCommitEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := newObject(nil)
		s := o.seal(t, &term{epoch: 1, id: "a"}, checkpoint.WithMaxAttempts(1000))
		o.Plan(always(faultcas.Replace, faultcas.Fault{Refuse: cas.Ambiguous}))
		ctx, cancel := context.WithTimeoutCause(t.Context(), 3*time.Second, errors.New("stop instant"))
		defer cancel()
		start := time.Now()
		err := s.Commit(ctx, map[string]string{"k": "1"})
		if err == nil || !strings.Contains(err.Error(), "stop instant") || !errors.Is(err, cas.Ambiguous) {
			t.Errorf("error %v", err)
		}
		if took := time.Since(start); took != 3*time.Second {
			t.Errorf("after %v", took)
		}
		o.Plan(nil)
		commit(t, s, "k", "2")
	})
}

func TestReservedAndUnreadableKeysAreRefused(t *testing.T) {
	o := newObject(nil)
	s := o.seal(t, &term{epoch: 1, id: "a"})
	before := o.content(t)
	for _, c := range []struct {
		err error
		run func() error
	}{
		{checkpoint.ErrReserved, func() error { return s.Commit(t.Context(), map[string]string{"ok": "1", checkpoint.EpochKey: "9"}) }},
		{checkpoint.ErrReserved, func() error { return s.Commit(t.Context(), map[string]string{checkpoint.FenceKey: "{}"}) }},
		{checkpoint.ErrReserved, func() error { return s.Delete(t.Context(), "ok", checkpoint.EpochKey) }},
		{checkpoint.ErrNotText, func() error { return s.Commit(t.Context(), map[string]string{"k": "\xff"}) }},
		{checkpoint.ErrNotText, func() error { return s.Commit(t.Context(), map[string]string{"\xed\xa0\x80": "v"}) }},
		{checkpoint.ErrTooLarge, func() error {
			return s.Commit(t.Context(), map[string]string{"k": strings.Repeat("\u00e9", cas.MaxSize/6)})
		}},
	} {
		if err := c.run(); !errors.Is(err, c.err) {
			t.Errorf("error %v, want %v", err, c.err)
		}
	}
	if o.content(t) != before || o.Calls(faultcas.Replace) != 0 {
		t.Errorf("something was written: %.200s", o.content(t))
	}
	commit(t, s, "k", "still usable")
}

func TestNothingToDoSendsNothing(t *testing.T) {
	o := newObject(nil)
	s := o.seal(t, &term{epoch: 1, id: "a"})
	if err := errors.Join(s.Commit(t.Context(), nil), s.Delete(t.Context()), s.Delete(t.Context(), "absent")); err != nil {
		t.Fatal(err)
	}
	if o.Calls(faultcas.Replace) != 0 {
		t.Error("a write was sent")
	}
}

func TestErrorsReadAsSentences(t *testing.T) {
	o := newObject(nil)
	o.put(t, doc(8, "other", "elsewhere"))
	_, err := o.open().Seal(t.Context(), &term{epoch: 9, id: "mine"})
	want := "seal for epoch 9: mem://sf2loki/state.json belongs to the lease elsewhere, this is s3://b/sf2loki/leader.lease; " +
		"if the old pair is gone for good, hand the document over with \"sf2loki-ha state adopt\"; else give this pair a document of its own"
	if err == nil || err.Error() != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}
}
