package s3_test

import (
	"strings"
	"sync/atomic"
	"testing"

	"github.com/sf2loki/sf2loki-ha/cas"
	"github.com/sf2loki/sf2loki-ha/cas/s3"
	"github.com/sf2loki/sf2loki-ha/internal/wiretest"
)

// A status without S3's own words comes from anything on the way. Whatever it
// is, also one that nobody has heard of (499 of a proxy whose client left): it is
// never absence, never success, and a loss only where it says that the condition
// failed.
func TestNoBareStatusIsAbsenceOrSuccessAndFewAreDefinite(t *testing.T) {
	isolate(t)
	var status atomic.Int64
	srv := wiretest.StartFunc(t, func(wiretest.Request) wiretest.Answer { return wiretest.Respond(int(status.Load()), "") })
	r := open(t, s3.Config{Bucket: "bkt", EndpointURL: srv.URL()}).Register(key)
	definite := map[int]cas.Class{401: cas.Denied, 403: cas.Denied, 412: cas.Conflict, 501: cas.Unsupported}
	for code := 200; code < 600; code++ {
		status.Store(int64(code))
		for _, op := range ops {
			before := srv.Attempts()
			_, err := op.run(t.Context(), r)
			got := cas.ClassOf(err)
			want, ok := definite[code]
			switch {
			case code == 412 && op.name == "load", code < 300:
				want, ok = cas.Ambiguous, true
			case code < 400 && code >= 300:
				continue // redirects and "not modified": another row of docs/errors.md
			}
			if ok && got != want || !ok && got != cas.Ambiguous && got != cas.Contended {
				t.Errorf("%d to a %s: %q, want %q", code, op.name, got, want)
			}
			if n := srv.Attempts() - before; n != 1 {
				t.Errorf("%d to a %s: %d requests", code, op.name, n)
			}
		}
	}
}

// What is refused names every permission that such a request needs, and no other
// that a lease must not have.
func TestADenialNamesEveryPermissionTheRequestNeeds(t *testing.T) {
	isolate(t)
	srv := wiretest.StartFunc(t, func(wiretest.Request) wiretest.Answer { return s3Error(403, "AccessDenied") })
	r := open(t, s3.Config{Bucket: "bkt", EndpointURL: srv.URL()}).Register(key)
	needs := map[string][]string{
		"load":    {"s3:GetObject", "s3:ListBucket"}, // without it a missing key is a 403
		"create":  {"s3:PutObject", "kms:GenerateDataKey"},
		"replace": {"s3:PutObject", "s3:GetObject", "kms:GenerateDataKey"}, // If-Match reads
	}
	for _, op := range ops {
		_, err := op.run(t.Context(), r)
		e := class(t, op.name, err, cas.Denied)
		for _, permission := range needs[op.name] {
			if !strings.Contains(e.Hint, permission) {
				t.Errorf("%s: %q does not name %s", op.name, e.Hint, permission)
			}
		}
		if strings.Contains(e.Hint, "Delete") {
			t.Errorf("%s: %q: a lease is never deleted", op.name, e.Hint)
		}
	}
}
