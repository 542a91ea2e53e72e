package s3_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/johannesboyne/gofakes3"
	"github.com/johannesboyne/gofakes3/backend/s3mem"

	"github.com/sf2loki/sf2loki-ha/cas"
	"github.com/sf2loki/sf2loki-ha/cas/s3"
	"github.com/sf2loki/sf2loki-ha/internal/testservers"
	"github.com/sf2loki/sf2loki-ha/internal/wiretest"
)

// probe runs the store probe through this package.
func probe(ctx context.Context, cfg s3.Config) cas.ProbeReport {
	return cas.Probe(ctx, cas.ProbeConfig{Object: key, CallTimeout: 5 * time.Second, Open: func(ctx context.Context) (cas.Bucket, error) {
		return s3.Open(ctx, cfg)
	}})
}

func passes(t *testing.T, r cas.ProbeReport) {
	t.Helper()
	if r.Verdict != cas.ProbeOK || len(r.Left) > 0 {
		t.Errorf("%s%v", r, r.CleanUp)
	}
}

func TestVersitygwPassesTheProbeAlsoSeveralAtOnce(t *testing.T) {
	srv := testservers.StartS3(t)
	srv.Setenv(t)
	cfg := s3.Config{Bucket: srv.Bucket, EndpointURL: srv.Endpoint}
	passes(t, probe(t.Context(), cfg))
	var wg sync.WaitGroup
	for range 3 {
		wg.Go(func() { passes(t, probe(t.Context(), cfg)) })
	}
	wg.Wait()
}

// fake is gofakes3 behind a handler that may change requests and answers.
func fake(t *testing.T, wrap func(http.Handler) http.Handler) s3.Config {
	t.Helper()
	isolate(t)
	backend := s3mem.New()
	if err := backend.CreateBucket("bkt"); err != nil {
		t.Fatal(err)
	}
	srv := httptest.NewServer(wrap(gofakes3.New(backend).Server()))
	t.Cleanup(srv.Close)
	return s3.Config{Bucket: "bkt", EndpointURL: srv.URL}
}

func TestGofakes3PassesTheProbeAndEveryRequestIsOne(t *testing.T) {
	var requests, deletes atomic.Int32
	cfg := fake(t, func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			requests.Add(1)
			if !strings.HasPrefix(r.URL.Path, "/bkt/"+key+".probe/") {
				t.Errorf("%s %s is no object of the probe", r.Method, r.URL.Path)
			}
			if r.Method == http.MethodDelete {
				deletes.Add(1)
			}
			next.ServeHTTP(w, r)
		})
	})
	r := probe(t.Context(), cfg)
	passes(t, r)
	if n := int(requests.Load()); n != r.Requests || n != 40 || deletes.Load() != 6 {
		t.Errorf("%d requests with %d removals, the report says %d; want 40 with 6", n, deletes.Load(), r.Requests)
	}
}

func TestTheProbeNamesWhatAnEndpointDoesToConditions(t *testing.T) {
	for name, tt := range map[string]struct {
		fault cas.StoreFault
		wrap  func(http.Handler) http.Handler
	}{
		"both headers are ignored": {cas.FaultNotEnforced, func(next http.Handler) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				r.Header.Del("If-Match")
				r.Header.Del("If-None-Match")
				next.ServeHTTP(w, r)
			})
		}},
		"If-Match alone is ignored": {cas.FaultNotEnforced, func(next http.Handler) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				r.Header.Del("If-Match")
				next.ServeHTTP(w, r)
			})
		}},
		"quoted ETags never match": {cas.FaultNeverMatches, func(next http.Handler) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if strings.HasPrefix(r.Header.Get("If-Match"), `"`) {
					r.Header.Set("If-Match", `"00000000000000000000000000000000"`)
				}
				next.ServeHTTP(w, r)
			})
		}},
	} {
		t.Run(name, func(t *testing.T) {
			r := probe(t.Context(), fake(t, tt.wrap))
			if r.Fault != tt.fault || cas.ClassOf(r.Err()) != cas.Unsupported || !strings.Contains(r.Err().Error(), string(tt.fault)) {
				t.Errorf("want %q:\n%s%v", tt.fault, r, r.Err())
			}
		})
	}
}

// What the stores of the field say who have no conditional writes, and what says
// nothing about them.
func TestTheFirstAnswerOfAProbeDecidesWhatItCan(t *testing.T) {
	isolate(t)
	for name, tt := range map[string]struct {
		answer  wiretest.Answer
		verdict cas.Verdict
		class   cas.Class
		text    string
	}{
		"501 NotImplemented, as Backblaze B2": {s3Error(501, "NotImplemented"), cas.ProbeUnsupported, cas.Unsupported, "conditional writes are not supported"},
		"400 NotImplemented, as Alibaba OSS":  {s3Error(400, "NotImplemented"), cas.ProbeUnsupported, cas.Unsupported, "conditional writes are not supported"},
		"501 without a body":                  {bare(501), cas.ProbeUnsupported, cas.Unsupported, "conditional writes are not supported"},
		"403":                                 {s3Error(403, "AccessDenied"), cas.ProbeUnknown, cas.Denied, "the probe was denied"},
		"404 NoSuchBucket":                    {s3Error(404, "NoSuchBucket"), cas.ProbeUnknown, cas.NoBucket, "there is no such bucket"},
		"429":                                 {bare(429), cas.ProbeUnknown, cas.Contended, "fewer requests"},
		"503 SlowDown":                        {s3Error(503, "SlowDown"), cas.ProbeUnknown, cas.Ambiguous, "did not answer"},
		"400 of another kind":                 {s3Error(400, "InvalidRequest"), cas.ProbeUnknown, cas.Ambiguous, "did not answer"},
		"reset":                               {wiretest.ResetAfterRequest(), cas.ProbeUnknown, cas.Ambiguous, "did not answer"},
		"412 for a fresh key":                 {s3Error(412, "PreconditionFailed"), cas.ProbeUnknown, cas.Ambiguous, "refused"},
	} {
		t.Run(name, func(t *testing.T) {
			// One write, and then the removal of what it may have left.
			srv := wiretest.Start(t, tt.answer, bare(204))
			r := probe(t.Context(), s3.Config{Bucket: "bkt", EndpointURL: srv.URL()})
			if r.Verdict != tt.verdict || cas.ClassOf(r.Err()) != tt.class || !strings.Contains(r.Err().Error(), tt.text) {
				t.Errorf("%s, %v", r.Verdict, r.Err())
			}
			sent := srv.Requests()
			if len(sent) != 2 || sent[0].Method != "PUT" || sent[0].Header.Get("If-None-Match") != "*" || sent[1].Method != "DELETE" {
				t.Errorf("%d requests: %+v", len(sent), sent)
			}
		})
	}
}

func TestARemovalIsOneRequestAndItsRefusalNamesThePermission(t *testing.T) {
	isolate(t)
	for name, tt := range map[string]struct {
		answer wiretest.Answer
		want   cas.Class
	}{
		"204":                          {bare(204), ""},
		"404 NoSuchKey":                {s3Error(404, "NoSuchKey"), ""},
		"404 NoSuchBucket":             {s3Error(404, "NoSuchBucket"), cas.NoBucket},
		"404 of something else":        {html404, cas.Ambiguous},
		"403":                          {s3Error(403, "AccessDenied"), cas.Denied},
		"500":                          {s3Error(500, "InternalError"), cas.Ambiguous},
		"412, a condition nobody sent": {bare(412), cas.Ambiguous},
	} {
		t.Run(name, func(t *testing.T) {
			srv := wiretest.Start(t, tt.answer)
			err := open(t, s3.Config{Bucket: "bkt", EndpointURL: srv.URL()}).Scratch(key).Remove(t.Context(), "x-1")
			if cas.ClassOf(err) != tt.want {
				t.Fatalf("%v, want %q", err, tt.want)
			}
			if tt.want == cas.Denied && !strings.Contains(err.Error(), "s3:DeleteObject") {
				t.Errorf("no permission is named: %v", err)
			}
			if sent := srv.Requests(); len(sent) != 1 || sent[0].Method != "DELETE" || sent[0].Path() != "/bkt/"+key+".probe/x-1" {
				t.Errorf("%+v", sent)
			}
		})
	}
}
