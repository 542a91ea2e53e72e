package k8slease_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/sf2loki/sf2loki-ha/cas"
	"github.com/sf2loki/sf2loki-ha/coordinator/k8slease"
	"github.com/sf2loki/sf2loki-ha/internal/wiretest"
)

// answers are those that mean the same whatever was asked.
func answers() map[string]struct {
	answer wiretest.Answer
	class  cas.Class
	hint   string
} {
	type row = struct {
		answer wiretest.Answer
		class  cas.Class
		hint   string
	}
	now := "Retry-After: 1"
	return map[string]row{
		"401":                        {status(401, "Unauthorized", ""), cas.Denied, "credentials"},
		"403":                        {status(403, "Forbidden", "leases/leader"), cas.Denied, "in namespace logs"},
		"404 of a proxy":             {wiretest.Respond(404, "404 page not found", "Content-Type: text/plain"), cas.Ambiguous, "API server"},
		"404 without a type":         {wiretest.Respond(404, ""), cas.Ambiguous, "API server"},
		"404 in JSON":                {wiretest.Respond(404, `{"error":"no route"}`, asJSON), cas.Ambiguous, "API server"},
		"404 of another lease":       {status(404, "NotFound", "leases/other"), cas.Ambiguous, "API server"},
		"404 of the namespace":       {status(404, "NotFound", "namespaces/logs"), cas.NoBucket, "create namespace logs"},
		"400":                        {status(400, "BadRequest", ""), cas.Denied, "refuses"},
		"422":                        {status(422, "Invalid", "leases/leader"), cas.Denied, "refuses"},
		"400 of a proxy":             {wiretest.Respond(400, "bad", "Content-Type: text/plain"), cas.Ambiguous, ""},
		"429":                        {status(429, "TooManyRequests", "", now), cas.Contended, ""},
		"500":                        {status(500, "InternalError", "", now), cas.Ambiguous, ""},
		"502":                        {wiretest.Respond(502, "<html>", "Content-Type: text/html", now), cas.Ambiguous, ""},
		"503":                        {status(503, "ServiceUnavailable", "", now), cas.Ambiguous, ""},
		"504":                        {status(504, "Timeout", "", now), cas.Ambiguous, ""},
		"301":                        {wiretest.Respond(301, "", "Location: http://127.0.0.1:1/elsewhere"), cas.NoBucket, "redirect"},
		"reset before the request":   {wiretest.ResetAtOnce(), cas.Ambiguous, ""},
		"reset after the request":    {wiretest.ResetAfterRequest(), cas.Ambiguous, ""},
		"success that is no lease":   {wiretest.Respond(200, `{"kind":"Pod"}`, asJSON), cas.Ambiguous, "API server"},
		"success without a version":  {wiretest.Respond(200, `{"kind":"Lease","apiVersion":"coordination.k8s.io/v1","metadata":{"name":"leader","uid":"u"}}`, asJSON), cas.Ambiguous, "API server"},
		"success without an uid":     {wiretest.Respond(200, `{"kind":"Lease","apiVersion":"coordination.k8s.io/v1","metadata":{"name":"leader","resourceVersion":"1"}}`, asJSON), cas.Ambiguous, "API server"},
		"success of another lease":   {wiretest.Respond(200, `{"kind":"Lease","apiVersion":"coordination.k8s.io/v1","metadata":{"name":"x","uid":"u","resourceVersion":"1"}}`, asJSON), cas.Ambiguous, "API server"},
		"success without a body":     {wiretest.Respond(200, ""), cas.Ambiguous, "API server"},
		"success in HTML":            {wiretest.Respond(200, "<html>", "Content-Type: text/html"), cas.Ambiguous, "API server"},
		"accepted, not done":         {wiretest.Respond(202, "{}", asJSON), cas.Ambiguous, ""},
		"half a body":                {wiretest.Respond(200, `{"kind":"Lease","apiVersion":"coordination.k8s.io/v1"}`, asJSON).Cut(20), cas.Ambiguous, ""},
		"half a body of an error":    {status(403, "Forbidden", "leases/leader").Cut(20), cas.Ambiguous, ""},
		"a type that cannot be read": {wiretest.Respond(200, "{}", "Content-Type: ;;"), cas.Ambiguous, ""},
	}
}

func TestEachAnswerOfKubernetesHasItsClassAndIsAskedForOnce(t *testing.T) {
	held := object(t, record("w1"), "10")
	old := version(t, held)
	for name, tt := range answers() {
		t.Run(name, func(t *testing.T) {
			t.Run("read", func(t *testing.T) {
				s, srv := scripted(t, tt.answer)
				_, err := s.Read(t.Context())
				hinted(t, refused(t, err, tt.class, "read"), tt.hint)
				attempts(t, srv, 1)
			})
			t.Run("create", func(t *testing.T) {
				s, srv := scripted(t, tt.answer)
				_, err := s.Create(t.Context(), record("w1"))
				hinted(t, refused(t, err, tt.class, "create"), tt.hint)
				attempts(t, srv, 1)
			})
			t.Run("read of a replace", func(t *testing.T) {
				s, srv := scripted(t, tt.answer)
				_, err := s.Replace(t.Context(), record("w2"), old)
				hinted(t, refused(t, err, tt.class, "replace"), tt.hint)
				attempts(t, srv, 1)
			})
			t.Run("update of a replace", func(t *testing.T) {
				s, srv := scripted(t, is(t, 200, held), tt.answer)
				_, err := s.Replace(t.Context(), record("w2"), old)
				hinted(t, refused(t, err, tt.class, "replace"), tt.hint)
				attempts(t, srv, 2)
				for _, r := range srv.Requests() {
					if r.Method == http.MethodPut && sentVersion(t, r) != "10" {
						t.Errorf("update on resourceVersion %q", sentVersion(t, r))
					}
				}
			})
			t.Run("second read of a replace", func(t *testing.T) {
				// A refusal to read says nothing about the update before it.
				s, srv := scripted(t, is(t, 200, held), status(409, "Conflict", "leases/leader"), tt.answer, tt.answer)
				_, err := s.Replace(t.Context(), record("w2"), old)
				hinted(t, refused(t, err, cas.Ambiguous, "replace"), tt.hint)
				want := 3
				if strings.HasPrefix(name, "reset") {
					want = 4 // net/http sends a GET again if the connection it kept turns out to be dead
				}
				attempts(t, srv, want)
			})
		})
	}
}

func TestAbsenceIsKubernetesOwnWordAboutThisLease(t *testing.T) {
	gone := status(404, "NotFound", "leases/leader")
	held := object(t, record("w1"), "10")
	old := version(t, held)
	s, srv := scripted(t, gone)
	_, err := s.Read(t.Context())
	refused(t, err, cas.NotFound, "read")
	attempts(t, srv, 1)

	for name, script := range map[string][]wiretest.Answer{
		"before the update":   {gone},
		"at the update":       {is(t, 200, held), gone},
		"after a 409 to it":   {is(t, 200, held), status(409, "Conflict", "leases/leader"), gone},
		"and made again, 409": {is(t, 200, held), status(409, "Conflict", "leases/leader"), is(t, 200, put(held, "metadata.uid", "uid-2"))},
	} {
		t.Run("gone "+name+" is a conflict", func(t *testing.T) {
			s, srv := scripted(t, script...)
			_, err := s.Replace(t.Context(), record("w2"), old)
			refused(t, err, cas.Conflict, "replace")
			attempts(t, srv, len(script))
		})
	}
	t.Run("of a create is not", func(t *testing.T) {
		s, _ := scripted(t, gone)
		_, err := s.Create(t.Context(), record("w1"))
		refused(t, err, cas.Ambiguous, "create")
	})
}

func TestALeaseThatExistsIsAConflictToACreate(t *testing.T) {
	s, srv := scripted(t, status(409, "AlreadyExists", "leases/leader"))
	_, err := s.Create(t.Context(), record("w1"))
	refused(t, err, cas.Conflict, "create")
	attempts(t, srv, 1)
	// Any other 409 says nothing definite.
	s, _ = scripted(t, status(409, "Conflict", "leases/leader"))
	_, err = s.Create(t.Context(), record("w1"))
	refused(t, err, cas.Contended, "create")
}

func TestA409ThatIsSomebodysMetadataIsAskedAgainOnTheNewResourceVersion(t *testing.T) {
	held := object(t, record("w1"), "10")
	old := version(t, held)
	conflict := status(409, "Conflict", "leases/leader")
	labelled := func(rv string) map[string]any {
		return put(put(held, "metadata.resourceVersion", rv), "metadata.labels", map[string]any{"seen": rv})
	}
	s, srv := scripted(t, is(t, 200, held), conflict, is(t, 200, labelled("11")), conflict, is(t, 200, labelled("12")), is(t, 200, object(t, record("w2"), "13")))
	got, err := s.Replace(t.Context(), record("w2"), old)
	if err != nil || got == old || got == "" {
		t.Fatalf("%q, %v", got, err)
	}
	if want := version(t, object(t, record("w2"), "99")); got != want {
		t.Errorf("version %q, a reader says %q", got, want)
	}
	if m := methods(srv); m != "GET PUT GET PUT GET PUT" {
		t.Errorf("requests: %s", m)
	}
	for i, want := range map[int]string{1: "10", 3: "11", 5: "12"} {
		if got := sentVersion(t, srv.Requests()[i]); got != want {
			t.Errorf("update %d on resourceVersion %q, want %q", i, got, want)
		}
	}
	if body := string(srv.Requests()[5].Body); !strings.Contains(body, `"seen":"12"`) {
		t.Errorf("the label was lost: %s", body)
	}
}

func TestA409WithAnotherHolderOrWriteIsADefiniteConflict(t *testing.T) {
	held := object(t, record("w1"), "10")
	old := version(t, held)
	theirs := record("w9")
	theirs.Holder, theirs.Incarnation, theirs.Epoch = "pod-2", "inc-2", 8
	for name, now := range map[string]map[string]any{
		"another replica":                object(t, theirs, "11"),
		"an earlier call's write":        object(t, record("w0"), "11"),
		"other software":                 put(held, "spec.holderIdentity", "controller-0"),
		"other software, no annotations": put(put(held, "metadata.annotations", nil), "spec.holderIdentity", "upstream-0"),
		"a renewal by other software":    put(held, "spec.renewTime", "2026-11-30T12:00:09.000000Z"),
		"a damaged record":               put(held, "metadata.annotations", map[string]any{k8slease.Annotation: "{"}),
	} {
		t.Run(name, func(t *testing.T) {
			s, srv := scripted(t, is(t, 200, held), status(409, "Conflict", "leases/leader"), is(t, 200, now))
			_, err := s.Replace(t.Context(), record("w2"), old)
			refused(t, err, cas.Conflict, "replace")
			attempts(t, srv, 3)
			// And without an update where the first read shows it.
			s, srv = scripted(t, is(t, 200, now))
			_, err = s.Replace(t.Context(), record("w2"), old)
			refused(t, err, cas.Conflict, "replace")
			attempts(t, srv, 1)
		})
	}
}

func TestA409ToAnUpdateThatLandedIsSuccess(t *testing.T) {
	// A proxy sent the update twice: the second was refused because of the first.
	held, ours := object(t, record("w1"), "10"), object(t, record("w2"), "11")
	s, srv := scripted(t, is(t, 200, held), status(409, "Conflict", "leases/leader"), is(t, 200, ours))
	got, err := s.Replace(t.Context(), record("w2"), version(t, held))
	if err != nil || got != version(t, ours) {
		t.Errorf("%q, %v", got, err)
	}
	attempts(t, srv, 3)
}

func TestAnUpdateWithoutAnAnswerIsNeverSentAgainInTheSameCall(t *testing.T) {
	held := object(t, record("w1"), "10")
	old := version(t, held)
	for name, lost := range map[string]wiretest.Answer{
		"reset": wiretest.ResetAfterRequest(), "503": status(503, "ServiceUnavailable", "", "Retry-After: 0"), "half": is(t, 200, held).Cut(30),
	} {
		t.Run(name, func(t *testing.T) {
			s, srv := scripted(t, is(t, 200, held), status(409, "Conflict", "leases/leader"), is(t, 200, held), lost)
			_, err := s.Replace(t.Context(), record("w2"), old)
			refused(t, err, cas.Ambiguous, "replace")
			attempts(t, srv, 4)
		})
	}
}

func TestASuccessThatDoesNotShowTheWriteIsNone(t *testing.T) {
	held := object(t, record("w1"), "10")
	s, _ := scripted(t, is(t, 200, held), is(t, 200, put(object(t, record("w2"), "11"), "spec.holderIdentity", "webhook")))
	_, err := s.Replace(t.Context(), record("w2"), version(t, held))
	hinted(t, refused(t, err, cas.Ambiguous, "replace"), "webhook")
	s, _ = scripted(t, is(t, 201, object(t, record("w0"), "1")))
	_, err = s.Create(t.Context(), record("w1"))
	hinted(t, refused(t, err, cas.Ambiguous, "create"), "webhook")
}

func TestA409WithoutEndEndsWithTheCall(t *testing.T) {
	held := object(t, record("w1"), "10")
	old := version(t, held)
	script := make([]wiretest.Answer, 0, 2000)
	for range 1000 {
		script = append(script, is(t, 200, held), wiretest.Respond(409, "busy", "Content-Type: text/plain"))
	}
	s, srv := scripted(t, script...)
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	_, err := s.Replace(ctx, record("w2"), old)
	if refused(t, err, cas.Ambiguous, "replace"); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%v", err)
	}
	if n := srv.Attempts(); n < 4 || n > 40 {
		t.Errorf("%d requests in 300 ms", n)
	}
}

func TestACallEndsWithItsContext(t *testing.T) {
	held := object(t, record("w1"), "10")
	old := version(t, held)
	for name, tt := range map[string]struct {
		script []wiretest.Answer
		call   func(context.Context, *k8slease.Store) error
	}{
		"read":   {[]wiretest.Answer{wiretest.Hang()}, func(ctx context.Context, s *k8slease.Store) error { _, err := s.Read(ctx); return err }},
		"create": {[]wiretest.Answer{wiretest.Hang()}, func(ctx context.Context, s *k8slease.Store) error { _, err := s.Create(ctx, record("w1")); return err }},
		"replace": {[]wiretest.Answer{is(t, 200, held), wiretest.Hang()}, func(ctx context.Context, s *k8slease.Store) error {
			_, err := s.Replace(ctx, record("w2"), old)
			return err
		}},
	} {
		t.Run(name, func(t *testing.T) {
			s, srv := scripted(t, append(tt.script, is(t, 200, held))...)
			ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
			defer cancel()
			err := tt.call(ctx, s)
			if refused(t, err, cas.Ambiguous, name); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("%v", err)
			}
			attempts(t, srv, len(tt.script))
			// The silent connection went with the call.
			if _, err := s.Read(t.Context()); err != nil {
				t.Errorf("the call after it: %v", err)
			}
		})
	}
	s, srv := scripted(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := s.Read(ctx)
	refused(t, err, cas.Ambiguous, "read")
	attempts(t, srv, 0)
}
