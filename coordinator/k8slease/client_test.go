package k8slease_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sf2loki/sf2loki-ha/cas"
	"github.com/sf2loki/sf2loki-ha/coordinator/k8slease"
	"github.com/sf2loki/sf2loki-ha/internal/wiretest"
)

func TestTheEnvironmentDoesNotSwitchRetriesOrBackoffOn(t *testing.T) {
	t.Setenv("KUBE_CLIENT_BACKOFF_BASE", "1")
	t.Setenv("KUBE_CLIENT_BACKOFF_DURATION", "60")
	s, srv := scripted(t, status(503, "ServiceUnavailable", "", "Retry-After: 1"), status(503, "ServiceUnavailable", ""), is(t, 200, object(t, record("w1"), "1")))
	begun := time.Now()
	for range 2 {
		_, err := s.Read(t.Context())
		refused(t, err, cas.Ambiguous, "read")
	}
	if _, err := s.Read(t.Context()); err != nil {
		t.Fatal(err)
	}
	attempts(t, srv, 3)
	if took := time.Since(begun); took > 900*time.Millisecond {
		t.Errorf("three requests took %v: something waited", took)
	}
}

func TestALongBurstIsNotThrottledByTheClient(t *testing.T) {
	const calls = 60 // the library's own limiter lets 10 through at once, then 5 a second
	script := make([]wiretest.Answer, calls)
	for i := range script {
		script[i] = is(t, 200, object(t, record("w1"), "1"))
	}
	s, _ := scripted(t, script...)
	begun := time.Now()
	for range calls {
		if _, err := s.Read(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if took := time.Since(begun); took > 5*time.Second {
		t.Errorf("%d reads took %v", calls, took)
	}
}

// A credential plugin is run without the context of the call.
func TestAHangingCredentialPluginDoesNotHoldACall(t *testing.T) {
	srv := wiretest.Start(t)
	dir := t.TempDir()
	plugin := filepath.Join(dir, "plugin")
	if err := os.WriteFile(plugin, []byte("#!/bin/sh\nexec sleep 2\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	user := `{exec: {apiVersion: client.authentication.k8s.io/v1, interactiveMode: Never, command: ` + plugin + `}}`
	s, err := k8slease.Open(t.Context(), k8slease.Config{Namespace: "logs", Name: "leader", Kubeconfig: kubeconfig(t, strings.Replace(srv.URL(), "http:", "https:", 1), user)}) // credentials go out over TLS only
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	begun := time.Now()
	_, err = s.Read(ctx)
	refused(t, err, cas.Ambiguous, "read")
	if took := time.Since(begun); took > time.Second {
		t.Errorf("returned after %v", took)
	}
}

func TestOpenSaysWhatIsWrongWithTheConfiguration(t *testing.T) {
	t.Setenv("KUBERNETES_SERVICE_HOST", "")
	t.Setenv("KUBECONFIG", kubeconfig(t, "http://127.0.0.1:1", "{}")) // not looked at
	broken := filepath.Join(t.TempDir(), "broken")
	if err := os.WriteFile(broken, []byte("clusters: 5"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct {
		cfg  k8slease.Config
		want string
	}{
		"outside a cluster":   {k8slease.Config{Namespace: "logs", Name: "leader"}, "does not run in a Kubernetes pod; name a kubeconfig"},
		"no such file":        {k8slease.Config{Namespace: "logs", Name: "leader", Kubeconfig: "/no/such"}, "kubeconfig /no/such"},
		"not a kubeconfig":    {k8slease.Config{Namespace: "logs", Name: "leader", Kubeconfig: broken}, "kubeconfig " + broken},
		"no namespace":        {k8slease.Config{Name: "leader"}, "namespace:"},
		"no name":             {k8slease.Config{Namespace: "logs"}, "name:"},
		"a name with a slash": {k8slease.Config{Namespace: "logs", Name: "a/b"}, "name:"},
		"a negative timeout":  {k8slease.Config{Namespace: "logs", Name: "leader", Timeout: -1}, "timeout: -1ns"},
	} {
		t.Run(name, func(t *testing.T) {
			s, err := k8slease.Open(t.Context(), tt.cfg)
			if err == nil || s != nil || !strings.Contains(err.Error(), tt.want) || !strings.HasPrefix(err.Error(), "open lease k8s://") {
				t.Errorf("%v, want %q", err, tt.want)
			}
		})
	}
	t.Run("no ServiceAccount in the pod", func(t *testing.T) {
		t.Setenv("KUBERNETES_SERVICE_HOST", "127.0.0.1")
		t.Setenv("KUBERNETES_SERVICE_PORT", "1")
		if _, err := k8slease.Open(t.Context(), k8slease.Config{Namespace: "logs", Name: "leader"}); err == nil || !strings.Contains(err.Error(), "automountServiceAccountToken") {
			t.Error(err)
		}
	})
}

func TestAClosedStoreSendsNothing(t *testing.T) {
	s, srv := scripted(t)
	if err := errors.Join(s.Close(), s.Close()); err != nil {
		t.Fatal(err)
	}
	_, err := s.Read(t.Context())
	refused(t, err, cas.Ambiguous, "read")
	attempts(t, srv, 0)
	if s.Describe() != "k8s://logs/leader" {
		t.Error(s.Describe())
	}
}

func TestASilentConnectionDoesNotOutliveItsCall(t *testing.T) {
	o, err := json.Marshal(object(t, record("w1"), "1"))
	if err != nil {
		t.Fatal(err)
	}
	var calls, connections atomic.Int32
	silent := make(chan struct{})
	srv := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.ProtoMajor != 1 || r.Header.Get("Authorization") != "Bearer hunter2" {
			t.Errorf("%s, Authorization %q", r.Proto, r.Header.Get("Authorization"))
		}
		if calls.Add(1) == 1 {
			<-silent
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(o)
	}))
	srv.Config.ConnState = func(_ net.Conn, s http.ConnState) {
		if s == http.StateNew {
			connections.Add(1)
		}
	}
	srv.EnableHTTP2 = true // as an API server does
	srv.StartTLS()
	defer srv.Close()
	defer close(silent)
	ca := base64.StdEncoding.EncodeToString(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: srv.Certificate().Raw}))
	config := filepath.Join(t.TempDir(), "kubeconfig")
	text := `{apiVersion: v1, kind: Config, current-context: c, clusters: [{name: c, cluster: {server: "` + srv.URL + `", certificate-authority-data: ` + ca + `}}],
users: [{name: u, user: {token: hunter2}}], contexts: [{name: c, context: {cluster: c, user: u}}]}`
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	s, err := k8slease.Open(t.Context(), k8slease.Config{Namespace: "logs", Name: "leader", Kubeconfig: config})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	_, err = s.Read(ctx)
	refused(t, err, cas.Ambiguous, "read")
	for range 2 {
		if _, err := s.Read(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if n := connections.Load(); n != 2 {
		t.Errorf("%d connections for a silent call and two good ones, want a fresh one after the first", n)
	}
}
