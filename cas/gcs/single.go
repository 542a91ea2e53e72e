package gcs

import (
	"context"
	"errors"
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/sf2loki/sf2loki-ha/cas/internal/wire"
)

// single lets one request through for each attempt. The library has three ways
// to send more than one, each with its own switch; a second request would hide
// the fate of the first.
type single struct{ base http.RoundTripper }

var errSecondRequest = errors.New("the client library wanted to send a second request")

// attempt is one request to be sent.
type attempt struct {
	mu   sync.Mutex
	sent bool
	cut  error // why the body of the answer ended early
	code int   // status of the answer, or 0

	date, modified time.Time // see wire.TakeTimes
}

type attemptKey struct{}

// newAttempt returns a context in which one request may be sent.
func newAttempt(ctx context.Context) (context.Context, *attempt) {
	a := &attempt{}
	return context.WithValue(ctx, attemptKey{}, a), a
}

func (t *single) RoundTrip(req *http.Request) (*http.Response, error) {
	a, _ := req.Context().Value(attemptKey{}).(*attempt)
	if a == nil || !a.begin() {
		if req.Body != nil {
			_ = req.Body.Close()
		}
		return nil, errSecondRequest
	}
	resp, err := t.base.RoundTrip(req)
	if resp != nil {
		a.answered(resp)
		if resp.Body != nil {
			resp.Body = &body{ReadCloser: resp.Body, attempt: a}
		}
	}
	return resp, err
}

func (a *attempt) begin() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	first := !a.sent
	a.sent = true
	return first
}

func (a *attempt) answered(resp *http.Response) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.code = resp.StatusCode
	a.date, a.modified = wire.TakeTimes(resp.Header)
}

// status is the status of the answer, or 0.
func (a *attempt) status() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.code
}

// times are the service's clock and when it wrote the object, as far as the answer
// said.
func (a *attempt) times() (date, modified time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.date, a.modified
}

// truncated is the error that ended the body early, or nil.
func (a *attempt) truncated() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.cut
}

// body remembers a failed read: the library replaces it by the error of its
// attempt to go on.
type body struct {
	io.ReadCloser
	attempt *attempt
}

func (b *body) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err != nil && err != io.EOF {
		b.attempt.mu.Lock()
		if b.attempt.cut == nil {
			b.attempt.cut = err
		}
		b.attempt.mu.Unlock()
	}
	return n, err
}
