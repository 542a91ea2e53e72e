package gcs_test

import (
	"fmt"
	"net/url"
	"strings"
	"testing"

	"github.com/sf2loki/sf2loki-ha/cas"
	"github.com/sf2loki/sf2loki-ha/cas/gcs"
	"github.com/sf2loki/sf2loki-ha/internal/wiretest"
)

// The bare text is what emulators say for object and bucket alike, and what the
// service said for buckets.
func TestABareNotFoundIsSettledByAListing(t *testing.T) {
	isolate(t)
	listing := func(names ...string) wiretest.Answer {
		var items []string
		for _, n := range names {
			items = append(items, fmt.Sprintf(`{"name":%q}`, n))
		}
		return wiretest.Respond(200, `{"kind":"storage#objects","items":[`+strings.Join(items, ",")+`]}`, "Content-Type: application/json")
	}
	// The connection is not used again: net/http re-sends a GET whose reused
	// connection fails, which would blur the count of attempts.
	const last = "Connection: close"
	for _, first := range []wiretest.Answer{
		wiretest.Respond(404, "Not Found\n", last),
		wiretest.Respond(404, `{"error":{"code":404,"message":"Not Found","errors":[{"reason":"notFound","message":"Not Found"}]}}`, last),
	} {
		for what, tt := range map[string]struct {
			second wiretest.Answer
			want   cas.Class
		}{
			"empty listing":             {listing(), cas.NotFound},
			"a longer name":             {listing(name + ".request"), cas.NotFound},
			"the name itself":           {listing(name), cas.Ambiguous},
			"bucket does not exist":     {jsonError(404, "notFound", noBucket), cas.NoBucket},
			"bare 404 again":            {jsonError(404, "notFound", "Not Found"), cas.NoBucket},
			"404 of a proxy":            {text(404, "nothing here"), cas.Ambiguous},
			"listing denied":            {jsonError(403, "forbidden", "no list"), cas.Denied},
			"listing throttled":         {jsonError(429, "rateLimitExceeded", "slow"), cas.Contended},
			"listing fails":             {bare(503), cas.Ambiguous},
			"listing reset":             {wiretest.ResetAfterRequest(), cas.Ambiguous},
			"listing of a login page":   {text(200, "<html>"), cas.Ambiguous},
			"listing of something else": {wiretest.Respond(200, `[]`), cas.Ambiguous},
		} {
			t.Run(what, func(t *testing.T) {
				srv := wiretest.Start(t, first, tt.second)
				r := open(t, gcs.Config{Bucket: "bkt", EndpointURL: srv.URL()}).Register(name)
				_, err := r.Load(t.Context())
				checkClass(t, err, tt.want, "load", r)
				if n := srv.Attempts(); n != 2 {
					t.Fatalf("%d attempts, want 2", n)
				}
				req := srv.Requests()[1]
				u, _ := url.Parse(req.Target)
				if req.Method != "GET" || req.Path() != "/storage/v1/b/bkt/o" || u.Query().Get("prefix") != name || u.Query().Get("maxResults") != "1" {
					t.Errorf("%s %s", req.Method, req.Target)
				}
			})
		}
	}
	for _, op := range ops[1:] { // a write can miss nothing but its bucket
		t.Run(op.name, func(t *testing.T) {
			srv := wiretest.Start(t, text(404, "Not Found"))
			_, err := op.run(t.Context(), open(t, gcs.Config{Bucket: "bkt", EndpointURL: srv.URL()}).Register(name))
			class(t, op.name, err, cas.NoBucket)
		})
	}
}
