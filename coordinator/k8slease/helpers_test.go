package k8slease_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sf2loki/sf2loki-ha/cas"
	"github.com/sf2loki/sf2loki-ha/coordinator"
	"github.com/sf2loki/sf2loki-ha/coordinator/k8slease"
	table "github.com/sf2loki/sf2loki-ha/internal/answers"
	"github.com/sf2loki/sf2loki-ha/internal/wiretest"
)

const path = table.KubeLeases

// kubeconfig writes a file for one server and returns its path.
func kubeconfig(t *testing.T, server, user string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "kubeconfig")
	text := fmt.Sprintf(`{apiVersion: v1, kind: Config, current-context: c,
clusters: [{name: c, cluster: {server: %q}}], users: [{name: u, user: %s}],
contexts: [{name: c, context: {cluster: c, user: u}}]}`, server, user)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// scripted opens a store on a server that gives these answers.
func scripted(t *testing.T, script ...wiretest.Answer) (*k8slease.Store, *wiretest.Server) {
	t.Helper()
	srv := wiretest.Start(t, script...)
	s, err := k8slease.Open(t.Context(), k8slease.Config{Namespace: "logs", Name: "leader", Kubeconfig: kubeconfig(t, srv.URL(), "{token: hunter2}")})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s, srv
}

var wall = table.Wall

// record is a held record with that write id.
func record(writeID string) coordinator.Record {
	r := table.Record(writeID)
	r.Lease = "k8s://logs/leader"
	return r
}

const asJSON = "Content-Type: application/json"

// object is the Lease that holds r, as an API server shows it.
func object(t *testing.T, r coordinator.Record, resourceVersion string) map[string]any {
	t.Helper()
	return table.KubeLease(r, resourceVersion)
}

// is answers with an object.
func is(t *testing.T, code int, o map[string]any) wiretest.Answer {
	t.Helper()
	return table.KubeObject(code, o)
}

// status answers with an error of Kubernetes. about is "resource/name".
var status = table.KubeStatus

// version is what a store makes of an object.
func version(t *testing.T, o map[string]any) cas.Version {
	t.Helper()
	s, _ := scripted(t, is(t, 200, o))
	l, err := s.Read(t.Context())
	if err != nil || l.Version == "" {
		t.Fatalf("version %q, %v", l.Version, err)
	}
	return l.Version
}

// refused checks class and contents of an error.
func refused(t *testing.T, err error, class cas.Class, op string) *cas.Error {
	t.Helper()
	var e *cas.Error
	if !errors.As(err, &e) || e.Class != class || e.Op != op || e.Object != "k8s://logs/leader" {
		t.Fatalf("%v; want %s of %s", err, class, op)
	}
	if strings.Contains(err.Error(), "hunter2") || strings.Contains(err.Error(), "/apis/") {
		t.Errorf("an error with a credential or URL: %v", err)
	}
	return e
}

// methods are the requests as they arrived.
func methods(srv *wiretest.Server) string {
	var out []string
	for _, r := range srv.Requests() {
		out = append(out, r.Method)
	}
	return strings.Join(out, " ")
}

// sentVersion is the resourceVersion of a request's body.
func sentVersion(t *testing.T, r wiretest.Request) string {
	t.Helper()
	var o struct {
		Metadata struct {
			ResourceVersion string `json:"resourceVersion"`
			UID             string `json:"uid"`
		} `json:"metadata"`
	}
	if err := json.Unmarshal(r.Body, &o); err != nil {
		t.Fatal(err)
	}
	if r.Method == http.MethodPut && o.Metadata.UID != "uid-1" {
		t.Errorf("an update with uid %q could create the lease anew", o.Metadata.UID)
	}
	return o.Metadata.ResourceVersion
}

func hinted(t *testing.T, e *cas.Error, want string) {
	t.Helper()
	if !strings.Contains(e.Hint, want) || want == "" && e.Hint != "" {
		t.Errorf("hint %q, want %q", e.Hint, want)
	}
}

func attempts(t *testing.T, srv *wiretest.Server, want int) {
	t.Helper()
	if n := srv.Attempts(); n != want {
		t.Errorf("%d attempts (%s), want %d", n, methods(srv), want)
	}
}

// put returns a deep copy of o with the field at the dotted path set, or
// removed where the value is nil.
func put(o map[string]any, path string, v any) map[string]any {
	b, _ := json.Marshal(o)
	var out map[string]any
	in := json.NewDecoder(bytes.NewReader(b))
	in.UseNumber()
	_ = in.Decode(&out)
	at, keys := out, strings.Split(path, ".")
	for _, k := range keys[:len(keys)-1] {
		next, ok := at[k].(map[string]any)
		if !ok {
			next = map[string]any{}
			at[k] = next
		}
		at = next
	}
	if v == nil {
		delete(at, keys[len(keys)-1])
	} else {
		at[keys[len(keys)-1]] = v
	}
	return out
}
