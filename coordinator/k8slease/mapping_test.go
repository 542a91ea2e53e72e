package k8slease_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/sf2loki/sf2loki-ha/coordinator"
	"github.com/sf2loki/sf2loki-ha/coordinator/k8slease"
	"github.com/sf2loki/sf2loki-ha/internal/wiretest"
)

// body decodes what was sent.
func body(t *testing.T, r wiretest.Request) map[string]any {
	t.Helper()
	var o map[string]any
	if err := json.Unmarshal(r.Body, &o); err != nil {
		t.Fatal(err)
	}
	return o
}

func at(o map[string]any, path string) any {
	var v any = o
	for _, k := range strings.Split(path, ".") {
		m, _ := v.(map[string]any)
		v = m[k]
	}
	return v
}

func TestARecordIsATrueLease(t *testing.T) {
	r := record("w1")
	s, srv := scripted(t, is(t, 201, object(t, r, "1")))
	if _, err := s.Create(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	req := srv.Requests()[0]
	if req.Method != http.MethodPost || req.Target != path || req.Header.Get("Content-Type") != "application/json" {
		t.Errorf("%s %s %v", req.Method, req.Target, req.Header)
	}
	sent := body(t, req)
	for field, want := range map[string]any{
		"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata.name": "leader", "metadata.namespace": "logs",
		"spec.holderIdentity": "pod-1", "spec.leaseTransitions": 7.0,
		"spec.leaseDurationSeconds": 3.0, // 2.5 s, up
		"spec.acquireTime":          "2026-11-30T12:00:00.123456Z", "spec.renewTime": "2026-11-30T12:00:01.123456Z",
	} {
		if got := at(sent, field); got != want {
			t.Errorf("%s is %v, want %v", field, got, want)
		}
	}
	text, _ := sent["metadata"].(map[string]any)["annotations"].(map[string]any)[k8slease.Annotation].(string)
	if got, err := coordinator.ParseRecord([]byte(text)); err != nil || got.WriteID != "w1" || got.TTL != r.TTL || got.Incarnation != "inc-1" {
		t.Errorf("annotation %q: %v", text, err)
	}
}

func TestAReleasedLeaseHasNoHolderAndIsStillOurs(t *testing.T) {
	r := record("w2")
	r.State = coordinator.Released
	held := object(t, record("w1"), "10")
	old := version(t, held)
	s, srv := scripted(t, is(t, 200, held), is(t, 200, object(t, r, "11")), is(t, 200, object(t, r, "11")))
	v, err := s.Replace(t.Context(), r, old)
	if err != nil {
		t.Fatal(err)
	}
	if got := at(body(t, srv.Requests()[1]), "spec.holderIdentity"); got != "" {
		t.Errorf("holderIdentity %v", got)
	}
	l, err := s.Read(t.Context())
	if err != nil || l.Version != v || l.Record.State != coordinator.Released || l.Record.Holder != "pod-1" || l.Record.Foreign() {
		t.Errorf("%+v, %v", l, err)
	}
}

func TestWhatOthersPutOnTheLeaseSurvivesAWrite(t *testing.T) {
	held := object(t, record("w1"), "10")
	old := version(t, held)
	theirs := map[string]any{
		"metadata.labels":            map[string]any{"team": "logs"},
		"metadata.ownerReferences":   []any{map[string]any{"apiVersion": "apps/v1", "kind": "Deployment", "name": "d", "uid": "u"}},
		"metadata.finalizers":        []any{"example.com/keep"},
		"metadata.generation":        json.Number("9007199254740993"), // more than a float64 keeps
		"metadata.creationTimestamp": "2026-01-01T00:00:00Z",
		"spec.strategy":              "OldestEmulationVersion",
		"spec.unknownToday":          map[string]any{"a": []any{1.0, "<&>"}},
		"status":                     map[string]any{"unknown": true},
	}
	o := held
	for field, v := range theirs {
		o = put(o, field, v)
	}
	o["metadata"].(map[string]any)["annotations"].(map[string]any)["example.com/note"] = "ä <b>"
	s, srv := scripted(t, is(t, 200, o), is(t, 200, object(t, record("w2"), "11")))
	if _, err := s.Replace(t.Context(), record("w2"), old); err != nil {
		t.Fatal(err)
	}
	sent := body(t, srv.Requests()[1])
	for field, want := range theirs {
		a, _ := json.Marshal(at(sent, field))
		b, _ := json.Marshal(want)
		if field == "metadata.generation" {
			continue
		}
		if string(a) != string(b) {
			t.Errorf("%s: sent %s, was %s", field, a, b)
		}
	}
	if !strings.Contains(string(srv.Requests()[1].Body), "9007199254740993") {
		t.Error("a large number was rounded")
	}
	if got := sent["metadata"].(map[string]any)["annotations"].(map[string]any)["example.com/note"]; got != "ä <b>" {
		t.Errorf("annotation %v", got)
	}
}

func TestVersionsNameTheStateOfTheLeaseNotOfTheObject(t *testing.T) {
	held := object(t, record("w1"), "10")
	bare := put(put(held, "metadata.annotations", nil), "spec", map[string]any{"holderIdentity": "kubectl"})
	for name, tt := range map[string]struct {
		a, b map[string]any
		same bool
	}{
		"resourceVersion":                   {held, put(held, "metadata.resourceVersion", "11"), true},
		"a label":                           {held, put(held, "metadata.labels", map[string]any{"a": "b"}), true},
		"managed fields":                    {held, put(held, "metadata.managedFields", []any{map[string]any{"manager": "kubectl"}}), true},
		"an unknown field of the spec":      {held, put(held, "spec.unknown", "x"), true},
		"a duration edited by a person":     {held, put(held, "spec.leaseDurationSeconds", 60), true},
		"write id":                          {held, object(t, record("w2"), "10"), false},
		"holder":                            {held, put(held, "spec.holderIdentity", "x"), false},
		"holder taken out":                  {held, put(held, "spec.holderIdentity", nil), false},
		"renewed by others":                 {held, put(held, "spec.renewTime", "2026-11-30T12:00:02.000000Z"), false},
		"acquired by others":                {held, put(held, "spec.acquireTime", "2026-11-30T12:00:02.000000Z"), false},
		"transitions":                       {held, put(held, "spec.leaseTransitions", 8), false},
		"annotation removed":                {held, put(held, "metadata.annotations", nil), false},
		"deleted and made again":            {held, put(held, "metadata.uid", "uid-2"), false},
		"bare: resourceVersion and label":   {bare, put(put(bare, "metadata.resourceVersion", "11"), "metadata.labels", map[string]any{"a": "b"}), true},
		"bare: renewTime":                   {bare, put(bare, "spec.renewTime", "2026-11-30T12:00:02.000000Z"), false},
		"bare: duration":                    {bare, put(bare, "spec.leaseDurationSeconds", 9), false},
		"bare: deleted and made again":      {bare, put(bare, "metadata.uid", "uid-2"), false},
		"bare: a field that has no meaning": {bare, put(bare, "spec.unknown", "x"), false},
		"bare: our annotation":              {bare, put(bare, "metadata.annotations", map[string]any{k8slease.Annotation: "x"}), false},
	} {
		t.Run(name, func(t *testing.T) {
			if a, b := version(t, tt.a), version(t, tt.b); (a == b) != tt.same {
				t.Errorf("%q and %q", a, b)
			}
		})
	}
}

func TestAnybodyElsesLeaseIsReadOffItsSpec(t *testing.T) {
	ours := record("w1")
	ours.History = []coordinator.PastTerm{{Epoch: 6, Holder: "pod-0"}}
	held := object(t, ours, "10")
	noSpec := put(put(held, "spec", nil), "metadata.annotations", nil)
	for name, tt := range map[string]struct {
		object map[string]any
		want   coordinator.Record
		past   int
	}{
		"nothing but a name": {noSpec, coordinator.Record{}, 0},
		"null spec":          {put(noSpec, "spec", map[string]any(nil)), coordinator.Record{}, 0},
		"holder alone":       {put(noSpec, "spec.holderIdentity", "kubectl"), coordinator.Record{Holder: "kubectl"}, 0},
		"whole": {put(noSpec, "spec", map[string]any{"holderIdentity": "c-0", "leaseDurationSeconds": 40, "leaseTransitions": 3,
			"acquireTime": "2026-11-30T12:00:00.000000Z", "renewTime": "2026-11-30T12:00:05.000000Z"}),
			coordinator.Record{Holder: "c-0", TTL: 40 * time.Second, Epoch: 3, AcquiredAt: wall.Truncate(time.Second), RenewedAt: wall.Truncate(time.Second).Add(5 * time.Second)}, 0},
		"a duration beyond reason":   {put(noSpec, "spec.leaseDurationSeconds", 1<<31-1), coordinator.Record{TTL: coordinator.MaxTTL}, 0},
		"negative numbers":           {put(put(noSpec, "spec.leaseDurationSeconds", -1), "spec.leaseTransitions", -1), coordinator.Record{}, 0},
		"fields of a wrong type":     {put(put(noSpec, "spec.leaseDurationSeconds", "soon"), "spec.renewTime", 5), coordinator.Record{}, 0},
		"a record of ours, taken":    {put(held, "spec.holderIdentity", "c-0"), coordinator.Record{Holder: "c-0", TTL: 3 * time.Second, Epoch: 7, AcquiredAt: wall, RenewedAt: wall.Add(time.Second)}, 1},
		"taken, transitions counted": {put(put(held, "spec.holderIdentity", "c-0"), "spec.leaseTransitions", 8), coordinator.Record{Holder: "c-0", TTL: 3 * time.Second, Epoch: 8, AcquiredAt: wall, RenewedAt: wall.Add(time.Second)}, 1},
		"taken, transitions reset":   {put(put(held, "spec.holderIdentity", "c-0"), "spec.leaseTransitions", 0), coordinator.Record{Holder: "c-0", TTL: 3 * time.Second, Epoch: 7, AcquiredAt: wall, RenewedAt: wall.Add(time.Second)}, 1},
		"a damaged record":           {put(held, "metadata.annotations", map[string]any{k8slease.Annotation: "{\"epoch\": -1}"}), coordinator.Record{Holder: "pod-1", TTL: 3 * time.Second, Epoch: 7, AcquiredAt: wall, RenewedAt: wall.Add(time.Second)}, 0},
		"a record without a writer":  {put(held, "metadata.annotations", map[string]any{k8slease.Annotation: `{"epoch": 9}`}), coordinator.Record{Holder: "pod-1", TTL: 3 * time.Second, Epoch: 9, AcquiredAt: wall, RenewedAt: wall.Add(time.Second)}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			s, _ := scripted(t, is(t, 200, tt.object))
			l, err := s.Read(t.Context())
			if err != nil || l.Corrupt != nil {
				t.Fatal(err, l.Corrupt)
			}
			r := l.Record
			if !r.Foreign() || r.State == coordinator.Released || r.WriteID != "" || r.Term != "" {
				t.Errorf("%+v is not foreign and held", r)
			}
			if r.Holder != tt.want.Holder || r.TTL != tt.want.TTL || r.Epoch != tt.want.Epoch || len(r.History) != tt.past ||
				!r.AcquiredAt.Equal(tt.want.AcquiredAt) || !r.RenewedAt.Equal(tt.want.RenewedAt) {
				t.Errorf("%+v, want %+v", r, tt.want)
			}
		})
	}
}

func TestEpochAndTTLBeyondWhatALeaseKeeps(t *testing.T) {
	for name, tt := range map[string]struct {
		epoch       int64
		ttl         time.Duration
		transitions float64
		seconds     float64
	}{
		"an epoch of more than 31 bits": {coordinator.MaxEpoch, time.Second, 1<<31 - 1, 1},
		"a ttl below a second":          {1, 300 * time.Millisecond, 1, 1},
		"a ttl just above":              {1, 3*time.Second + time.Nanosecond, 1, 4},
		"no ttl":                        {0, 0, 0, 1},
	} {
		t.Run(name, func(t *testing.T) {
			r := record("w1")
			r.Epoch, r.TTL = tt.epoch, tt.ttl
			o := put(object(t, r, "1"), "spec.leaseTransitions", tt.transitions)
			s, srv := scripted(t, is(t, 201, o), is(t, 200, o))
			if _, err := s.Create(t.Context(), r); err != nil {
				t.Fatal(err)
			}
			sent := body(t, srv.Requests()[0])
			if at(sent, "spec.leaseTransitions") != tt.transitions || at(sent, "spec.leaseDurationSeconds") != tt.seconds {
				t.Errorf("sent %v", sent["spec"])
			}
			if l, err := s.Read(t.Context()); err != nil || l.Record.Epoch != tt.epoch {
				t.Errorf("epoch %d, %v", l.Record.Epoch, err)
			}
		})
	}
}
