package checkpoint_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sf2loki/sf2loki-ha/cas"
	"github.com/sf2loki/sf2loki-ha/checkpoint"
	"github.com/sf2loki/sf2loki-ha/internal/faultcas"
)

func set(key, value string) func(*checkpoint.Document) error {
	return func(d *checkpoint.Document) error {
		d.Set(key, value)
		return nil
	}
}

func snapshot(t testing.TB, s *checkpoint.Store) checkpoint.Snapshot {
	t.Helper()
	snap, err := s.Snapshot(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return snap
}

func TestAnEditIsWrittenOnTheVersionThatWasRead(t *testing.T) {
	for name, c := range map[string]struct {
		before string
		// between is what happens after the read.
		between func(t *testing.T, o *object)
		refused bool
	}{
		"nobody else":         {doc(3, "t", leaseName), func(*testing.T, *object) {}, false},
		"no document yet":     {"", func(*testing.T, *object) {}, false},
		"a seal":              {doc(3, "t", leaseName), func(t *testing.T, o *object) { o.seal(t, &term{epoch: 4, id: "n"}) }, true},
		"the first seal":      {"", func(t *testing.T, o *object) { o.seal(t, &term{epoch: 1, id: "n"}) }, true},
		"another tool":        {`{"a": "1"}`, func(t *testing.T, o *object) { o.put(t, `{"a": "2"}`) }, true},
		"a commit":            {"", func(t *testing.T, o *object) { commit(t, o.seal(t, &term{epoch: 1, id: "n"}), "a", "2") }, true},
		"a document deleted":  {`{"a": "1"}`, func(_ *testing.T, o *object) { o.store.Remove(objectName) }, true},
		"damaged in between":  {`{"a": "1"}`, func(t *testing.T, o *object) { o.put(t, `{"a": `) }, true},
		"upstream's document": {`{"a": "1", "__fence_epoch__": "2"}`, func(*testing.T, *object) {}, false},
	} {
		t.Run(name, func(t *testing.T) {
			o := newObject(nil)
			if c.before != "" {
				o.put(t, c.before)
			}
			s := o.open()
			snap := snapshot(t, s)
			if snap.Found != (c.before != "") {
				t.Errorf("found %v", snap.Found)
			}
			c.between(t, o)
			now, writes := o.content(t), o.Calls(faultcas.Replace)+o.Calls(faultcas.Create)
			changed, err := s.Edit(t.Context(), snap, set("x", "v"))
			if !changed {
				t.Error("nothing was different")
			}
			if !c.refused {
				if err != nil || o.value(t, "x") != "v" {
					t.Errorf("%v, %s", err, o.content(t))
				}
				return
			}
			if cas.ClassOf(err) != cas.Conflict || o.content(t) != now {
				t.Errorf("%v, want a conflict and nothing written; %s", err, o.content(t))
			}
			if n := o.Calls(faultcas.Replace) + o.Calls(faultcas.Create) - writes; n != 1 {
				t.Errorf("%d writes on a version that is gone", n)
			}
		})
	}
}

func TestAnEditLeavesTheFenceToItsTermAndTheNextCommitMerges(t *testing.T) {
	o := newObject(nil)
	session := o.seal(t, &term{epoch: 5, id: "t"})
	commit(t, session, "mine", "1")
	s := o.open()
	if _, err := s.Edit(t.Context(), snapshot(t, s), set("x", "v")); err != nil {
		t.Fatal(err)
	}
	commit(t, session, "mine", "2")
	f, err := s.Fence(t.Context())
	if err != nil || f.Epoch != 5 || f.Term != "t" || f.Lease != leaseName || f.TTL != 15*time.Second {
		t.Errorf("%+v, %v", f, err)
	}
	if o.value(t, "x") != "v" || o.value(t, "mine") != "2" {
		t.Error(o.content(t))
	}
}

func TestAnEditNeverRepeatsBytes(t *testing.T) {
	o := newObject(nil)
	o.seal(t, &term{epoch: 5, id: "t"})
	s := o.open()
	seen := map[string]bool{o.content(t): true}
	for i := range 6 {
		if _, err := s.Edit(t.Context(), snapshot(t, s), set("x", []string{"a", "b"}[i%2])); err != nil {
			t.Fatal(err)
		}
		if seen[o.content(t)] {
			t.Fatalf("edit %d wrote bytes that were there before: on S3 their version would be an old one", i)
		}
		seen[o.content(t)] = true
	}
}

func TestAnEditThatChangesNothingSendsNothing(t *testing.T) {
	o := newObject(nil)
	o.put(t, `{"a": "1"}`)
	s := o.open()
	snap := snapshot(t, s)
	changed, err := s.Edit(t.Context(), snap, set("a", "1"))
	if changed || err != nil || o.Calls(faultcas.Replace) != 0 {
		t.Errorf("%v, %v, %d writes", changed, err, o.Calls(faultcas.Replace))
	}
	if len(snap.Document.Keys()) != 1 {
		t.Error("the snapshot was changed")
	}
}

func TestAnEditRefusesWhatCouldNotBeReadBack(t *testing.T) {
	o := newObject(nil)
	o.put(t, `{"a": "1"}`)
	sealed := newObject(nil)
	sealed.seal(t, &term{epoch: 2, id: "t"})
	for name, c := range map[string]struct {
		object *object
		change func(*checkpoint.Document) error
		want   error
	}{
		"an epoch put in":    {o, set(checkpoint.EpochKey, "9"), checkpoint.ErrReserved},
		"a fence put in":     {o, set(checkpoint.FenceKey, "{}"), checkpoint.ErrReserved},
		"an epoch changed":   {sealed, set(checkpoint.EpochKey, "9"), checkpoint.ErrReserved},
		"the fence deleted":  {sealed, func(d *checkpoint.Document) error { d.Delete(checkpoint.FenceKey); return nil }, checkpoint.ErrReserved},
		"a key in Latin-1":   {o, set("caf\xe9", "1"), checkpoint.ErrNotText},
		"a value in Latin-1": {o, set("x", "caf\xe9"), checkpoint.ErrNotText},
		"too large":          {o, set("x", strings.Repeat("x", cas.MaxSize)), checkpoint.ErrTooLarge},
		"refused by caller":  {o, func(*checkpoint.Document) error { return errTermOver }, errTermOver},
	} {
		t.Run(name, func(t *testing.T) {
			s := c.object.open()
			before := c.object.content(t)
			if _, err := s.Edit(t.Context(), snapshot(t, s), c.change); !errors.Is(err, c.want) {
				t.Errorf("%v, want %v", err, c.want)
			}
			if c.object.content(t) != before || c.object.Calls(faultcas.Replace) != 0 && c.object == o {
				t.Error("something was written")
			}
		})
	}
}

func TestAnEditWhoseAnswerWasLostIsSettledByReading(t *testing.T) {
	lost, refused := faultcas.Fault{Lose: cas.Ambiguous}, faultcas.Fault{Refuse: cas.Ambiguous}
	for name, c := range map[string]struct {
		before string
		plan   func(faultcas.Op, int) faultcas.Fault
		writes int
	}{
		"landed":                           {`{"a": "1"}`, nth(faultcas.Replace, 1, lost), 1},
		"created":                          {"", nth(faultcas.Create, 1, lost), 1},
		"sealed and landed":                {doc(3, "t", leaseName), nth(faultcas.Replace, 1, lost), 1},
		"did not land":                     {`{"a": "1"}`, nth(faultcas.Replace, 1, refused), 2},
		"contended":                        {`{"a": "1"}`, nth(faultcas.Replace, 1, faultcas.Fault{Refuse: cas.Contended}), 2},
		"success without a version":        {`{"a": "1"}`, nth(faultcas.Replace, 1, faultcas.Fault{NoVersion: true}), 1},
		"the first lands after the second": {doc(3, "t", leaseName), nth(faultcas.Replace, 1, faultcas.Fault{LandLater: time.Minute}), 2},
		"the first lands while we look":    {doc(3, "t", leaseName), nth(faultcas.Replace, 1, faultcas.Fault{LandLater: time.Millisecond}), 1},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				o := newObject(nil)
				if c.before != "" {
					o.put(t, c.before)
				}
				s := o.open()
				snap := snapshot(t, s)
				o.Plan(c.plan)
				if _, err := s.Edit(t.Context(), snap, set("x", "v")); err != nil {
					t.Fatal(err)
				}
				elapse(2 * time.Minute)
				if o.value(t, "x") != "v" {
					t.Error(o.content(t))
				}
				if n := o.Calls(faultcas.Replace) + o.Calls(faultcas.Create); n != c.writes {
					t.Errorf("%d writes, want %d", n, c.writes)
				}
			})
		})
	}
}

func TestAnEditThatCannotBeSettledSaysSo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := newObject(nil)
		o.put(t, doc(3, "t", leaseName))
		s := o.open()
		snap := snapshot(t, s)
		o.Plan(nth(faultcas.Replace, 1, faultcas.Fault{Lose: cas.Ambiguous}))
		go func() {
			elapse(time.Millisecond) // after the write, before the look
			o.put(t, doc(4, "n", leaseName))
		}()
		_, err := s.Edit(t.Context(), snap, set("x", "v"))
		if cas.ClassOf(err) != cas.Ambiguous || !strings.Contains(fmt.Sprint(err), "look whether the change is there") {
			t.Errorf("%v", err)
		}
	})
}

func TestASnapshotTriesLostAnswersAgainAndKnowsWhatIsWrong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := newObject(nth(faultcas.Load, 1, faultcas.Fault{Refuse: cas.Ambiguous}))
		o.put(t, `{"a": "1"}`)
		if snap := snapshot(t, o.open()); !snap.Found || !slices.Equal(snap.Document.Keys(), []string{"a"}) {
			t.Errorf("%+v", snap)
		}
		for _, class := range []cas.Class{cas.Denied, cas.NoBucket, cas.Unsupported} {
			o := newObject(always(faultcas.Load, faultcas.Fault{Refuse: class}))
			if _, err := o.open().Snapshot(t.Context()); cas.ClassOf(err) != class || o.Calls(faultcas.Load) != 1 {
				t.Errorf("%v after %d reads, want %s after one", err, o.Calls(faultcas.Load), class)
			}
		}
	})
	for _, text := range []string{"", "{", `{"a": "1"`, "[]", "\xff\xfe", `{"a": 1}`, `{"a": "1", "a": "2"}`, `"x"`, "null", `{"a": null, "__fence_epoch__": 3}`} {
		o := newObject(nil)
		o.put(t, text)
		if snap, err := o.open().Snapshot(t.Context()); cas.ClassOf(err) != cas.Corrupt || !strings.Contains(fmt.Sprint(err), "mem://sf2loki/state.json") || snap.Found {
			t.Errorf("%q: %v", text, err)
		}
	}
}
