package s3_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/sf2loki/sf2loki-ha/cas"
	"github.com/sf2loki/sf2loki-ha/cas/s3"
	"github.com/sf2loki/sf2loki-ha/internal/wiretest"
)

const (
	key  = "sf2loki/leader.lease"
	etag = `"9b2cf535f27731c974343645a3985328"`
	doc  = `{"epoch":7}`
)

func s3Error(status int, code string, header ...string) wiretest.Answer {
	body := fmt.Sprintf("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<Error><Code>%s</Code><Message>about %s</Message><RequestId>REQ1</RequestId></Error>", code, code)
	return wiretest.Respond(status, body, append(header, "Content-Type: application/xml")...)
}

func bare(status int) wiretest.Answer { return wiretest.Respond(status, "") }

var (
	html404 = wiretest.Respond(404, "<html><body>default backend - 404</body></html>", "Content-Type: text/html")
	text404 = wiretest.Respond(404, "404 page not found\n", "Content-Type: text/plain")
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

// want is the class of one answer for load, create and replace; "" is success.
type want [3]cas.Class

func all(c cas.Class) want { return want{c, c, c} }

var rows = []struct {
	name   string
	answer wiretest.Answer
	want   want
	hint   string // must occur in the hint of the failures, unless ""
}{
	{"200 with ETag", wiretest.Respond(200, "", "ETag: "+etag), want{}, ""},
	{"200 without ETag", bare(200), all(cas.Ambiguous), ""},
	{"200 with empty ETag", wiretest.Respond(200, "", "ETag: "), all(cas.Ambiguous), ""},
	{"200 that carries a 412", s3Error(200, "PreconditionFailed"), want{cas.Ambiguous, cas.Conflict, cas.Conflict}, ""},
	{"200 that carries an internal error", s3Error(200, "InternalError"), all(cas.Ambiguous), ""},

	{"404 NoSuchKey", s3Error(404, "NoSuchKey"), want{cas.NotFound, cas.Ambiguous, cas.Conflict}, ""},
	{"404 NoSuchKey, delete marker", s3Error(404, "NoSuchKey", "x-amz-delete-marker: true"), want{cas.NotFound, cas.Ambiguous, cas.Conflict}, ""},
	{"404 NoSuchBucket", s3Error(404, "NoSuchBucket"), all(cas.NoBucket), "create the bucket"},
	{"404 without a body", bare(404), all(cas.Ambiguous), "endpoint_url"},
	{"404 of a proxy, HTML", html404, all(cas.Ambiguous), ""},
	{"404 of a proxy, text", text404, all(cas.Ambiguous), ""},
	{"404 with an unknown code", s3Error(404, "NoSuchThing"), all(cas.Ambiguous), "endpoint_url"},
	{"404 cut off", s3Error(404, "NoSuchKey").Cut(60), all(cas.Ambiguous), ""},

	{"412 PreconditionFailed", s3Error(412, "PreconditionFailed"), want{cas.Ambiguous, cas.Conflict, cas.Conflict}, ""},
	{"412 without a body", bare(412), want{cas.Ambiguous, cas.Conflict, cas.Conflict}, ""},
	{"409 ConditionalRequestConflict", s3Error(409, "ConditionalRequestConflict"), all(cas.Contended), ""},
	{"409 OperationAborted", s3Error(409, "OperationAborted"), all(cas.Contended), ""},
	{"409 without a body", bare(409), all(cas.Contended), ""},
	{"429 without a body", bare(429), all(cas.Contended), ""},
	{"429 SlowDown", s3Error(429, "SlowDown"), all(cas.Contended), ""},

	{"500 InternalError", s3Error(500, "InternalError"), all(cas.Ambiguous), ""},
	{"502 of a proxy", wiretest.Respond(502, "<html>bad gateway</html>"), all(cas.Ambiguous), ""},
	{"503 SlowDown", s3Error(503, "SlowDown"), all(cas.Ambiguous), ""},
	{"503 without a body", bare(503), all(cas.Ambiguous), ""},
	{"500 with an unknown code", s3Error(500, "SomethingNew"), all(cas.Ambiguous), ""},
	{"400 with an unknown code", s3Error(400, "SomethingNew"), all(cas.Ambiguous), ""},
	{"400 RequestTimeout", s3Error(400, "RequestTimeout"), all(cas.Ambiguous), ""},

	{"401 without a body", bare(401), all(cas.Denied), "s3:"},
	{"403 AccessDenied", s3Error(403, "AccessDenied"), all(cas.Denied), "s3:"},
	{"403 without a body", bare(403), all(cas.Denied), "s3:"},
	{"403 RequestTimeTooSkewed", s3Error(403, "RequestTimeTooSkewed"), all(cas.Denied), "clock"},
	{"403 InvalidAccessKeyId", s3Error(403, "InvalidAccessKeyId"), all(cas.Denied), "AWS_ACCESS_KEY_ID"},
	{"403 SignatureDoesNotMatch", s3Error(403, "SignatureDoesNotMatch"), all(cas.Denied), "secret"},
	{"400 ExpiredToken", s3Error(400, "ExpiredToken"), all(cas.Denied), "expired"},
	{"400 KMS.DisabledException", s3Error(400, "KMS.DisabledException"), all(cas.Denied), "kms:"},

	{"501 NotImplemented", s3Error(501, "NotImplemented"), all(cas.Unsupported), "conditional writes"},
	{"501 without a body", bare(501), all(cas.Unsupported), "conditional writes"},
	{"400 NotImplemented", s3Error(400, "NotImplemented"), all(cas.Unsupported), "conditional writes"},

	{"301 PermanentRedirect", s3Error(301, "PermanentRedirect", "x-amz-bucket-region: eu-west-1"), all(cas.NoBucket), "eu-west-1"},
	{"307 TemporaryRedirect", s3Error(307, "TemporaryRedirect", "Location: http://other.example/b/k?sig=hunter2"), all(cas.NoBucket), "other.example"},
	{"308 of a proxy", wiretest.Respond(308, "", "Location: https://login.example/"), all(cas.NoBucket), "login.example"},
	{"400 AuthorizationHeaderMalformed", s3Error(400, "AuthorizationHeaderMalformed"), all(cas.NoBucket), "region"},

	{"reset before the request is read", wiretest.ResetAtOnce(), all(cas.Ambiguous), ""},
	{"reset after the request was read", wiretest.ResetAfterRequest(), all(cas.Ambiguous), ""},
}

func TestEachAnswerHasItsClassAndCostsOneRequest(t *testing.T) {
	isolate(t)
	for _, row := range rows {
		for i, op := range ops {
			t.Run(row.name+"/"+op.name, func(t *testing.T) {
				srv := wiretest.Start(t, row.answer)
				r := open(t, s3.Config{Bucket: "bkt", EndpointURL: srv.URL()}).Register(key)
				_, err := op.run(t.Context(), r)
				checkClass(t, err, row.want[i], op.name, r)
				if n := srv.Attempts(); n != 1 {
					t.Errorf("%d attempts, want 1", n)
				}
				if err != nil && row.hint != "" {
					var e *cas.Error
					if errors.As(err, &e); !strings.Contains(e.Hint, row.hint) {
						t.Errorf("hint %q does not speak of %q", e.Hint, row.hint)
					}
				}
				for _, req := range srv.Requests() {
					checkRequest(t, req, op.method, op.condition, op.value)
				}
			})
		}
	}
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

// checkRequest checks what was sent: path style, exactly one condition, a plain
// body of announced length.
func checkRequest(t *testing.T, req wiretest.Request, method, condition, value string) {
	t.Helper()
	if req.Method != method || req.Path() != "/bkt/"+key {
		t.Errorf("%s %s, want %s /bkt/%s", req.Method, req.Path(), method, key)
	}
	for _, h := range []string{"If-Match", "If-None-Match", "If-Modified-Since", "If-Unmodified-Since"} {
		got, want := req.Header.Values(h), []string(nil)
		if h == condition {
			want = []string{value}
		}
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%s: %q, want %q", h, got, want)
		}
	}
	if a := req.Header.Get("Authorization"); !strings.HasPrefix(a, "AWS4-HMAC-SHA256 ") {
		t.Errorf("Authorization: %q", a)
	}
	for h := range req.Header {
		l := strings.ToLower(h)
		if l == "x-amz-trailer" || l == "expect" || l == "x-amz-decoded-content-length" || strings.HasPrefix(l, "x-amz-checksum") || strings.HasPrefix(l, "x-amz-sdk-checksum") {
			t.Errorf("header %s: %q", h, req.Header.Get(h))
		}
	}
	if method != "PUT" {
		return
	}
	if strings.Contains(req.Header.Get("Content-Encoding"), "aws-chunked") || req.TransferEncoding != "" {
		t.Errorf("the body is chunked: %q %q", req.Header.Get("Content-Encoding"), req.TransferEncoding)
	}
	if req.ContentLength != int64(len(doc)) || string(req.Body) != doc {
		t.Errorf("body %q with length %d", req.Body, req.ContentLength)
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

func TestCutBodyIsAmbiguous(t *testing.T) {
	isolate(t)
	srv := wiretest.Start(t, wiretest.Respond(200, doc, "ETag: "+etag).Cut(5))
	_, err := open(t, s3.Config{Bucket: "bkt", EndpointURL: srv.URL()}).Register(key).Load(t.Context())
	if e := class(t, "load", err, cas.Ambiguous); !strings.Contains(e.Error(), "unexpected EOF") {
		t.Errorf("%v", e)
	}
	if n := srv.Attempts(); n != 1 {
		t.Errorf("%d attempts, want 1", n)
	}
}

func TestSilenceEndsWithTheContext(t *testing.T) {
	isolate(t)
	for _, op := range ops {
		t.Run(op.name, func(t *testing.T) {
			srv := wiretest.Start(t, wiretest.Hang())
			r := open(t, s3.Config{Bucket: "bkt", EndpointURL: srv.URL()}).Register(key)
			ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
			defer cancel()
			_, err := op.run(ctx, r)
			class(t, op.name, err, cas.Ambiguous)
			if !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("%v does not say that the deadline passed", err)
			}
			if n := srv.Attempts(); n != 1 {
				t.Errorf("%d attempts, want 1", n)
			}
		})
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
