package gcs

import (
	"context"
	"net/http"
	"sync"

	"cloud.google.com/go/auth"
)

// authenticate puts a token on each request. The library's own transport would do
// it too, but looks for credentials when the client is made, once, and gives no
// way to tell "no token" from "no answer".
type authenticate struct {
	base   http.RoundTripper
	detect func() (*auth.Credentials, error)

	mu      sync.Mutex
	creds   *auth.Credentials // caches its token and renews it early
	project string            // that pays for quota, with user credentials
}

func (t *authenticate) RoundTrip(req *http.Request) (*http.Response, error) {
	token, project, err := t.token(req.Context())
	if err != nil {
		if req.Body != nil {
			_ = req.Body.Close()
		}
		return nil, &credentialError{err}
	}
	kind := token.Type
	if kind == "" {
		kind = "Bearer"
	}
	req = req.Clone(req.Context())
	req.Header.Set("Authorization", kind+" "+token.Value)
	if project != "" {
		req.Header.Set("X-Goog-User-Project", project)
	}
	return t.base.RoundTrip(req)
}

func (t *authenticate) token(ctx context.Context) (*auth.Token, string, error) {
	creds, project, err := t.credentials(ctx)
	if err != nil {
		return nil, "", err
	}
	token, err := creds.Token(ctx)
	return token, project, err
}

// credentials looks for credentials until it has found some: a metadata server
// that comes up late is found by a later call.
func (t *authenticate) credentials(ctx context.Context) (*auth.Credentials, string, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.creds == nil {
		creds, err := t.detect()
		if err != nil {
			return nil, "", err
		}
		project, err := creds.QuotaProjectID(ctx)
		if err != nil {
			return nil, "", err
		}
		t.creds, t.project = creds, project
	}
	return t.creds, t.project, nil
}

// credentialError says that the request was not sent.
type credentialError struct{ err error }

func (e *credentialError) Error() string { return "no Google credentials: " + e.err.Error() }
func (e *credentialError) Unwrap() error { return e.err }
