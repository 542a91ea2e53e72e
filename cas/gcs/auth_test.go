package gcs_test

import (
	"context"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/sf2loki/sf2loki-ha/cas"
	"github.com/sf2loki/sf2loki-ha/cas/gcs"
	"github.com/sf2loki/sf2loki-ha/internal/wiretest"
)

// serviceFile writes a service account whose tokens come from tokenURL.
func serviceFile(t *testing.T, tokenURL string) string {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	b, err := json.Marshal(map[string]string{
		"type": "service_account", "project_id": "p", "private_key_id": "1", "client_email": "sa@p.example",
		"private_key": string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})),
		"token_uri":   tokenURL,
	})
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "sa.json")
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestServiceFileAuthenticatesEachRequestWithOneToken(t *testing.T) {
	isolate(t)
	tokens := wiretest.Start(t, wiretest.Respond(200, `{"access_token":"tok-hunter2","token_type":"Bearer","expires_in":3600}`, "Content-Type: application/json"))
	srv := wiretest.Start(t, stored, bare(403))
	r := open(t, gcs.Config{Bucket: "bkt", EndpointURL: srv.URL(), ServiceFile: serviceFile(t, tokens.URL()+"/token")}).Register(name)
	if _, err := r.Create(t.Context(), []byte(doc)); err != nil {
		t.Fatal(err)
	}
	_, err := r.Load(t.Context())
	checkClass(t, err, cas.Denied, "load", r)
	for _, req := range srv.Requests() {
		if got := req.Header.Get("Authorization"); got != "Bearer tok-hunter2" {
			t.Errorf("Authorization: %q", got)
		}
	}
	if n := tokens.Attempts(); n != 1 {
		t.Errorf("%d tokens were fetched, want 1", n)
	}
}

func TestRefusedTokenIsDeniedAndNothingIsSent(t *testing.T) {
	isolate(t)
	for _, op := range ops {
		t.Run(op.name, func(t *testing.T) {
			tokens := wiretest.Start(t, wiretest.Respond(400, `{"error":"invalid_grant","error_description":"account not found"}`, "Content-Type: application/json"))
			srv := wiretest.Start(t)
			r := open(t, gcs.Config{Bucket: "bkt", EndpointURL: srv.URL(), ServiceFile: serviceFile(t, tokens.URL()+"/token")}).Register(name)
			_, err := op.run(t.Context(), r)
			if e := checkClass(t, err, cas.Denied, op.name, r); !strings.Contains(e.Hint, "service_file") {
				t.Errorf("hint %q", e.Hint)
			}
		})
	}
}

func TestSlowTokenServiceIsNoRefusal(t *testing.T) {
	isolate(t)
	tokens := wiretest.Start(t, wiretest.Hang())
	srv := wiretest.Start(t)
	r := open(t, gcs.Config{Bucket: "bkt", EndpointURL: srv.URL(), ServiceFile: serviceFile(t, tokens.URL()+"/token")}).Register(name)
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	_, err := r.Load(ctx)
	checkClass(t, err, cas.Ambiguous, "load", r)
}

func TestMissingDefaultCredentialsAreDeniedAndNothingIsSent(t *testing.T) {
	isolate(t)
	t.Setenv("GOOGLE_APPLICATION_CREDENTIALS", filepath.Join(t.TempDir(), "none"))
	client := &http.Client{Transport: transport(func(*http.Request) (*http.Response, error) {
		t.Error("a request was sent")
		return nil, errors.New("no network in tests")
	})}
	r := open(t, gcs.Config{Bucket: "bkt", HTTPClient: client}).Register(name)
	_, err := r.Load(t.Context())
	checkClass(t, err, cas.Denied, "load", r)
}

func TestGoogleItselfIsTheDefault(t *testing.T) {
	isolate(t)
	tokens := wiretest.Start(t, wiretest.Respond(200, `{"access_token":"tok","token_type":"Bearer","expires_in":3600}`, "Content-Type: application/json"))
	t.Setenv("GOOGLE_APPLICATION_CREDENTIALS", serviceFile(t, tokens.URL()+"/token"))
	var got []*http.Request
	client := &http.Client{Transport: transport(func(r *http.Request) (*http.Response, error) {
		got = append(got, r)
		return nil, errors.New("no network in tests")
	})}
	r := open(t, gcs.Config{Bucket: "bkt", HTTPClient: client}).Register(name)
	_, err := r.Create(t.Context(), []byte(doc))
	class(t, "create", err, cas.Ambiguous)
	if len(got) != 1 || got[0].URL.Host != "storage.googleapis.com" || got[0].URL.Scheme != "https" || got[0].Header.Get("Authorization") != "Bearer tok" {
		t.Fatalf("requests: %v", got)
	}
}
