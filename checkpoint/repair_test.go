package checkpoint_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sf2loki/sf2loki-ha/cas"
	"github.com/sf2loki/sf2loki-ha/checkpoint"
)

// Damaged reserved keys, and what of them can still be read.
var damaged = map[string]struct {
	text  string
	epoch int64
	lease string
}{
	"a junk epoch":                   {`{"a": "1", "__fence_epoch__": "seven"}`, 0, ""},
	"a negative epoch":               {`{"a": "1", "__fence_epoch__": "-1"}`, 0, ""},
	"an epoch beyond 2^53":           {`{"a": "1", "__fence_epoch__": "9007199254740992"}`, 0, ""},
	"an empty epoch":                 {`{"a": "1", "__fence_epoch__": ""}`, 0, ""},
	"an epoch that is a number":      {`{"a": "1", "__fence_epoch__": 7}`, 7, ""},
	"an epoch that is null":          {`{"__fence_epoch__": null, "a": "1"}`, 0, ""},
	"an epoch twice":                 {`{"__fence_epoch__": "3", "a": "1", "__fence_epoch__": "9"}`, 9, ""},
	"a fence without an epoch":       {`{"a": "1", "__fence__": "{\"term\": \"t\", \"lease\": \"l\", \"ttl_ms\": 20000}"}`, 0, "l"},
	"a junk fence":                   {`{"a": "1", "__fence_epoch__": "7", "__fence__": "junk"}`, 7, ""},
	"a fence without a term":         {`{"a": "1", "__fence_epoch__": "7", "__fence__": "{\"lease\": \"l\", \"ttl_ms\": 20000}"}`, 7, "l"},
	"a fence that is an object":      {`{"a": "1", "__fence_epoch__": "7", "__fence__": {"term": "t", "lease": "l", "ttl_ms": 20000}}`, 7, "l"},
	"a junk epoch and a sound fence": {`{"a": "1", "__fence_epoch__": "x", "__fence__": "{\"term\": \"t\", \"lease\": \"l\", \"ttl_ms\": 20000}"}`, 0, "l"},
}

func TestADamagedFenceIsRepairedAndTheUsersKeysStay(t *testing.T) {
	for name, c := range damaged {
		t.Run(name, func(t *testing.T) {
			o := newObject(nil)
			o.put(t, c.text)
			s := o.open()
			snap := snapshot(t, s)
			if cas.ClassOf(snap.Damage) != cas.Corrupt || !strings.Contains(snap.Damage.Error(), "sf2loki-ha state repair-fence") {
				t.Fatalf("damage: %v", snap.Damage)
			}
			if snap.Fence.Epoch != c.epoch || snap.Fence.Lease != c.lease {
				t.Errorf("readable: %+v", snap.Fence)
			}
			// Nothing else may write on it.
			if _, err := s.Edit(t.Context(), snap, set("x", "v")); cas.ClassOf(err) != cas.Corrupt {
				t.Errorf("edit: %v", err)
			}
			if _, err := s.Adopt(t.Context(), snap); cas.ClassOf(err) != cas.Corrupt {
				t.Errorf("adopt: %v", err)
			}
			if _, err := s.Seal(t.Context(), &term{epoch: 20, id: "n"}); cas.ClassOf(err) != cas.Corrupt {
				t.Errorf("seal: %v", err)
			}
			if _, err := s.RepairFence(t.Context(), snap, 12); err != nil {
				t.Fatal(err)
			}
			f, err := s.Fence(t.Context())
			want := c.lease
			if want == "" {
				want = leaseName
			}
			if err != nil || f.Epoch != 12 || f.Lease != want || f.Term == "" || f.TTL < 15*time.Second || o.value(t, "a") != "1" {
				t.Errorf("%+v, %v; %s", f, err, o.content(t))
			}
		})
	}
}

func TestARepairedFenceIsOutrankedByTheNextTermAlone(t *testing.T) {
	o := newObject(nil)
	session := o.seal(t, &term{epoch: 7, id: "old"})
	o.edit(t, func(d *checkpoint.Document) { d.Set(checkpoint.FenceKey, "junk") })
	s := o.open()
	repaired, err := s.RepairFence(t.Context(), snapshot(t, s), 7)
	if err != nil {
		t.Fatal(err)
	}
	wantFenced(t, session.Commit(t.Context(), map[string]string{"a": "1"}), 7, repaired.Term)
	_, err = s.Seal(t.Context(), &term{epoch: 7, id: "same"})
	wantFenced(t, err, 7, repaired.Term)
	if _, err := s.Seal(t.Context(), &term{epoch: 8, id: "next"}); err != nil {
		t.Error(err)
	}
}

func TestARepairNeverLowersAnEpoch(t *testing.T) {
	o := newObject(nil)
	o.put(t, doc(7, "t", leaseName))
	s := o.open()
	for _, epoch := range []int64{-1, 0, 6, checkpoint.MaxEpoch + 1} {
		before := o.content(t)
		if _, err := s.RepairFence(t.Context(), snapshot(t, s), epoch); err == nil || o.content(t) != before {
			t.Errorf("epoch %d: %v, %s", epoch, err, o.content(t))
		}
	}
	if _, err := s.RepairFence(t.Context(), snapshot(t, s), 9); err != nil {
		t.Fatal(err)
	}
	if f, err := s.Fence(t.Context()); err != nil || f.Epoch != 9 {
		t.Errorf("%+v, %v", f, err)
	}
	if _, err := newObject(nil).open().RepairFence(t.Context(), checkpoint.Snapshot{}, 9); err == nil {
		t.Error("a document that does not exist was made")
	}
}

func TestARepairIsWrittenOnTheVersionThatWasRead(t *testing.T) {
	o := newObject(nil)
	o.put(t, `{"a": "1", "__fence_epoch__": "x"}`)
	s := o.open()
	snap := snapshot(t, s)
	o.put(t, doc(3, "t", leaseName))
	if _, err := s.RepairFence(t.Context(), snap, 12); cas.ClassOf(err) != cas.Conflict {
		t.Errorf("repair: %v", err)
	}
	if _, err := s.Adopt(t.Context(), checkpoint.Snapshot{Document: snap.Document, Fence: snap.Fence, Found: true}); cas.ClassOf(err) != cas.Conflict {
		t.Errorf("adopt: %v", err)
	}
}

func TestAnAdoptedDocumentIsSealedByTheNewLeaseAboveTheOldEpoch(t *testing.T) {
	o := newObject(nil)
	old := checkpoint.Open(o, checkpoint.WithLease("elsewhere", 20*time.Second))
	session, err := old.Seal(t.Context(), &term{epoch: 40, id: "old"})
	if err != nil {
		t.Fatal(err)
	}
	if err := session.Commit(t.Context(), map[string]string{"a": "1", "b": "2"}); err != nil {
		t.Fatal(err)
	}
	s := o.open()
	var refused *checkpoint.LeaseError
	if _, err := s.Seal(t.Context(), &term{epoch: 41, id: "n"}); !errors.As(err, &refused) || !strings.Contains(fmt.Sprint(err), "sf2loki-ha state adopt") {
		t.Fatalf("%v", err)
	}
	adopted, err := s.Adopt(t.Context(), snapshot(t, s))
	if err != nil || adopted.Epoch != 40 || adopted.Lease != leaseName || adopted.TTL != 20*time.Second {
		t.Fatalf("%+v, %v", adopted, err)
	}
	// The old lease is out, whatever epoch it reaches.
	wantFenced(t, session.Commit(t.Context(), map[string]string{"a": "9"}), 40, adopted.Term)
	if _, err := old.Seal(t.Context(), &term{epoch: 99, id: "late"}); !errors.As(err, &refused) {
		t.Errorf("the old lease seals again: %v", err)
	}
	if epoch, _, _, _, err := s.Floor(t.Context()); err != nil || epoch != 40 {
		t.Errorf("floor %d, %v", epoch, err)
	}
	next, err := s.Seal(t.Context(), &term{epoch: 41, id: "n"})
	if err != nil || !slices.Equal(next.Keys(), []string{"a", "b"}) {
		t.Errorf("%v, %v", next, err)
	}
}
