package checkpoint_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/sf2loki/sf2loki-ha/cas"
	"github.com/sf2loki/sf2loki-ha/checkpoint"
	"github.com/sf2loki/sf2loki-ha/internal/faultcas"
)

func TestFencedErrorCarriesTheFloorThroughWrapping(t *testing.T) {
	o := newObject(nil)
	o.put(t, doc(8, "other", leaseName))
	_, err := o.open().Seal(t.Context(), &term{epoch: 7, id: "mine"})
	wantFenced(t, fmt.Errorf("work: %w", err), 8, "other")
	var floor interface{ FencedEpoch() int64 }
	if !errors.As(err, &floor) || floor.FencedEpoch() != 8 {
		t.Errorf("the elector cannot learn the floor from %v", err)
	}
	var other *checkpoint.LeaseError
	if errors.As(err, &other) {
		t.Error("a fenced seal also looks like a foreign lease")
	}
}

func TestFenceIsTheFloorOfTheElection(t *testing.T) {
	for _, c := range []struct {
		name, before string
		want         checkpoint.Fence
	}{
		{"no document", "", checkpoint.Fence{}},
		{"never sealed", `{}`, checkpoint.Fence{Found: true}},
		{"sf2loki's file lease", doc(7, "", ""), checkpoint.Fence{Epoch: 7, Found: true}},
		{"ours", doc(7, "t", leaseName), checkpoint.Fence{Epoch: 7, Term: "t", Lease: leaseName, TTL: 15 * time.Second, Found: true}},
		{"absurd ttl", strings.Replace(doc(7, "t", "l"), "15000", "99999999999999", 1), checkpoint.Fence{Epoch: 7, Term: "t", Lease: "l", TTL: 10 * time.Minute, Found: true}},
		{"negative ttl", strings.Replace(doc(7, "t", "l"), "15000", "-1", 1), checkpoint.Fence{Epoch: 7, Term: "t", Lease: "l", Found: true}},
		{"largest epoch", doc(checkpoint.MaxEpoch, "", ""), checkpoint.Fence{Epoch: checkpoint.MaxEpoch, Found: true}},
	} {
		t.Run(c.name, func(t *testing.T) {
			o := newObject(nil)
			if c.before != "" {
				o.put(t, c.before)
			}
			f, err := o.open().Fence(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if f.Epoch != c.want.Epoch || f.Term != c.want.Term || f.Lease != c.want.Lease || f.TTL != c.want.TTL || f.Found != c.want.Found {
				t.Errorf("got %+v, want %+v", f, c.want)
			}
		})
	}
}

// Who can never seal the document is no candidate: otherwise it takes the lease
// and gives it back once a ttl, and the pair that owns the document waits.
func TestADocumentOfAnotherLeaseIsNoFloor(t *testing.T) {
	for name, c := range map[string]struct {
		before  string
		refused bool
	}{
		"ours": {doc(7, "t", leaseName), false}, "no lease named": {doc(7, "", ""), false}, "another's": {doc(7, "t", "s3://other/lease"), true},
	} {
		t.Run(name, func(t *testing.T) {
			o := newObject(nil)
			o.put(t, c.before)
			epoch, _, _, _, err := o.open().Floor(t.Context())
			var other *checkpoint.LeaseError
			if errors.As(err, &other) != c.refused || (err != nil) != c.refused || !c.refused && epoch != 7 {
				t.Errorf("epoch %d, %v", epoch, err)
			}
		})
	}
}

func TestFenceIsUnknownAfterEveryErrorButAbsence(t *testing.T) {
	for _, class := range cas.Classes() {
		o := newObject(always(faultcas.Load, faultcas.Fault{Refuse: class}))
		f, err := o.open().Fence(t.Context())
		if class == cas.NotFound {
			if err != nil || f.Found {
				t.Errorf("%s: %+v, %v", class, f, err)
			}
			continue
		}
		if !errors.Is(err, class) {
			t.Errorf("%s: fence %+v, error %v", class, f, err)
		}
		if n := o.Calls(faultcas.Load); n != 1 {
			t.Errorf("%s: %d requests; the elector's budget has room for one", class, n)
		}
	}
}

func TestDamagedDocumentIsNeitherEmptyNorOverwritten(t *testing.T) {
	damaged := append([]struct{ name, data, reason string }{
		{"junk epoch", `{"__fence_epoch__": "x"}`, "__fence_epoch__"},
		{"fence without epoch", `{"__fence__": "{}"}`, "__fence_epoch__"},
	}, badDocuments...)
	for _, c := range damaged {
		t.Run(c.name, func(t *testing.T) {
			o := newObject(nil)
			o.put(t, c.data)
			check := func(what string, err error) {
				t.Helper()
				if !errors.Is(err, cas.Corrupt) {
					t.Fatalf("%s: error %v, want corrupt", what, err)
				}
				for _, part := range []string{o.Describe(), c.reason, "untouched", "restore an earlier version"} {
					if !strings.Contains(err.Error(), part) {
						t.Errorf("%s: %q does not say %q", what, err, part)
					}
				}
			}
			_, err := o.open().Fence(t.Context())
			check("fence", err)
			_, err = o.open().Seal(t.Context(), &term{epoch: 9, id: "mine"})
			check("seal", err)
			_, err = o.open().Join(t.Context(), &term{epoch: 9, id: "mine"})
			check("join", err)
			if o.content(t) != c.data {
				t.Errorf("document is now %q", o.content(t))
			}
			if o.Calls(faultcas.Create)+o.Calls(faultcas.Replace) != 0 {
				t.Error("a write was sent")
			}
		})
	}
}

func TestOversizedDocumentIsCorrupt(t *testing.T) {
	o := newObject(nil)
	o.put(t, `{"k": "`+strings.Repeat("x", cas.MaxSize)+`"}`)
	if _, err := o.open().Seal(t.Context(), &term{epoch: 1, id: "a"}); !errors.Is(err, cas.Corrupt) {
		t.Fatalf("error %v, want corrupt", err)
	}
}
