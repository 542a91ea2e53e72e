package k8slease_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/sf2loki/sf2loki-ha/cas"
	"github.com/sf2loki/sf2loki-ha/coordinator/k8slease"
	"github.com/sf2loki/sf2loki-ha/internal/wiretest"
)

const holdA, holdB = `{"hold":"a"}`, `{"hold":"b"}`

// requested is a held Lease with that request on it and a field of somebody else.
func requested(t *testing.T, request, resourceVersion string) map[string]any {
	t.Helper()
	o := put(object(t, record("w1"), resourceVersion), "metadata.labels", map[string]any{"team": "logs"})
	o["metadata"].(map[string]any)["annotations"].(map[string]any)[k8slease.RequestAnnotation] = request
	return o
}

// requests opens the requests of a store on a server that gives these answers.
func requests(t *testing.T, script ...wiretest.Answer) (cas.Register, *wiretest.Server) {
	t.Helper()
	s, srv := scripted(t, script...)
	return s.Requests(), srv
}

// notDone checks the class of an error of the register, and what it names.
func notDone(t *testing.T, err error, class cas.Class, op string) *cas.Error {
	t.Helper()
	var e *cas.Error
	if !errors.As(err, &e) || e.Class != class || e.Op != op || e.Object != "k8s://logs/leader#sf2loki.io/lease-request" {
		t.Fatalf("%v; want %s of %s", err, class, op)
	}
	if strings.Contains(err.Error(), "hunter2") {
		t.Errorf("an error with a credential: %v", err)
	}
	return e
}

// requestVersion is the version that a load of this request has.
func requestVersion(t *testing.T, request string) cas.Version {
	t.Helper()
	r, _ := requests(t, is(t, 200, requested(t, request, "1")))
	v, err := r.Load(t.Context())
	if err != nil || string(v.Data) != request || v.Version == "" {
		t.Fatalf("%q, version %q, %v", v.Data, v.Version, err)
	}
	return v.Version
}

var conflict409 = status(409, "Conflict", "leases/leader")

func TestARequestIsAnAnnotationOfTheLease(t *testing.T) {
	bare := object(t, record("w1"), "10")
	held := requested(t, holdA, "11")
	a, b := requestVersion(t, holdA), requestVersion(t, holdB)
	if a == b {
		t.Fatal("two requests have one version")
	}
	s, srv := scripted(t,
		is(t, 200, bare),
		is(t, 200, bare), is(t, 200, held),
		is(t, 200, held), is(t, 200, requested(t, holdB, "12")))
	r := s.Requests()
	_, err := r.Load(t.Context())
	notDone(t, err, cas.NotFound, "load")
	if v, err := r.Create(t.Context(), []byte(holdA)); err != nil || v != a {
		t.Errorf("create: %q, %v", v, err)
	}
	if v, err := r.Replace(t.Context(), []byte(holdB), a); err != nil || v != b {
		t.Errorf("replace: %q, %v", v, err)
	}
	if m := methods(srv); m != "GET GET PUT GET PUT" {
		t.Errorf("requests: %s", m)
	}
	for i, want := range map[int]struct {
		read    map[string]any
		request string
	}{2: {bare, holdA}, 4: {held, holdB}} {
		req := srv.Requests()[i]
		// Everything that was read goes back as it was, but for the annotation.
		o := put(want.read, "metadata.annotations", nil)
		annotations := map[string]any{k8slease.RequestAnnotation: want.request}
		for k, v := range want.read["metadata"].(map[string]any)["annotations"].(map[string]any) {
			if k != k8slease.RequestAnnotation {
				annotations[k] = v
			}
		}
		var got, all any
		text, _ := json.Marshal(put(o, "metadata.annotations", annotations))
		if json.Unmarshal(req.Body, &got) != nil || json.Unmarshal(text, &all) != nil || !same(got, all) {
			t.Errorf("sent %s\nwant %s", req.Body, text)
		}
		if u, err := url.Parse(req.Target); err != nil || u.Query().Get("fieldManager") != "sf2loki-ha-request" || u.Path != path+"/leader" {
			t.Errorf("%s %s: a renewal's manager would make the request look young", req.Method, req.Target)
		}
	}
}

func same(a, b any) bool {
	x, _ := json.Marshal(a)
	y, _ := json.Marshal(b)
	return string(x) == string(y)
}

func TestEachAnswerToARequestHasItsClassAndIsAskedForOnce(t *testing.T) {
	bare, held := object(t, record("w1"), "10"), requested(t, holdA, "10")
	old := requestVersion(t, holdA)
	for name, tt := range answers() {
		t.Run(name, func(t *testing.T) {
			again := 3
			if strings.HasPrefix(name, "reset") {
				again = 4 // net/http sends a GET again if the connection it kept turns out to be dead
			}
			for _, c := range []struct {
				what, op string
				script   []wiretest.Answer
				class    cas.Class
				attempts int
			}{
				{"load", "load", []wiretest.Answer{tt.answer}, tt.class, 1},
				{"read of a create", "create", []wiretest.Answer{tt.answer}, tt.class, 1},
				{"read of a replace", "replace", []wiretest.Answer{tt.answer}, tt.class, 1},
				{"update of a create", "create", []wiretest.Answer{is(t, 200, bare), tt.answer}, tt.class, 2},
				{"update of a replace", "replace", []wiretest.Answer{is(t, 200, held), tt.answer}, tt.class, 2},
				{"second read of a create", "create", []wiretest.Answer{is(t, 200, bare), conflict409, tt.answer, tt.answer}, cas.Ambiguous, again},
				{"second read of a replace", "replace", []wiretest.Answer{is(t, 200, held), conflict409, tt.answer, tt.answer}, cas.Ambiguous, again},
			} {
				t.Run(c.what, func(t *testing.T) {
					r, srv := requests(t, c.script...)
					var err error
					switch c.op {
					case "load":
						_, err = r.Load(t.Context())
					case "create":
						_, err = r.Create(t.Context(), []byte(holdB))
					default:
						_, err = r.Replace(t.Context(), []byte(holdB), old)
					}
					hinted(t, notDone(t, err, c.class, c.op), tt.hint)
					attempts(t, srv, c.attempts)
				})
			}
		})
	}
}

func TestARequestNeedsALease(t *testing.T) {
	gone := status(404, "NotFound", "leases/leader")
	bare, held := object(t, record("w1"), "10"), requested(t, holdA, "10")
	old := requestVersion(t, holdA)
	r, _ := requests(t, gone)
	_, err := r.Load(t.Context())
	notDone(t, err, cas.NotFound, "load")
	for name, before := range map[string][]wiretest.Answer{"before": nil, "at the update": {is(t, 200, bare)}, "after a 409": {is(t, 200, bare), conflict409}} {
		r, srv := requests(t, append(before, gone)...)
		_, err := r.Create(t.Context(), []byte(holdA))
		if e := notDone(t, err, cas.NotFound, "create"); !strings.Contains(e.Hint, "start a replica") {
			t.Errorf("%s: hint %q", name, e.Hint)
		}
		if strings.Contains(methods(srv), "POST") {
			t.Error("the Lease was created")
		}
	}
	for name, before := range map[string][]wiretest.Answer{"before": nil, "at the update": {is(t, 200, held)}, "after a 409": {is(t, 200, held), conflict409}} {
		r, _ := requests(t, append(before, gone)...)
		_, err := r.Replace(t.Context(), []byte(holdB), old)
		if e := notDone(t, err, cas.Conflict, "replace"); !strings.Contains(e.Hint, "deleted") {
			t.Errorf("%s: hint %q", name, e.Hint)
		}
	}
}

func TestARequestThatIsNotAsTheCallerKnowsItIsAConflictWithoutAnUpdate(t *testing.T) {
	old := requestVersion(t, holdA)
	for name, now := range map[string]map[string]any{"another": requested(t, holdB, "10"), "an empty one": requested(t, "", "10")} {
		for _, before := range [][]wiretest.Answer{nil, {is(t, 200, object(t, record("w1"), "9")), conflict409}} {
			r, srv := requests(t, append(before, is(t, 200, now))...)
			_, err := r.Create(t.Context(), []byte(`{"hold":"c"}`))
			notDone(t, err, cas.Conflict, "create")
			attempts(t, srv, len(before)+1)
		}
		for _, before := range [][]wiretest.Answer{nil, {is(t, 200, requested(t, holdA, "9")), conflict409}} {
			r, srv := requests(t, append(before, is(t, 200, now))...)
			_, err := r.Replace(t.Context(), []byte(`{"hold":"c"}`), old)
			if notDone(t, err, cas.Conflict, "replace"); err == nil {
				t.Error(name)
			}
			attempts(t, srv, len(before)+1)
		}
	}
	r, _ := requests(t, is(t, 200, object(t, record("w1"), "10")))
	_, err := r.Replace(t.Context(), []byte(holdB), old)
	notDone(t, err, cas.Conflict, "replace") // taken away
	// The version of the absent one is none.
	r, _ = requests(t, is(t, 200, object(t, record("w1"), "10")))
	_, err = r.Replace(t.Context(), []byte(holdB), "")
	notDone(t, err, cas.Conflict, "replace")
}

func TestA409ThatIsARenewalIsAskedAgainOnTheNewResourceVersion(t *testing.T) {
	renewed := func(request, writeID, resourceVersion string) wiretest.Answer {
		o := object(t, record(writeID), resourceVersion)
		if request != "" {
			o["metadata"].(map[string]any)["annotations"].(map[string]any)[k8slease.RequestAnnotation] = request
		}
		return is(t, 200, o)
	}
	for _, op := range []string{"create", "replace"} {
		t.Run(op, func(t *testing.T) {
			was := map[string]string{"create": "", "replace": holdA}[op]
			r, srv := requests(t, renewed(was, "w1", "10"), conflict409, renewed(was, "w2", "11"), conflict409, renewed(was, "w3", "12"), renewed(holdB, "w3", "13"))
			var err error
			if op == "create" {
				_, err = r.Create(t.Context(), []byte(holdB))
			} else {
				_, err = r.Replace(t.Context(), []byte(holdB), requestVersion(t, holdA))
			}
			if err != nil {
				t.Fatal(err)
			}
			if m := methods(srv); m != "GET PUT GET PUT GET PUT" {
				t.Errorf("requests: %s", m)
			}
			for i, want := range map[int]string{1: "10", 3: "11", 5: "12"} {
				if got := sentVersion(t, srv.Requests()[i]); got != want {
					t.Errorf("update %d on resourceVersion %q, want %q", i, got, want)
				}
			}
			if body := string(srv.Requests()[5].Body); !strings.Contains(body, `\"write_id\":\"w3\"`) {
				t.Errorf("the renewal would be undone: %s", body)
			}
		})
	}
}

func TestA409ToARequestThatLandedIsSuccess(t *testing.T) {
	// A proxy sent the update twice: the second was refused because of the first.
	bare, a, b := object(t, record("w1"), "10"), requested(t, holdA, "10"), requested(t, holdB, "11")
	r, srv := requests(t, is(t, 200, bare), conflict409, is(t, 200, b))
	if v, err := r.Create(t.Context(), []byte(holdB)); err != nil || v != requestVersion(t, holdB) {
		t.Errorf("create: %q, %v", v, err)
	}
	attempts(t, srv, 3)
	r, srv = requests(t, is(t, 200, a), conflict409, is(t, 200, b))
	if v, err := r.Replace(t.Context(), []byte(holdB), requestVersion(t, holdA)); err != nil || v != requestVersion(t, holdB) {
		t.Errorf("replace: %q, %v", v, err)
	}
	attempts(t, srv, 3)
}

func TestA409WithoutEndIsContendedAfterSixteenUpdates(t *testing.T) {
	var script []wiretest.Answer
	for range 16 {
		script = append(script, is(t, 200, requested(t, holdA, "10")), conflict409)
	}
	r, srv := requests(t, script...)
	_, err := r.Replace(t.Context(), []byte(holdB), requestVersion(t, holdA))
	notDone(t, err, cas.Contended, "replace")
	attempts(t, srv, 32)
}

func TestARequestWithoutAnAnswerIsNotSentAgain(t *testing.T) {
	a := requested(t, holdA, "10")
	old := requestVersion(t, holdA)
	for name, lost := range map[string]wiretest.Answer{
		"reset":              wiretest.ResetAfterRequest(),
		"half":               is(t, 200, a).Cut(30),
		"another annotation": is(t, 200, a), // a webhook, or an answer that came from a cache
		"no annotation":      is(t, 200, object(t, record("w1"), "11")),
	} {
		t.Run(name, func(t *testing.T) {
			r, srv := requests(t, is(t, 200, a), lost)
			_, err := r.Replace(t.Context(), []byte(holdB), old)
			e := notDone(t, err, cas.Ambiguous, "replace")
			if strings.Contains(name, "annotation") {
				hinted(t, e, "webhook")
			}
			attempts(t, srv, 2)
		})
	}
}

func TestACallOnRequestsEndsWithItsContextAndWithItsStore(t *testing.T) {
	for op, call := range map[string]func(context.Context, cas.Register) error{
		"load":   func(ctx context.Context, r cas.Register) error { _, err := r.Load(ctx); return err },
		"create": func(ctx context.Context, r cas.Register) error { _, err := r.Create(ctx, []byte(holdA)); return err },
		"replace": func(ctx context.Context, r cas.Register) error {
			_, err := r.Replace(ctx, []byte(holdA), "v")
			return err
		},
	} {
		r, srv := requests(t, wiretest.Hang())
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		err := call(ctx, r)
		cancel()
		if notDone(t, err, cas.Ambiguous, op); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%v", err)
		}
		attempts(t, srv, 1)

		s, srv := scripted(t)
		r = s.Requests()
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		notDone(t, call(t.Context(), r), cas.Ambiguous, op)
		attempts(t, srv, 0)
	}
}

func TestWhatAnAnnotationCannotHoldIsDeniedAndNotSent(t *testing.T) {
	for name, data := range map[string]string{
		"bytes that are no text": "{\"hold\":\"\xff\"}",
		"too much":               strings.Repeat("x", 64<<10+1), // would push the record out
	} {
		t.Run(name, func(t *testing.T) {
			r, srv := requests(t)
			_, err := r.Create(t.Context(), []byte(data))
			notDone(t, err, cas.Denied, "create")
			_, err = r.Replace(t.Context(), []byte(data), "v")
			notDone(t, err, cas.Denied, "replace")
			attempts(t, srv, 0)
		})
	}
}

func TestTheRenewalsOfALeaderCarryTheRequestAlong(t *testing.T) {
	held := requested(t, holdA, "10")
	s, srv := scripted(t, is(t, 200, held), is(t, 200, put(object(t, record("w2"), "11"), "metadata.labels", nil)))
	if _, err := s.Replace(t.Context(), record("w2"), version(t, held)); err != nil {
		t.Fatal(err)
	}
	var sent struct {
		Metadata struct{ Annotations map[string]string }
	}
	req := srv.Requests()[1]
	if err := json.Unmarshal(req.Body, &sent); err != nil || req.Method != http.MethodPut || sent.Metadata.Annotations[k8slease.RequestAnnotation] != holdA {
		t.Errorf("%s %s, %v", req.Method, req.Body, err)
	}
	// And a request is no change of the lease.
	if a, b := version(t, held), version(t, object(t, record("w1"), "10")); a != b {
		t.Errorf("the version of the lease is %q with a request and %q without", a, b)
	}
}
