package faultproxy

import (
	"bytes"
	"context"
	"net/http"
	"testing"
	"time"

	"github.com/sf2loki/sf2loki-ha/cas"
	"github.com/sf2loki/sf2loki-ha/cas/gcs"
	"github.com/sf2loki/sf2loki-ha/cas/s3"
	"github.com/sf2loki/sf2loki-ha/internal/testservers"
)

// store is a real store behind a proxy, through the client that replicas use.
type store struct {
	*Proxy
	direct func(key string) cas.Register
	behind func(replica, key string) cas.Register
}

type bucket interface {
	Register(name string) cas.Register
	Close() error
}

func realStores(t *testing.T) map[string]func(*testing.T, Config) store {
	return map[string]func(*testing.T, Config) store{"versitygw": versity, "fake-gcs-server": fakeGCS}
}

func versity(t *testing.T, cfg Config) store {
	srv := testservers.StartS3(t)
	srv.Setenv(t)
	cfg.Store, cfg.Service = srv.Endpoint, S3
	return behind(t, cfg, func(ctx context.Context, endpoint string) (bucket, error) {
		return s3.Open(ctx, s3.Config{Bucket: srv.Bucket, Region: srv.Region, EndpointURL: endpoint})
	})
}

func fakeGCS(t *testing.T, cfg Config) store {
	srv := testservers.StartGCS(t)
	cfg.Store, cfg.Service = srv.Endpoint, GCS
	return behind(t, cfg, func(ctx context.Context, endpoint string) (bucket, error) {
		return gcs.Open(ctx, gcs.Config{Bucket: srv.Bucket, EndpointURL: endpoint})
	})
}

func behind(t *testing.T, cfg Config, dial func(context.Context, string) (bucket, error)) store {
	s := store{Proxy: open(t, cfg)}
	to := func(endpoint string) bucket {
		b, err := dial(t.Context(), endpoint)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = b.Close() })
		return b
	}
	s.direct = to(cfg.Store).Register
	s.behind = func(replica, key string) cas.Register {
		door, err := s.Door(replica)
		if err != nil {
			t.Fatal(err)
		}
		return to(door).Register(key)
	}
	return s
}

// oddKey is one that a signature covers in an escaped form.
const oddKey = "leases/ü ~+&=(1)/of A.lease"

func TestRealClientsWorkThroughTheProxy(t *testing.T) {
	for name, start := range realStores(t) {
		t.Run(name, func(t *testing.T) {
			s := start(t, Config{})
			r := s.behind("A", oddKey)
			large := bytes.Repeat([]byte("0123456789"), cas.MaxSize/10)
			if _, err := r.Load(t.Context()); cas.ClassOf(err) != cas.NotFound {
				t.Fatalf("load before: %v", err)
			}
			v1, err := r.Create(t.Context(), []byte(`{"holder":"A","epoch":3,"term":"t"}`))
			if err != nil {
				t.Fatal(err)
			}
			if _, err := r.Create(t.Context(), []byte("x")); cas.ClassOf(err) != cas.Conflict {
				t.Errorf("second create: %v", err)
			}
			v2, err := r.Replace(t.Context(), large, v1)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := r.Replace(t.Context(), []byte("x"), v1); cas.ClassOf(err) != cas.Conflict {
				t.Errorf("replace on an old version: %v", err)
			}
			got, err := r.Load(t.Context())
			if err != nil || !bytes.Equal(got.Data, large) || got.Version != v2 {
				t.Fatalf("%d bytes, version %s, %v", len(got.Data), got.Version, err)
			}
			var ops []Op
			all := s.Exchanges()
			for _, x := range all {
				if x.Op == Load || x.Op.Writes() {
					ops = append(ops, x.Op)
					if x.Key != oddKey || x.Told == 0 || x.Fault != "" {
						t.Errorf("%+v", x)
					}
				}
			}
			if want := []Op{Load, Create, Create, Replace, Replace, Load}; len(ops) != len(want) {
				t.Fatalf("operations %v, want %v", ops, want)
			}
			byOp := map[Op][]Exchange{}
			for _, x := range all {
				byOp[x.Op] = append(byOp[x.Op], x)
			}
			created, refused := byOp[Create][0], byOp[Create][1]
			if created.Condition != Absent || created.Applied != Yes || created.Document == nil || created.Document.Epoch != 3 {
				t.Errorf("create: %+v", created)
			}
			if refused.Applied != No || refused.Status != http.StatusPreconditionFailed {
				t.Errorf("second create: %+v", refused)
			}
			replaced, stale := byOp[Replace][0], byOp[Replace][1]
			if created.Version == "" || replaced.Condition != created.Version || replaced.Applied != Yes || stale.Applied != No || stale.Condition != created.Version {
				t.Errorf("replace: %+v\nstale: %+v", replaced, stale)
			}
			if before, after := byOp[Load][0], byOp[Load][1]; before.Version != Absent || after.Version != replaced.Version || replaced.Version == "" {
				t.Errorf("load: %+v, %+v", before, after)
			}
		})
	}
}

func TestAFaultInFrontOfARealStore(t *testing.T) {
	for name, start := range realStores(t) {
		t.Run(name, func(t *testing.T) {
			s := start(t, Config{})
			r, direct := s.behind("A", "k"), s.direct("k")
			v, err := r.Create(t.Context(), []byte("0"))
			if err != nil {
				t.Fatal(err)
			}
			for _, tt := range []struct {
				data  string
				fault Fault
				class cas.Class
				lands bool
			}{
				{"lost request", Fault{LoseRequest: Reset}, cas.Ambiguous, false},
				{"lost answer", Fault{LoseAnswer: Reset}, cas.Ambiguous, true},
				{"silent answer", Fault{LoseAnswer: Silence}, cas.Ambiguous, true},
				{"late request", Fault{LateRequest: 700 * time.Millisecond}, cas.Ambiguous, true},
				{"slow down", Fault{Refuse: 429}, cas.Contended, false},
				{"unavailable", Fault{Refuse: 503}, cas.Ambiguous, false},
				{"denied", Fault{Refuse: 403}, cas.Denied, false},
			} {
				s.Add(Rule{Op: Replace, Key: "k", Times: 1, Fault: tt.fault})
				ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
				_, err := r.Replace(ctx, []byte(tt.data), v)
				cancel()
				if cas.ClassOf(err) != tt.class {
					t.Errorf("%s: %v", tt.data, err)
				}
				if tt.fault.LateRequest > 0 {
					time.Sleep(400 * time.Millisecond) // it arrives
				}
				now, err := direct.Load(t.Context())
				if err != nil || (string(now.Data) == tt.data) != tt.lands {
					t.Errorf("%s: the store has %q, %v", tt.data, now.Data, err)
				}
				v = now.Version
				s.Calm()
			}
			// A replay of what was applied is refused by its condition.
			s.Add(Rule{Op: Replace, Fault: Fault{Replay: time.Millisecond}})
			if _, err := r.Replace(t.Context(), []byte("once"), v); err != nil {
				t.Fatal(err)
			}
			rig{Proxy: s.Proxy, t: t}.last(func(x Exchange) bool { return x.Of != 0 && x.Applied == No && x.Status == 412 })
		})
	}
}

func TestTheLimitOfGCSIsAContendedAnswer(t *testing.T) {
	s := fakeGCS(t, Config{WritesPerSecond: 1})
	r := s.behind("A", "k")
	v, err := r.Create(t.Context(), []byte("0"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.Replace(t.Context(), []byte("1"), v); cas.ClassOf(err) != cas.Contended {
		t.Errorf("a second write at once: %v", err)
	}
	time.Sleep(time.Second)
	if _, err := r.Replace(t.Context(), []byte("1"), v); err != nil {
		t.Errorf("a second later: %v", err)
	}
}
