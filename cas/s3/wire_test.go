package s3_test

import (
	"context"
	"strings"
	"testing"

	"github.com/sf2loki/sf2loki-ha/cas"
	"github.com/sf2loki/sf2loki-ha/cas/s3"
	"github.com/sf2loki/sf2loki-ha/internal/answers"
	"github.com/sf2loki/sf2loki-ha/internal/wiretest"
)

const (
	key  = answers.Key
	etag = answers.ETag
	doc  = `{"epoch":7}`
)

var (
	s3Error = answers.S3Error
	bare    = answers.Bare
	html404 = answers.HTML404
)

// ops are the three calls with what each must send.
var ops = []struct {
	name, method string
	condition    string // the one conditional header
	value        string
	run          func(context.Context, cas.Register) (any, error)
}{
	{"load", "GET", "", "", func(ctx context.Context, r cas.Register) (any, error) { return r.Load(ctx) }},
	{"create", "PUT", "If-None-Match", "*", func(ctx context.Context, r cas.Register) (any, error) {
		return r.Create(ctx, []byte(doc))
	}},
	{"replace", "PUT", "If-Match", etag, func(ctx context.Context, r cas.Register) (any, error) {
		return r.Replace(ctx, []byte(doc), cas.Version(etag))
	}},
}

func checkClass(t *testing.T, err error, want cas.Class, op string, r cas.Register) {
	t.Helper()
	if want == "" {
		if err != nil {
			t.Fatalf("%v, want success", err)
		}
		return
	}
	e := class(t, op, err, want)
	if e.Op != op || e.Object != r.Describe() {
		t.Errorf("op %q, object %q", e.Op, e.Object)
	}
	for _, secret := range []string{"hunter2", "test-secret-key", "AKIATEST"} {
		if strings.Contains(e.Error(), secret) {
			t.Errorf("the error leaks %q: %v", secret, e)
		}
	}
}

// checkRequest checks what was sent.
func checkRequest(t *testing.T, req wiretest.Request, method, condition, value string) {
	t.Helper()
	sent, err := answers.S3.Understand(req)
	if err != nil || req.Method != method {
		t.Fatalf("%s: %v, want %s", req.Method, err, method)
	}
	if got := req.Header.Get(condition); condition != "" && got != value {
		t.Errorf("%s: %q, want %q", condition, got, value)
	}
	if sent.Op != answers.Load && string(sent.Doc) != doc {
		t.Errorf("body %q", sent.Doc)
	}
	checkForm(t, req, sent)
}

// checkForm checks how it was sent: signed, and a write with a plain body of
// announced length.
func checkForm(t *testing.T, req wiretest.Request, sent answers.Sent) {
	t.Helper()
	if a := req.Header.Get("Authorization"); !strings.HasPrefix(a, "AWS4-HMAC-SHA256 ") {
		t.Errorf("Authorization: %q", a)
	}
	for h := range req.Header {
		l := strings.ToLower(h)
		if l == "x-amz-trailer" || l == "expect" || l == "x-amz-decoded-content-length" || strings.HasPrefix(l, "x-amz-checksum") || strings.HasPrefix(l, "x-amz-sdk-checksum") {
			t.Errorf("header %s: %q", h, req.Header.Get(h))
		}
	}
	if sent.Op == answers.Load {
		return
	}
	if strings.Contains(req.Header.Get("Content-Encoding"), "aws-chunked") || req.TransferEncoding != "" {
		t.Errorf("the body is chunked: %q %q", req.Header.Get("Content-Encoding"), req.TransferEncoding)
	}
	if req.ContentLength != int64(len(req.Body)) {
		t.Errorf("a body of %d bytes with length %d", len(req.Body), req.ContentLength)
	}
	if sum := req.Header.Get("X-Amz-Content-Sha256"); len(sum) != 64 {
		t.Errorf("X-Amz-Content-Sha256: %q, want the hash of the body", sum)
	}
	if ct := req.Header.Get("Content-Type"); ct != "application/json" {
		t.Errorf("Content-Type: %q", ct)
	}
}

func TestConditionIsTheETagByteForByte(t *testing.T) {
	isolate(t)
	for _, tag := range []string{etag, "unquoted", `W/"weak"`, `"multi-2"`} {
		t.Run(tag, func(t *testing.T) {
			srv := wiretest.Start(t, wiretest.Respond(200, doc, "ETag: "+tag), wiretest.Respond(200, "", "ETag: "+etag))
			r := open(t, s3.Config{Bucket: "bkt", EndpointURL: srv.URL()}).Register(key)
			v, err := r.Load(t.Context())
			if err != nil || string(v.Version) != tag || string(v.Data) != doc {
				t.Fatalf("%q %q %v", v.Data, v.Version, err)
			}
			if got, err := r.Replace(t.Context(), []byte(doc), v.Version); err != nil || string(got) != etag {
				t.Fatalf("%q %v", got, err)
			}
			if got := srv.Requests()[1].Header.Values("If-Match"); len(got) != 1 || got[0] != tag {
				t.Errorf("If-Match: %q, want %q", got, tag)
			}
		})
	}
}

func TestAVersionThatIsNoConditionIsNeverSent(t *testing.T) {
	isolate(t)
	srv := wiretest.Start(t)
	r := open(t, s3.Config{Bucket: "bkt", EndpointURL: srv.URL()}).Register(key)
	for _, v := range []cas.Version{"", "*"} {
		_, err := r.Replace(t.Context(), []byte(doc), v)
		class(t, "replace", err, cas.Conflict)
	}
	if n := srv.Attempts(); n != 0 {
		t.Errorf("%d requests were sent", n)
	}
}

// The class is a cell of the table of answers; here is what a person reads.
func TestCutBodyIsAmbiguous(t *testing.T) {
	isolate(t)
	srv := wiretest.Start(t, wiretest.Respond(200, doc, "ETag: "+etag).Cut(5))
	_, err := open(t, s3.Config{Bucket: "bkt", EndpointURL: srv.URL()}).Register(key).Load(t.Context())
	if e := class(t, "load", err, cas.Ambiguous); !strings.Contains(e.Error(), "unexpected EOF") {
		t.Errorf("%v", e)
	}
}

// net/http re-sends some requests by itself when a reused connection fails.
func TestAWriteIsNotSentAgainWhenAReusedConnectionFails(t *testing.T) {
	isolate(t)
	for _, op := range ops[1:] {
		t.Run(op.name, func(t *testing.T) {
			srv := wiretest.Start(t, wiretest.Respond(200, "", "ETag: "+etag), wiretest.ResetAfterRequest())
			r := open(t, s3.Config{Bucket: "bkt", EndpointURL: srv.URL()}).Register(key)
			if _, err := op.run(t.Context(), r); err != nil {
				t.Fatal(err)
			}
			_, err := op.run(t.Context(), r)
			class(t, op.name, err, cas.Ambiguous)
			if n := srv.Attempts(); n != 2 {
				t.Errorf("%d attempts, want 2", n)
			}
		})
	}
}

func TestUnreachableEndpointIsAmbiguous(t *testing.T) {
	isolate(t)
	for _, op := range ops {
		t.Run(op.name, func(t *testing.T) {
			r := open(t, s3.Config{Bucket: "bkt", EndpointURL: "http://user:hunter2@127.0.0.1:1"}).Register(key)
			_, err := op.run(t.Context(), r)
			checkClass(t, err, cas.Ambiguous, op.name, r)
			if !strings.Contains(err.Error(), "refused") {
				t.Errorf("%v does not say why", err)
			}
		})
	}
}
