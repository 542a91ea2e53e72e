package gcs_test

import (
	"context"
	"net/url"
	"testing"
	"time"

	"github.com/sf2loki/sf2loki-ha/cas"
	"github.com/sf2loki/sf2loki-ha/cas/castest"
	"github.com/sf2loki/sf2loki-ha/cas/gcs"
	"github.com/sf2loki/sf2loki-ha/internal/testservers"
	"github.com/sf2loki/sf2loki-ha/internal/wiretest"
)

// The times are decades away from this machine's own.
const (
	noon   = "Date: Sat, 01 Jan 2050 12:00:00 GMT"
	eleven = "Last-Modified: Sat, 01 Jan 2050 11:00:00 GMT"
)

func download(generation string, header ...string) wiretest.Answer {
	return wiretest.Respond(200, doc, append(header, "X-Goog-Generation: "+generation)...)
}

func metadata(generation, created, updated string) wiretest.Answer {
	return wiretest.Respond(200, `{"kind":"storage#object","generation":"`+generation+`","timeCreated":"`+created+`","updated":"`+updated+`"}`,
		"Content-Type: application/json", noon)
}

func TestTheAgeIsDateMinusLastModifiedWhateverTimeItIsHere(t *testing.T) {
	isolate(t)
	for what, tt := range map[string]struct {
		header []string
		want   time.Duration
	}{
		"an hour":                     {[]string{noon, eleven}, time.Hour},
		"an hour, in the past":        {[]string{"Date: Fri, 01 Jan 1999 12:00:00 GMT", "Last-Modified: Fri, 01 Jan 1999 11:00:00 GMT"}, time.Hour},
		"no Date":                     {[]string{eleven}, 0},
		"no Last-Modified":            {[]string{noon}, 0},
		"neither":                     {nil, 0},
		"written in the future":       {[]string{noon, "Last-Modified: Sat, 01 Jan 2050 12:00:01 GMT"}, 0},
		"garbage as Date":             {[]string{"Date: noon", eleven}, 0},
		"garbage as Last-Modified":    {[]string{noon, "Last-Modified: yesterday"}, 0},
		"Last-Modified without value": {[]string{noon, "Last-Modified: "}, 0},
	} {
		t.Run(what, func(t *testing.T) {
			srv := wiretest.Start(t, download(generation, tt.header...))
			v, err := open(t, gcs.Config{Bucket: "bkt", EndpointURL: srv.URL()}).Register(name).Load(t.Context())
			if err != nil || string(v.Data) != doc || v.Version != generation {
				t.Fatalf("%q %q %v: the answer is good whatever its times are", v.Data, v.Version, err)
			}
			if v.Age != tt.want {
				t.Errorf("age %v, want %v", v.Age, tt.want)
			}
			if n := srv.Attempts(); n != 1 {
				t.Errorf("%d requests, want 1: nobody asked for the age", n)
			}
		})
	}
}

// The service's own downloads have no Last-Modified.
func TestARegisterThatIsAskedForTheAgeReadsTheMetadataOncePerGeneration(t *testing.T) {
	isolate(t)
	const later, next = "Date: Sat, 01 Jan 2050 12:10:00 GMT", "1764532800999999"
	srv := wiretest.Start(t,
		download(generation, noon), metadata(generation, "2050-01-01T11:00:00.250Z", "2050-01-01T11:00:00.250Z"),
		download(generation, later),
		download(next, later), metadata(next, "2050-01-01T12:00:00Z", "2050-01-01T12:05:00Z"),
		download(next, later),
		download(next, later, "Last-Modified: Sat, 01 Jan 2050 12:09:00 GMT"))
	r := cas.Aged(open(t, gcs.Config{Bucket: "bkt", EndpointURL: srv.URL()}), name)
	for i, want := range []time.Duration{
		time.Hour - 250*time.Millisecond, // and a second request
		70*time.Minute - 250*time.Millisecond,
		5 * time.Minute, // somebody patched the metadata
		5 * time.Minute,
		time.Minute, // a store that says it in the download
	} {
		v, err := r.Load(t.Context())
		if err != nil || string(v.Data) != doc || v.Age != want {
			t.Errorf("load %d: %q, age %v, %v; want %v", i+1, v.Data, v.Age, err, want)
		}
	}
	if n := srv.Attempts(); n != 7 {
		t.Errorf("%d requests, want 7", n)
	}
	req := srv.Requests()[1]
	u, err := url.Parse(req.Target)
	if err != nil || req.Method != "GET" || req.Path() != "/storage/v1/b/bkt/o/sf2loki%2Fleader.lease" || u.Query().Get("alt") != "json" {
		t.Errorf("%s %s, %v", req.Method, req.Target, err)
	}
}

func TestMetadataThatCannotBeReadLeavesTheAgeOpenAndIsAskedForAgain(t *testing.T) {
	isolate(t)
	for what, answer := range map[string]wiretest.Answer{
		"denied":             jsonError(403, "forbidden", "no"),
		"gone":               jsonError(404, "notFound", noObject),
		"throttled":          jsonError(429, "rateLimitExceeded", "slow"),
		"an error":           bare(503),
		"reset":              wiretest.ResetAfterRequest(),
		"a login page":       text(200, "<html>"),
		"another generation": metadata("1764532800999999", "2050-01-01T11:00:00Z", "2050-01-01T11:00:00Z"),
		"half of it":         metadata(generation, "2050-01-01T11:00:00Z", "2050-01-01T11:00:00Z").Cut(40),
		"silence":            wiretest.Hang(),
	} {
		t.Run(what, func(t *testing.T) {
			// net/http sends a GET again if the connection it kept turns out to be dead.
			first := download(generation, noon, "Connection: close")
			srv := wiretest.Start(t, first, answer, first, metadata(generation, "2050-01-01T11:00:00Z", "2050-01-01T11:00:00Z"))
			r := open(t, gcs.Config{Bucket: "bkt", EndpointURL: srv.URL()}).Aged(name)
			for i, want := range []time.Duration{0, time.Hour} {
				ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
				if what == "silence" && i == 0 {
					ctx, cancel = context.WithTimeout(t.Context(), 500*time.Millisecond)
				}
				v, err := r.Load(ctx)
				cancel()
				if err != nil || string(v.Data) != doc || v.Version != generation || v.Age != want {
					t.Errorf("%q %q, age %v, %v; want the download's answer and age %v", v.Data, v.Version, v.Age, err, want)
				}
			}
			if n := srv.Attempts(); n != 4 {
				t.Errorf("%d requests, want 4", n)
			}
		})
	}
}

func TestFakeGCSServerSaysWhenItWrote(t *testing.T) {
	isolate(t)
	srv := testservers.StartGCS(t)
	castest.Ages(t, func(t *testing.T) cas.Bucket {
		return open(t, gcs.Config{Bucket: srv.Bucket, EndpointURL: srv.Endpoint})
	})
}
