package linkfile

import (
	"errors"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/sf2loki/sf2loki-ha/cas"
)

// beside is a lease whose path may be used by sf2loki.
func beside(changing func(error)) Options {
	return Options{MaxReadAge: time.Hour, Foreign: upstreams, Changing: changing}
}

func TestTheFileOfUpstreamAloneIsTheLease(t *testing.T) {
	path := lease(t)
	put(t, path, "upstream 1")
	r := open(path, beside(nil), &script{})
	got := load(t, r)
	if string(got.Data) != "upstream 1" {
		t.Fatalf("it reads %q", got.Data)
	}
	if _, err := r.Create(t.Context(), []byte("mine")); !errors.Is(err, cas.Conflict) {
		t.Fatalf("create: %v, want conflict: a lease exists", err)
	}
	v, err := r.Replace(t.Context(), []byte("mine"), got.Version)
	if err != nil || seq(t, v) != 1 {
		t.Fatalf("%q, %v", v, err)
	}
	if again := load(t, open(path, beside(nil), &script{})); again.Version != v || string(again.Data) != "mine" {
		t.Errorf("%q, %q", again.Version, again.Data)
	}
	if data, err := os.ReadFile(path); err != nil || string(data) != "mine" {
		t.Errorf("upstream would read %q, %v", data, err)
	}
}

func TestWithoutNumbersEvenAnUnreadableFileIsALease(t *testing.T) {
	for data, want := range map[string]cas.Class{"": "", "garbage": "", "mine": "", strings.Repeat("x", cas.MaxSize+1): cas.Corrupt} {
		path := lease(t)
		put(t, path, data)
		r := open(path, beside(nil), &script{})
		got, err := r.Load(t.Context())
		if cas.ClassOf(err) != want || got.Version == "" {
			t.Fatalf("%.10q: version %q, %v", data, got.Version, err)
		}
		if _, err := r.Replace(t.Context(), []byte("next"), got.Version); err != nil {
			t.Errorf("%.10q cannot be replaced: %v", data, err)
		}
	}
}

func TestAnUpstreamReplicaThatRewritesTheFileIsNeverReplacedOnAnOldVersion(t *testing.T) {
	for name, setUp := range map[string]func(path string){
		"alone":            func(string) {},
		"after a rollback": func(path string) { writeMore(t, path, 5) },
	} {
		path := lease(t)
		setUp(path)
		var said []error
		r := open(path, beside(func(err error) { said = append(said, err) }), &script{})
		seen := map[cas.Version]bool{}
		for n := range 5 {
			put(t, path, "upstream "+strings.Repeat("i", n+1))
			got := load(t, r)
			if seen[got.Version] || !strings.HasPrefix(string(got.Data), "upstream") {
				t.Fatalf("%s: %q with %q: a renewal of upstream must be a new version", name, got.Version, got.Data)
			}
			seen[got.Version] = true
			put(t, path, "upstream, renewed "+strings.Repeat("i", n+1))
			if _, err := r.Replace(t.Context(), []byte("mine"), got.Version); !errors.Is(err, cas.Conflict) {
				t.Fatalf("%s: %v, want conflict", name, err)
			}
		}
		if len(said) != 1 || !strings.Contains(said[0].Error(), path) || !strings.Contains(said[0].Error(), "sf2loki") || !strings.Contains(said[0].Error(), "mixed pairs") {
			t.Errorf("%s: said %v, want once who is there and what to do", name, said)
		}
	}
}

func TestTheSameBytesWrittenAgainAreAnotherVersion(t *testing.T) {
	path := lease(t)
	put(t, path, "upstream")
	r := open(path, beside(nil), &script{})
	before := load(t, r).Version
	put(t, path, "upstream")
	if err := os.Chtimes(path, time.Time{}, time.Now().Add(time.Second)); err != nil {
		t.Fatal(err)
	}
	if load(t, r).Version == before {
		t.Error("a renewal with equal bytes goes unnoticed")
	}
}

func TestAFileThatStaysAsItIsSaysNothing(t *testing.T) {
	path := lease(t)
	put(t, path, "upstream")
	r := open(path, beside(func(err error) { t.Errorf("said %v", err) }), &script{})
	for range 3 {
		load(t, r)
	}
}

func TestALeaderGivesWayToUpstreamAtOnceAndTheErrorNamesIt(t *testing.T) {
	for name, opts := range map[string]Options{
		"trusting":    beside(nil),
		"reads first": {Foreign: upstreams},
	} {
		path := lease(t)
		r := open(path, opts, &script{})
		v, err := r.Create(t.Context(), []byte("mine 1"))
		if err != nil {
			t.Fatal(err)
		}
		if v, err = r.Replace(t.Context(), []byte("mine 2"), v); err != nil {
			t.Fatal(err)
		}
		put(t, path, "upstream 1")
		sys := &script{}
		r.sys = sys
		_, err = r.Replace(t.Context(), []byte("mine 3"), v)
		var e *cas.Error
		if !errors.As(err, &e) || e.Class != cas.Conflict || !strings.Contains(e.Error(), path) || !strings.Contains(e.Error(), "sf2loki") || !strings.Contains(e.Hint, "mixed pairs") {
			t.Errorf("%s: %v", name, err)
		}
		if sys.count("link") != 0 {
			t.Errorf("%s: it linked", name)
		}
		if data, err := os.ReadFile(path); err != nil || string(data) != "upstream 1" {
			t.Errorf("%s: upstream's record was overwritten: %q, %v", name, data, err)
		}
	}
}

func TestUpstreamThatComesDuringAWriteMakesItsAnswerAmbiguous(t *testing.T) {
	path := lease(t)
	writeMore(t, path, 3)
	r := open(path, beside(nil), &script{})
	old := load(t, r).Version
	r.sys = afterwards("link", func() { put(t, path, "upstream 1") })
	_, err := r.Replace(t.Context(), []byte("mine"), old)
	if !errors.Is(err, cas.Ambiguous) || !strings.Contains(err.Error(), "mixed pairs") {
		t.Errorf("%v", err)
	}
	if data, err := os.ReadFile(path); err != nil || string(data) != "upstream 1" {
		t.Errorf("upstream's record was overwritten: %q, %v", data, err)
	}
}

// The file of upstream hides the numbered ones, so the one who replaced it must
// not have won before the file is gone, and a second one must not win as well.
func TestOneVersionOfUpstreamHasOneSuccessorEvenIfItsFileCannotBeReplaced(t *testing.T) {
	for name, n := range map[string]int{"alone": 0, "after a rollback": 5} {
		path := lease(t)
		if n > 0 {
			writeMore(t, path, n)
		}
		put(t, path, "upstream 1")
		a, b := open(path, beside(nil), &script{}), open(path, beside(nil), &script{})
		v := load(t, a).Version
		if load(t, b).Version != v {
			t.Fatal("two versions of one state")
		}
		a.sys = &script{before: func(_ int, op, p string) error {
			if op == "rename" && p == path {
				return refusal(op, syscall.EACCES)
			}
			return nil
		}}
		if _, err := a.Replace(t.Context(), []byte("a"), v); !errors.Is(err, cas.Ambiguous) {
			t.Errorf("%s: a: %v, want ambiguous", name, err)
		}
		if _, err := b.Replace(t.Context(), []byte("b"), v); !errors.Is(err, cas.Conflict) {
			t.Errorf("%s: b: %v, want conflict", name, err)
		}
		// What is there now is another version, which b has to watch for a whole
		// window before it may replace it.
		next := load(t, b)
		if next.Version == v || !strings.HasPrefix(string(next.Data), "upstream") {
			t.Errorf("%s: %q, %q", name, next.Version, next.Data)
		}
		if _, err := b.Replace(t.Context(), []byte("b"), next.Version); err != nil {
			t.Errorf("%s: b: %v", name, err)
		}
		if got := load(t, a); string(got.Data) != "b" || seq(t, got.Version) != int64(n+2) {
			t.Errorf("%s: %q, %q", name, got.Version, got.Data)
		}
	}
}

func TestACopyThatLagsOrIsDamagedIsNobodysLease(t *testing.T) {
	for _, data := range []string{"mine, an old one", "", "garbage", strings.Repeat("x", cas.MaxSize+1)} {
		path := lease(t)
		writeMore(t, path, 3)
		put(t, path, data)
		r := open(path, beside(nil), &script{})
		got := load(t, r)
		if seq(t, got.Version) != 3 {
			t.Fatalf("%.20q: %q", data, got.Version)
		}
		if _, err := r.Replace(t.Context(), []byte("next"), got.Version); err != nil {
			t.Errorf("%.20q: %v", data, err)
		}
		if repaired, err := os.ReadFile(path); err != nil || string(repaired) != "next" {
			t.Errorf("the copy was not repaired: %.20q, %v", repaired, err)
		}
	}
}

func TestAFileThatCannotBeReadStopsAStandbyAndNotALeader(t *testing.T) {
	path := lease(t)
	writeMore(t, path, 3)
	r := open(path, beside(nil), &script{})
	v := load(t, r).Version
	r.sys = &script{before: func(_ int, op, p string) error {
		if op == "read" && p == path {
			return refusal(op, syscall.EACCES)
		}
		return nil
	}}
	if _, err := r.Load(t.Context()); !errors.Is(err, cas.Denied) || !strings.Contains(err.Error(), path) {
		t.Errorf("load: %v, want denied", err)
	}
	if _, err := r.Replace(t.Context(), []byte("mine"), v); err != nil {
		t.Errorf("renewal: %v", err)
	}
}
