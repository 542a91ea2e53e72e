package replica

import (
	"context"
	"errors"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sf2loki/sf2loki-ha/cas"
	"github.com/sf2loki/sf2loki-ha/coordinator"
	"github.com/sf2loki/sf2loki-ha/internal/telemetry"
)

const onKubernetes = `
coordinate: {type: k8s_lease, k8s_lease: {namespace: logs, name: leader, kubeconfig: "FILE"}}
state: {store: none}
service: {health_addr: "127.0.0.1:0"}
`

func TestAKubernetesLeaseIsOpenedAndClosedLikeABucket(t *testing.T) {
	file := filepath.Join(t.TempDir(), "kubeconfig")
	text := `{apiVersion: v1, kind: Config, current-context: c, clusters: [{name: c, cluster: {server: "http://127.0.0.1:1"}}], contexts: [{name: c, context: {cluster: c}}]}`
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	r, err := New(t.Context(), options(t, strings.ReplaceAll(onKubernetes, "FILE", file)))
	if err != nil {
		t.Fatal(err)
	}
	if _, ok := r.coord.(*coordinator.Elector); !ok || len(r.clients.open) != 1 {
		t.Errorf("coordinator %T, %d clients", r.coord, len(r.clients.open))
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := r.Run(ctx); err != nil || len(r.clients.open) != 0 {
		t.Errorf("%v, %d clients left open", err, len(r.clients.open))
	}
}

func TestAKubernetesLeaseOutsideAClusterIsASetupErrorWithAHint(t *testing.T) {
	t.Setenv("KUBERNETES_SERVICE_HOST", "")
	var setup *SetupError
	_, err := New(t.Context(), options(t, strings.ReplaceAll(onKubernetes, "FILE", "")))
	if !errors.As(err, &setup) || !strings.Contains(err.Error(), "coordinate.k8s_lease.kubeconfig") {
		t.Errorf("%v", err)
	}
}

// answering is a lease store that gives one answer.
type answering struct{ err error }

func (a answering) Read(context.Context) (coordinator.Lease, error) {
	return coordinator.Lease{}, a.err
}
func (a answering) Create(context.Context, coordinator.Record) (cas.Version, error) {
	return "v", a.err
}
func (a answering) Replace(context.Context, coordinator.Record, cas.Version) (cas.Version, error) {
	return "v", a.err
}
func (a answering) Describe() string { return "x" }

func TestRequestsOfAKubernetesLeaseAreCountedLikeThoseOfABucket(t *testing.T) {
	metrics := telemetry.New("test", func() telemetry.State { return telemetry.State{} })
	for _, err := range []error{nil, cas.Conflict, cas.Ambiguous, cas.Contended} {
		l := countedLease{answering{err}, metrics}
		_, read := l.Read(t.Context())
		_, create := l.Create(t.Context(), coordinator.Record{})
		_, replace := l.Replace(t.Context(), coordinator.Record{}, "v")
		if read != err || create != err || replace != err {
			t.Errorf("%v, %v, %v; want %v handed through", read, create, replace, err)
		}
	}
	out := httptest.NewRecorder()
	metrics.Handler().ServeHTTP(out, httptest.NewRequest("GET", "/metrics", nil))
	for _, want := range []string{
		`sf2loki_ha_store_requests_total{class="ok",op="load"} 1`, `sf2loki_ha_store_requests_total{class="conflict",op="replace"} 1`,
		`sf2loki_ha_store_requests_total{class="ambiguous",op="create"} 1`, `sf2loki_ha_store_requests_total{class="contended",op="replace"} 1`,
		"sf2loki_ha_ambiguous_writes_total 4", `sf2loki_ha_store_request_seconds_count{op="load"} 4`,
	} {
		if !strings.Contains(out.Body.String(), want+"\n") {
			t.Errorf("lacks %s", want)
		}
	}
}
