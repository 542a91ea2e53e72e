package replica

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/johannesboyne/gofakes3"
	"github.com/johannesboyne/gofakes3/backend/s3mem"

	"github.com/sf2loki/sf2loki-ha/cas"
	"github.com/sf2loki/sf2loki-ha/internal/config"
	"github.com/sf2loki/sf2loki-ha/internal/server"
)

// endpoint is a store in memory behind a handler that may change requests.
func endpoint(t *testing.T, change func(*http.Request)) string {
	t.Helper()
	backend := s3mem.New()
	if err := backend.CreateBucket("b-1"); err != nil {
		t.Fatal(err)
	}
	store := gofakes3.New(backend).Server()
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		change(r)
		store.ServeHTTP(w, r)
	}))
	t.Cleanup(srv.Close)
	return srv.URL
}

func on(url string) string {
	return strings.ReplaceAll(strings.ReplaceAll(onS3, "http://127.0.0.1:1", url), "ADDR", "127.0.0.1:0")
}

func TestAStoreWithAFaultEndsTheRunAsASetupError(t *testing.T) {
	r, err := New(t.Context(), options(t, on(endpoint(t, func(r *http.Request) {
		r.Header.Del("If-None-Match")
		r.Header.Del("If-Match")
	}))))
	if err != nil {
		t.Fatal(err)
	}
	var setup *SetupError
	err = r.Run(t.Context())
	if !errors.As(err, &setup) || cas.ClassOf(err) != cas.Unsupported || !strings.Contains(err.Error(), string(cas.FaultNotEnforced)) {
		t.Errorf("%v", err)
	}
	if r.admitted() {
		t.Error("admitted")
	}
}

func TestAStandbyIsReadyForCandidacyOnceTheProbeHasPassed(t *testing.T) {
	for name, yaml := range map[string]string{
		"s3":   on(endpoint(t, func(*http.Request) {})),
		"file": "coordinate: {type: file_lease, file_lease: {path: " + filepath.Join(t.TempDir(), "a", "leader.lease") + "}}\nstate: {store: none}\nservice: {health_addr: \"127.0.0.1:0\"}\n",
	} {
		t.Run(name, func(t *testing.T) {
			r, err := New(t.Context(), options(t, yaml))
			if err != nil {
				t.Fatal(err)
			}
			if r.admitted() || r.readiness().Reason != server.NotReady {
				t.Error("admitted before a probe")
			}
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
			defer cancel()
			ended := make(chan error, 1)
			go func() { ended <- r.Run(ctx) }()
			tick := time.NewTicker(5 * time.Millisecond)
			defer tick.Stop()
			for !r.admitted() && ctx.Err() == nil {
				<-tick.C
			}
			if !r.admitted() {
				t.Error("not admitted")
			}
			cancel()
			if err := <-ended; err != nil {
				t.Error(err)
			}
		})
	}
}

func TestWithoutAStoreOfOurOwnKindThereIsNothingToProbe(t *testing.T) {
	if open, _ := leaseBucket(config.Coordinate{Type: config.TypeK8sLease}); open != nil {
		t.Error("k8s_lease has a bucket")
	}
	for name, yaml := range map[string]string{
		"noop":    "coordinate: {type: noop}\nstate: {store: none}\n",
		"skipped": strings.Replace(on("http://127.0.0.1:1"), "coordinate: {", "coordinate: {unsafe_skip_store_probe: true, ", 1),
	} {
		r, err := New(t.Context(), options(t, yaml))
		if err != nil {
			t.Fatal(err)
		}
		if r.probe != nil || !r.admitted() {
			t.Errorf("%s: probes", name)
		}
		if err := r.clients.Close(); err != nil {
			t.Error(err)
		}
	}
}
