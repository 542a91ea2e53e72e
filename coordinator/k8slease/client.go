package k8slease

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/klog/v2"
)

// answer is what one request brought.
type answer struct {
	// code is the HTTP status, or 0 where there was no answer.
	code int
	body []byte
	// date is the server's clock; zero if the answer does not show it.
	date time.Time
	// status is Kubernetes' own error object; nil where the body was none: a
	// proxy, a wrong server, a cut answer.
	status *metav1.Status
	// err is why there is no usable answer, or nil.
	err error
}

func (a answer) success() bool {
	return a.err == nil && (a.code == http.StatusOK || a.code == http.StatusCreated)
}

// says reports whether Kubernetes itself gave that reason.
func (a answer) says(reason metav1.StatusReason) bool {
	return a.status != nil && a.status.Reason == reason
}

// about reports whether Kubernetes' error is about that kind of object.
func (a answer) about(resource string) bool {
	return a.status != nil && a.status.Details != nil && a.status.Details.Kind == resource
}

// send sends exactly one request. The bytes go past the library's typed objects,
// which would drop every field they do not know.
func (s *Store) send(ctx context.Context, method string, body []byte) answer {
	return s.sendAs(ctx, method, body, "")
}

// sendAs sends it for a field manager other than the one that Kubernetes makes of
// the user agent.
func (s *Store) sendAs(ctx context.Context, method string, body []byte, manager string) answer {
	req := s.api.Verb(method).Namespace(s.namespace).Resource("leases").
		// Ten by default, after any answer with Retry-After and any dead connection.
		// Backoff (KUBE_CLIENT_BACKOFF_BASE) is the library's only between those.
		MaxRetries(0)
	if method != http.MethodPost {
		req = req.Name(s.name)
	}
	if body != nil {
		req = req.SetHeader("Content-Type", runtime.ContentTypeJSON).Body(body)
	}
	if manager != "" {
		req = req.Param("fieldManager", manager)
	}
	var a answer
	ctx = context.WithValue(ctx, dateKey{}, &a.date)
	// The library's own log lines have neither our format nor our keys.
	result := req.Do(klog.NewContext(ctx, klog.Logger{})) // a zero Logger is silent
	result.StatusCode(&a.code)
	a.body, a.err = result.Raw()
	if a.err == nil {
		return a
	}
	// An answer that is not success: the library's error is made up from the
	// HTTP status; what the server said is in the body.
	var api apierrors.APIStatus
	if !errors.As(a.err, &api) {
		return a // no answer
	}
	if a.code == 0 {
		a.code = int(api.Status().Code)
	}
	var st metav1.Status
	if json.Unmarshal(a.body, &st) == nil && st.Kind == "Status" && st.Status == metav1.StatusFailure {
		a.status = &st
	}
	return a
}

// dated notes the Date of each answer, which the library keeps to itself.
type dated struct{ base http.RoundTripper }

type dateKey struct{}

func (d dated) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := d.base.RoundTrip(req)
	if at, ok := req.Context().Value(dateKey{}).(*time.Time); ok && resp != nil {
		*at, _ = time.Parse(http.TimeFormat, resp.Header.Get("Date")) // zero if it is none
	}
	return resp, err
}

// WrappedRoundTripper lets the library find the connections to close.
func (d dated) WrappedRoundTripper() http.RoundTripper { return d.base }

// cause is an error with a text of our choice, in which errors.Is still finds
// what it was.
type cause struct {
	text string
	err  error
}

func (c *cause) Error() string        { return c.text }
func (c *cause) Is(target error) bool { return c.err != nil && errors.Is(c.err, target) }

// because drops the method and URL that net/http puts in front: the error names
// the object already.
func because(err error) error {
	var u *url.Error
	if errors.As(err, &u) && u.Err != nil {
		return &cause{text: u.Err.Error(), err: err}
	}
	return &cause{text: err.Error(), err: err}
}
