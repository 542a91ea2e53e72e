package k8slease_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/sf2loki/sf2loki-ha/cas"
	"github.com/sf2loki/sf2loki-ha/coordinator/k8slease"
	table "github.com/sf2loki/sf2loki-ha/internal/answers"
	"github.com/sf2loki/sf2loki-ha/internal/wiretest"
)

// answers are those of the table that mean the same whatever was asked.
func answers() map[string]answer {
	out := map[string]answer{}
	for _, c := range table.Uniform(table.K8s) {
		out[c.Name] = answer{c.Answer, c.Class, c.Hint}
	}
	return out
}

type answer struct {
	answer wiretest.Answer
	class  cas.Class
	hint   string
}

// That it is gone is a cell of the table, whenever it is said; here it is gone
// and was made again.
func TestAbsenceIsKubernetesOwnWordAboutThisLease(t *testing.T) {
	held := object(t, record("w1"), "10")
	old := version(t, held)
	again := is(t, 200, put(held, "metadata.uid", "uid-2"))
	for name, script := range map[string][]wiretest.Answer{
		"before the update": {again},
		"after a 409 to it": {is(t, 200, held), status(409, "Conflict", "leases/leader"), again},
	} {
		t.Run(name, func(t *testing.T) {
			s, srv := scripted(t, script...)
			_, err := s.Replace(t.Context(), record("w2"), old)
			refused(t, err, cas.Conflict, "replace")
			attempts(t, srv, len(script))
		})
	}
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

// That it ends at its deadline is a row of the table.
func TestACallEndsWithItsContext(t *testing.T) {
	s, srv := scripted(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := s.Read(ctx)
	refused(t, err, cas.Ambiguous, "read")
	attempts(t, srv, 0)
}
