package s3_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/sf2loki/sf2loki-ha/cas"
	"github.com/sf2loki/sf2loki-ha/cas/s3"
	"github.com/sf2loki/sf2loki-ha/internal/wiretest"
)

func TestRetriesStayOffWhateverTheEnvironmentSays(t *testing.T) {
	isolate(t)
	t.Setenv("AWS_MAX_ATTEMPTS", "5")
	t.Setenv("AWS_RETRY_MODE", "adaptive")
	t.Setenv("AWS_REQUEST_CHECKSUM_CALCULATION", "when_supported")
	for _, op := range ops {
		for name, a := range map[string]wiretest.Answer{"503": s3Error(503, "SlowDown"), "reset": wiretest.ResetAfterRequest()} {
			t.Run(op.name+"/"+name, func(t *testing.T) {
				srv := wiretest.Start(t, a)
				r := open(t, s3.Config{Bucket: "bkt", EndpointURL: srv.URL()}).Register(key)
				_, err := op.run(t.Context(), r)
				class(t, op.name, err, cas.Ambiguous)
				if n := srv.Attempts(); n != 1 {
					t.Errorf("%d attempts, want 1", n)
				}
				checkRequest(t, srv.Requests()[0], op.method, op.condition, op.value)
			})
		}
	}
}

// An outage must not leave anything behind that refuses the first call after it.
func TestALongOutageIsForgottenAtOnce(t *testing.T) {
	isolate(t)
	const failures = 300 // a client-side token bucket of the SDK holds 500, a retry costs 5 to 10
	script := make([]wiretest.Answer, failures, failures+1)
	for i := range script {
		script[i] = s3Error(503, "SlowDown")
	}
	srv := wiretest.Start(t, append(script, wiretest.Respond(200, doc, "ETag: "+etag))...)
	r := open(t, s3.Config{Bucket: "bkt", EndpointURL: srv.URL()}).Register(key)
	for range failures {
		_, err := r.Load(t.Context())
		class(t, "load", err, cas.Ambiguous)
	}
	if _, err := r.Load(t.Context()); err != nil {
		t.Errorf("the first call after the outage: %v", err)
	}
}

func TestMissingCredentialsAreDeniedAndNothingIsSent(t *testing.T) {
	isolate(t)
	t.Setenv("AWS_ACCESS_KEY_ID", "")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "")
	for _, op := range ops {
		t.Run(op.name, func(t *testing.T) {
			srv := wiretest.Start(t)
			r := open(t, s3.Config{Bucket: "bkt", EndpointURL: srv.URL()}).Register(key)
			_, err := op.run(t.Context(), r)
			if e := class(t, op.name, err, cas.Denied); !strings.Contains(e.Hint, "AWS_ACCESS_KEY_ID") {
				t.Errorf("hint %q", e.Hint)
			}
		})
	}
}

func TestARefusalByTheCredentialServiceIsNotTheBuckets(t *testing.T) {
	isolate(t)
	// A container's role: the path of its endpoint is as good as a password.
	creds := wiretest.Start(t, wiretest.Respond(404, `{"code":"NoSuchKey","message":"no such credentials"}`, "Content-Type: application/json"))
	t.Setenv("AWS_ACCESS_KEY_ID", "")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "")
	t.Setenv("AWS_CONTAINER_CREDENTIALS_FULL_URI", creds.URL()+"/v2/hunter2")
	srv := wiretest.Start(t)
	r := open(t, s3.Config{Bucket: "bkt", EndpointURL: srv.URL()}).Register(key)
	_, err := r.Load(t.Context())
	checkClass(t, err, cas.Denied, "load", r)
}

func TestASlowCredentialServiceIsNoRefusal(t *testing.T) {
	isolate(t)
	creds := wiretest.Start(t, wiretest.Hang())
	t.Setenv("AWS_ACCESS_KEY_ID", "")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "")
	t.Setenv("AWS_CONTAINER_CREDENTIALS_FULL_URI", creds.URL()+"/v2/hunter2")
	r := open(t, s3.Config{Bucket: "bkt", EndpointURL: "http://127.0.0.1:1"}).Register(key)
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	_, err := r.Load(ctx)
	checkClass(t, err, cas.Ambiguous, "load", r)
}

func TestUserinfoOfTheEndpointIsNotUsedOrShown(t *testing.T) {
	isolate(t)
	srv := wiretest.Start(t, bare(403))
	url := strings.Replace(srv.URL(), "http://", "http://user:hunter2@", 1)
	t.Setenv("AWS_ENDPOINT_URL_S3", url) // the environment's endpoint is treated alike
	r := open(t, s3.Config{Bucket: "bkt"}).Register(key)
	_, err := r.Load(t.Context())
	checkClass(t, err, cas.Denied, "load", r)
	checkRequest(t, srv.Requests()[0], "GET", "", "")
	if r.Describe() != "s3://bkt/"+key {
		t.Errorf("Describe() = %q", r.Describe())
	}
}

func TestAWSItselfIsAddressedByHostAndRegion(t *testing.T) {
	isolate(t)
	var got []*http.Request
	b := open(t, s3.Config{Bucket: "bkt", Region: "eu-west-1", HTTPClient: &http.Client{Transport: transport(func(r *http.Request) (*http.Response, error) {
		got = append(got, r)
		return nil, errors.New("no network in tests")
	})}})
	_, err := b.Register(key).Create(t.Context(), []byte(doc))
	class(t, "create", err, cas.Ambiguous)
	if len(got) != 1 || got[0].URL.Host != "bkt.s3.eu-west-1.amazonaws.com" || got[0].URL.Scheme != "https" || got[0].URL.Path != "/"+key {
		t.Fatalf("requests: %v", got)
	}
	if got[0].ContentLength != int64(len(doc)) || got[0].Header.Get("X-Amz-Trailer") != "" || got[0].Header.Get("If-None-Match") != "*" {
		t.Errorf("length %d, header %v", got[0].ContentLength, got[0].Header)
	}
}

func TestACustomEndpointIsAddressedPathStyle(t *testing.T) {
	isolate(t)
	var got []*http.Request
	b := open(t, s3.Config{Bucket: "bkt", EndpointURL: "https://user:hunter2@store.example:9000/base/", HTTPClient: &http.Client{Transport: transport(func(r *http.Request) (*http.Response, error) {
		got = append(got, r)
		return nil, errors.New("no network in tests")
	})}})
	_, err := b.Register(key).Load(t.Context())
	checkClass(t, err, cas.Ambiguous, "load", b.Register(key))
	if len(got) != 1 || got[0].URL.Host != "store.example:9000" || got[0].URL.Path != "/base/bkt/"+key || got[0].URL.User != nil {
		t.Fatalf("requests: %v", got)
	}
	if a := got[0].Header.Get("Authorization"); !strings.Contains(a, "/us-east-1/s3/") {
		t.Errorf("signed for another region than the default: %q", a)
	}
}

type transport func(*http.Request) (*http.Response, error)

func (f transport) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }
