package gcs_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/sf2loki/sf2loki-ha/cas"
	"github.com/sf2loki/sf2loki-ha/cas/gcs"
	"github.com/sf2loki/sf2loki-ha/internal/answers"
	"github.com/sf2loki/sf2loki-ha/internal/wiretest"
)

const (
	name       = answers.Key
	generation = answers.Generation
	doc        = `{"epoch":7}`
)

var (
	jsonError = answers.GCSError
	text      = answers.GCSText
	bare      = answers.Bare
)

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

const (
	noObject = answers.GCSNoObject
	noBucket = answers.GCSNoBucket
)

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

// checkRequest checks what was sent.
func checkRequest(t *testing.T, req wiretest.Request, condition string) {
	t.Helper()
	sent, err := answers.GCS.Understand(req)
	want := map[string]answers.Sent{
		"":         {Op: answers.Load},
		"0":        {Op: answers.Create, Condition: answers.Absent, Doc: []byte(doc)},
		generation: {Op: answers.Replace, Condition: generation, Doc: []byte(doc)},
	}[condition]
	if err != nil || sent.String() != want.String() || string(sent.Doc) != string(want.Doc) {
		t.Errorf("%s with %q, %v; want %s", sent, sent.Doc, err, want)
	}
	checkForm(t, req, sent)
}

// checkForm checks how it was sent: without credentials, and whole.
func checkForm(t *testing.T, req wiretest.Request, _ answers.Sent) {
	t.Helper()
	if a := req.Header.Get("Authorization"); a != "" {
		t.Errorf("Authorization: %q", a)
	}
	if e := req.Header.Get("Content-Encoding"); e != "" {
		t.Errorf("Content-Encoding: %q", e)
	}
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

// The classes are cells of the table of answers; here is what a person reads.
func TestACutDownloadIsAmbiguousAndIsNotGoneOnWith(t *testing.T) {
	isolate(t)
	srv := wiretest.Start(t, wiretest.Respond(200, doc, "X-Goog-Generation: "+generation).Cut(5))
	_, err := open(t, gcs.Config{Bucket: "bkt", EndpointURL: srv.URL()}).Register(name).Load(t.Context())
	if e := class(t, "load", err, cas.Ambiguous); !strings.Contains(e.Error(), "unexpected EOF") {
		t.Errorf("%v does not say what happened", e)
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
