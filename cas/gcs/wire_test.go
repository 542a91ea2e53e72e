package gcs_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"mime/multipart"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/sf2loki/sf2loki-ha/cas"
	"github.com/sf2loki/sf2loki-ha/cas/gcs"
	"github.com/sf2loki/sf2loki-ha/internal/wiretest"
)

const (
	name       = "sf2loki/leader.lease"
	generation = "1764532800123456"
	doc        = `{"epoch":7}`
)

func jsonError(status int, reason, message string) wiretest.Answer {
	body := fmt.Sprintf(`{"error":{"code":%d,"message":%q,"errors":[{"domain":"global","reason":%q,"message":%q}]}}`, status, message, reason, message)
	return wiretest.Respond(status, body, "Content-Type: application/json; charset=UTF-8")
}

func text(status int, body string) wiretest.Answer {
	return wiretest.Respond(status, body, "Content-Type: text/html; charset=UTF-8")
}

func bare(status int) wiretest.Answer { return wiretest.Respond(status, "") }

var stored = wiretest.Respond(200, `{"kind":"storage#object","generation":"`+generation+`"}`, "Content-Type: application/json")

// ops are the three calls with what each must send.
var ops = []struct {
	name      string
	condition string // ifGenerationMatch, "" for none
	run       func(context.Context, cas.Register) (any, error)
}{
	{"load", "", func(ctx context.Context, r cas.Register) (any, error) { return r.Load(ctx) }},
	{"create", "0", func(ctx context.Context, r cas.Register) (any, error) { return r.Create(ctx, []byte(doc)) }},
	{"replace", generation, func(ctx context.Context, r cas.Register) (any, error) {
		return r.Replace(ctx, []byte(doc), generation)
	}},
}

// want is the class of one answer for load, create and replace.
type want [3]cas.Class

func all(c cas.Class) want { return want{c, c, c} }

const (
	noObject = "No such object: bkt/" + name
	noBucket = "The specified bucket does not exist."
)

var rows = []struct {
	name   string
	answer wiretest.Answer
	want   want
	hint   string
}{
	{"200 without generation", wiretest.Respond(200, `{"kind":"storage#object"}`), all(cas.Ambiguous), ""},
	{"200 without a body", bare(200), all(cas.Ambiguous), ""},
	{"200 of a proxy", text(200, "<html>please log in</html>"), all(cas.Ambiguous), ""},

	{"404 no such object, JSON", jsonError(404, "notFound", noObject), want{cas.NotFound, cas.Ambiguous, cas.Conflict}, ""},
	{"404 no such object, text", text(404, noObject), want{cas.NotFound, cas.Ambiguous, cas.Conflict}, ""},
	{"404 no such bucket, JSON", jsonError(404, "notFound", noBucket), all(cas.NoBucket), "create the bucket"},
	{"404 no such bucket, text", text(404, noBucket), all(cas.NoBucket), "create the bucket"},
	{"404 without a body", bare(404), all(cas.Ambiguous), "endpoint_url"},
	{"404 of a proxy", text(404, "<html><body>default backend - 404</body></html>"), all(cas.Ambiguous), "endpoint_url"},
	{"404 of Google's front end", text(404, "<p><b>404.</b> <ins>That’s an error.</ins> The requested URL was not found on this server.</p>"), all(cas.Ambiguous), "endpoint_url"},

	{"412 conditionNotMet", jsonError(412, "conditionNotMet", "At least one of the pre-conditions you specified did not hold."), want{cas.Ambiguous, cas.Conflict, cas.Conflict}, ""},
	{"412 without a body", bare(412), want{cas.Ambiguous, cas.Conflict, cas.Conflict}, ""},
	{"409 conflict", jsonError(409, "conflict", "conflict"), all(cas.Contended), ""},
	{"429 rateLimitExceeded", jsonError(429, "rateLimitExceeded", "exceeded the rate limit for object mutation operations"), all(cas.Contended), ""},
	{"429 without a body", bare(429), all(cas.Contended), ""},
	{"403 rateLimitExceeded", jsonError(403, "rateLimitExceeded", "slow down"), all(cas.Contended), ""},
	{"503 rateLimitExceeded", jsonError(503, "rateLimitExceeded", "slow down"), all(cas.Contended), ""},

	{"408 without a body", bare(408), all(cas.Ambiguous), ""},
	{"500 backendError", jsonError(500, "backendError", "We encountered an internal error."), all(cas.Ambiguous), ""},
	{"502 of a proxy", text(502, "<html>bad gateway</html>"), all(cas.Ambiguous), ""},
	{"503 backendError", jsonError(503, "backendError", "try again"), all(cas.Ambiguous), ""},
	{"504 without a body", bare(504), all(cas.Ambiguous), ""},
	{"400 with an unknown reason", jsonError(400, "somethingNew", "no"), all(cas.Ambiguous), ""},
	{"400 invalid bucket name", jsonError(400, "invalid", "Invalid bucket name: 'x'"), all(cas.NoBucket), "bucket"},

	{"401 authError", jsonError(401, "authError", "Invalid Credentials"), all(cas.Denied), "credentials"},
	{"401 without a body", bare(401), all(cas.Denied), "credentials"},
	{"403 forbidden", jsonError(403, "forbidden", "sa@p.iam.gserviceaccount.com does not have storage.objects.get access"), all(cas.Denied), "storage.objects."},
	{"403 without a body", bare(403), all(cas.Denied), "storage.objects."},
	{"403 retentionPolicyNotMet", jsonError(403, "retentionPolicyNotMet", "retained"), all(cas.Denied), "retention"},

	{"501 without a body", bare(501), all(cas.Unsupported), "conditional writes"},
	{"400 notImplemented", jsonError(400, "notImplemented", "no"), all(cas.Unsupported), "conditional writes"},

	{"307 redirect", wiretest.Respond(307, "", "Location: http://127.0.0.1:1/?sig=hunter2"), all(cas.NoBucket), "redirects"},
	{"308 redirect", wiretest.Respond(308, "", "Location: http://127.0.0.1:1/"), all(cas.NoBucket), "redirects"},

	{"reset before the request is read", wiretest.ResetAtOnce(), all(cas.Ambiguous), ""},
	{"reset after the request was read", wiretest.ResetAfterRequest(), all(cas.Ambiguous), ""},
	{"answer cut off", wiretest.Respond(200, doc, "X-Goog-Generation: "+generation).Cut(5), all(cas.Ambiguous), ""},
}

func TestEachAnswerHasItsClassAndCostsOneRequest(t *testing.T) {
	isolate(t)
	for _, row := range rows {
		for i, op := range ops {
			t.Run(row.name+"/"+op.name, func(t *testing.T) {
				srv := wiretest.Start(t, row.answer)
				r := open(t, gcs.Config{Bucket: "bkt", EndpointURL: srv.URL()}).Register(name)
				_, err := op.run(t.Context(), r)
				e := checkClass(t, err, row.want[i], op.name, r)
				if !strings.Contains(e.Hint, row.hint) {
					t.Errorf("hint %q does not speak of %q", e.Hint, row.hint)
				}
				if n := srv.Attempts(); n != 1 {
					t.Errorf("%d attempts, want 1", n)
				}
				for _, req := range srv.Requests() {
					checkRequest(t, req, op.condition)
				}
			})
		}
	}
}

func checkClass(t *testing.T, err error, want cas.Class, op string, r cas.Register) *cas.Error {
	t.Helper()
	e := class(t, op, err, want)
	if e.Op != op || e.Object != r.Describe() {
		t.Errorf("op %q, object %q", e.Op, e.Object)
	}
	if strings.Contains(e.Error(), "hunter2") {
		t.Errorf("the error leaks a credential: %v", e)
	}
	return e
}

// checkRequest checks what was sent: a plain download, or one upload of the whole
// document with exactly one condition.
func checkRequest(t *testing.T, req wiretest.Request, condition string) {
	t.Helper()
	u, err := url.Parse(req.Target)
	if err != nil {
		t.Fatal(err)
	}
	q := u.Query()
	for _, p := range []string{"ifGenerationMatch", "ifGenerationNotMatch", "ifMetagenerationMatch", "ifMetagenerationNotMatch", "generation"} {
		var want []string
		if p == "ifGenerationMatch" && condition != "" {
			want = []string{condition}
		}
		if fmt.Sprint(q[p]) != fmt.Sprint(want) {
			t.Errorf("%s: %q, want %q", p, q[p], want)
		}
	}
	for _, h := range []string{"If-Match", "If-None-Match", "Range", "Authorization"} {
		if got := req.Header.Get(h); got != "" {
			t.Errorf("%s: %q", h, got)
		}
	}
	if condition == "" {
		if req.Method != "GET" || req.Path() != "/storage/v1/b/bkt/o/sf2loki%2Fleader.lease" || q.Get("alt") != "media" {
			t.Errorf("%s %s", req.Method, req.Target)
		}
		return
	}
	if req.Method != "POST" || req.Path() != "/upload/storage/v1/b/bkt/o" || q.Get("uploadType") != "multipart" || q.Get("name") != name {
		t.Errorf("%s %s", req.Method, req.Target)
	}
	kind, params, err := mime.ParseMediaType(req.Header.Get("Content-Type"))
	if err != nil || kind != "multipart/related" {
		t.Fatalf("Content-Type: %q, %v", req.Header.Get("Content-Type"), err)
	}
	parts := multipart.NewReader(strings.NewReader(string(req.Body)), params["boundary"])
	var attrs struct{ Bucket, Name, ContentType, CacheControl, Crc32c string }
	if meta := part(t, parts); json.Unmarshal(meta, &attrs) != nil || attrs.Name != name || attrs.Crc32c == "" || attrs.ContentType != "application/json" || attrs.CacheControl != "no-store" {
		t.Errorf("metadata: %s", meta)
	}
	if media := part(t, parts); string(media) != doc {
		t.Errorf("document: %q", media)
	}
}

func part(t *testing.T, r *multipart.Reader) []byte {
	t.Helper()
	p, err := r.NextPart()
	if err != nil {
		t.Fatal(err)
	}
	b, err := io.ReadAll(p)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestVersionIsTheGenerationOfTheAnswer(t *testing.T) {
	isolate(t)
	srv := wiretest.Start(t,
		wiretest.Respond(200, doc, "X-Goog-Generation: "+generation, "Content-Type: application/json"), stored, stored)
	r := open(t, gcs.Config{Bucket: "bkt", EndpointURL: srv.URL()}).Register(name)
	v, err := r.Load(t.Context())
	if err != nil || v.Version != generation || string(v.Data) != doc {
		t.Fatalf("%q %q %v", v.Data, v.Version, err)
	}
	if got, err := r.Replace(t.Context(), []byte(doc), v.Version); err != nil || got != generation {
		t.Errorf("replace: %q %v", got, err)
	}
	if got, err := r.Create(t.Context(), []byte(doc)); err != nil || got != generation {
		t.Errorf("create: %q %v", got, err)
	}
	for i, op := range ops {
		checkRequest(t, srv.Requests()[[]int{0, 2, 1}[i]], op.condition)
	}
}

func TestAVersionThatIsNoGenerationIsNeverSent(t *testing.T) {
	isolate(t)
	srv := wiretest.Start(t)
	r := open(t, gcs.Config{Bucket: "bkt", EndpointURL: srv.URL()}).Register(name)
	for _, v := range []cas.Version{"", "0", "-1", "+1", "01", "1.0", "*", `"etag"`, "99999999999999999999"} {
		_, err := r.Replace(t.Context(), []byte(doc), v)
		class(t, "replace on "+string(v), err, cas.Conflict)
	}
	if n := srv.Attempts(); n != 0 {
		t.Errorf("%d requests were sent", n)
	}
}

func TestACutDownloadIsAmbiguousAndIsNotGoneOnWith(t *testing.T) {
	isolate(t)
	srv := wiretest.Start(t, wiretest.Respond(200, doc, "X-Goog-Generation: "+generation).Cut(5))
	_, err := open(t, gcs.Config{Bucket: "bkt", EndpointURL: srv.URL()}).Register(name).Load(t.Context())
	if e := class(t, "load", err, cas.Ambiguous); !strings.Contains(e.Error(), "unexpected EOF") {
		t.Errorf("%v does not say what happened", e)
	}
	if n := srv.Attempts(); n != 1 {
		t.Errorf("%d attempts, want 1", n)
	}
}

func TestADamagedDownloadIsAmbiguous(t *testing.T) {
	isolate(t)
	srv := wiretest.Start(t, wiretest.Respond(200, doc, "X-Goog-Generation: "+generation, "X-Goog-Hash: crc32c=AAAAAA=="))
	_, err := open(t, gcs.Config{Bucket: "bkt", EndpointURL: srv.URL()}).Register(name).Load(t.Context())
	if e := class(t, "load", err, cas.Ambiguous); !strings.Contains(e.Error(), "CRC") {
		t.Errorf("%v does not say what happened", e)
	}
}

func TestALargeDocumentIsOneRequestToo(t *testing.T) {
	isolate(t)
	for _, size := range []int{256 << 10, 1 << 20, 1<<20 + 1} { // multiples of the library's chunk unit, and one off
		srv := wiretest.Start(t, stored)
		r := open(t, gcs.Config{Bucket: "bkt", EndpointURL: srv.URL()}).Register(name)
		if _, err := r.Create(t.Context(), make([]byte, size)); err != nil {
			t.Errorf("%d bytes: %v", size, err)
		}
		if req := srv.Requests()[0]; !strings.Contains(req.Target, "uploadType=multipart") || len(req.Body) < size {
			t.Errorf("%d bytes: %s with %d bytes", size, req.Target, len(req.Body))
		}
	}
}

func TestSilenceEndsWithTheContext(t *testing.T) {
	isolate(t)
	for _, op := range ops {
		t.Run(op.name, func(t *testing.T) {
			srv := wiretest.Start(t, wiretest.Hang())
			r := open(t, gcs.Config{Bucket: "bkt", EndpointURL: srv.URL()}).Register(name)
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
			srv := wiretest.Start(t, stored, wiretest.ResetAfterRequest())
			r := open(t, gcs.Config{Bucket: "bkt", EndpointURL: srv.URL()}).Register(name)
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

// A transport that does not honour contexts makes the library's Close hang.
func TestACallEndsWithItsContextThoughTheLibraryHangs(t *testing.T) {
	isolate(t)
	release := make(chan struct{})
	t.Cleanup(func() { close(release) })
	deaf := &http.Client{Transport: transport(func(*http.Request) (*http.Response, error) {
		<-release
		return nil, errors.New("released")
	})}
	for _, op := range ops {
		t.Run(op.name, func(t *testing.T) {
			r := open(t, gcs.Config{Bucket: "bkt", EndpointURL: "http://127.0.0.1:1", HTTPClient: deaf}).Register(name)
			ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
			defer cancel()
			_, err := op.run(ctx, r)
			class(t, op.name, err, cas.Ambiguous)
			if !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("%v does not say that the deadline passed", err)
			}
		})
	}
}

func TestUnreachableEndpointIsAmbiguous(t *testing.T) {
	isolate(t)
	for _, op := range ops {
		t.Run(op.name, func(t *testing.T) {
			r := open(t, gcs.Config{Bucket: "bkt", EndpointURL: "http://user:hunter2@127.0.0.1:1"}).Register(name)
			_, err := op.run(t.Context(), r)
			if e := checkClass(t, err, cas.Ambiguous, op.name, r); !strings.Contains(e.Error(), "refused") {
				t.Errorf("%v does not say why", e)
			}
		})
	}
}

type transport func(*http.Request) (*http.Response, error)

func (f transport) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }
