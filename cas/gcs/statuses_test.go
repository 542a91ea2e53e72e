package gcs_test

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/sf2loki/sf2loki-ha/cas"
	"github.com/sf2loki/sf2loki-ha/cas/gcs"
	"github.com/sf2loki/sf2loki-ha/internal/wiretest"
)

// calls are the three calls of a register.
var calls = map[string]func(context.Context, cas.Register) error{
	"load":   func(ctx context.Context, r cas.Register) error { _, err := r.Load(ctx); return err },
	"create": func(ctx context.Context, r cas.Register) error { _, err := r.Create(ctx, []byte("{}")); return err },
	"replace": func(ctx context.Context, r cas.Register) error {
		_, err := r.Replace(ctx, []byte("{}"), "7")
		return err
	},
}

// A status without Google's own words comes from anything on the way. Whatever
// it is: it is never absence, never success, and a loss only where it says that
// the condition failed; and the library tries nothing again.
func TestNoBareStatusIsAbsenceOrSuccessAndFewAreDefinite(t *testing.T) {
	isolate(t)
	var status atomic.Int64
	srv := wiretest.StartFunc(t, func(wiretest.Request) wiretest.Answer { return wiretest.Respond(int(status.Load()), "") })
	r := open(t, gcs.Config{Bucket: "bkt", EndpointURL: srv.URL()}).Register("k")
	definite := map[int]cas.Class{401: cas.Denied, 403: cas.Denied, 412: cas.Conflict, 501: cas.Unsupported}
	for code := 200; code < 600; code++ {
		status.Store(int64(code))
		for name, call := range calls {
			before := srv.Attempts()
			got := cas.ClassOf(call(t.Context(), r))
			want, ok := definite[code]
			switch {
			case code == 412 && name == "load", code < 300:
				want, ok = cas.Ambiguous, true
			case code >= 300 && code < 400:
				continue // another row of docs/errors.md
			}
			if ok && got != want || !ok && got != cas.Ambiguous && got != cas.Contended {
				t.Errorf("%d to a %s: %q, want %q", code, name, got, want)
			}
			if n := srv.Attempts() - before; n != 1 {
				t.Errorf("%d to a %s: %d requests", code, name, n)
			}
		}
	}
}

// What is refused names every permission that such a request needs.
func TestADenialNamesEveryPermissionTheRequestNeeds(t *testing.T) {
	isolate(t)
	srv := wiretest.StartFunc(t, func(wiretest.Request) wiretest.Answer { return wiretest.Respond(403, "") })
	r := open(t, gcs.Config{Bucket: "bkt", EndpointURL: srv.URL()}).Register("k")
	needs := map[string][]string{
		"load":    {"storage.objects.get", "storage.objects.list"},
		"create":  {"storage.objects.create"},
		"replace": {"storage.objects.create", "storage.objects.delete"}, // overwriting is both
	}
	for name, call := range calls {
		e := class(t, name, call(t.Context(), r), cas.Denied)
		for _, permission := range needs[name] {
			if !strings.Contains(e.Hint, permission) {
				t.Errorf("%s: %q does not name %s", name, e.Hint, permission)
			}
		}
	}
}
