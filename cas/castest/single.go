package castest

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/sf2loki/sf2loki-ha/cas"
)

func absentIsNotFound(t *testing.T, s *suite) {
	r := s.register(t)
	v, err := r.Load(bounded(t))
	refused(t, "load", err, cas.NotFound)
	if v.Version != "" || v.Data != nil {
		t.Errorf("an absent object has data %q and version %q", v.Data, v.Version)
	}
}

func createdIsLoaded(t *testing.T, s *suite) {
	r, data := s.register(t), doc("a")
	holds(t, r, data, mustCreate(t, r, data))
}

func createOnExisting(t *testing.T, s *suite) {
	r, data := s.register(t), doc("a")
	v := mustCreate(t, r, data)
	_, err := r.Create(bounded(t), doc("b"))
	refused(t, "second create", err, cas.Conflict)
	_, err = r.Create(bounded(t), data)
	refused(t, "create with the bytes that are there", err, cas.Conflict)
	holds(t, r, data, v)
}

func replaceOnCurrent(t *testing.T, s *suite) {
	key := s.fresh()
	mine, theirs := s.bucket(t).Register(key), s.bucket(t).Register(key)
	v := mustCreate(t, mine, doc("a"))
	b := doc("b")
	v = mustReplace(t, mine, b, v)
	holds(t, theirs, b, v)
	c := doc("c") // a version that was loaded is as good as one that was returned
	got, err := theirs.Load(bounded(t))
	if err != nil {
		t.Fatal(err)
	}
	holds(t, mine, c, mustReplace(t, theirs, c, got.Version))
}

func replaceOnStale(t *testing.T, s *suite) {
	r := s.register(t)
	stale := mustCreate(t, r, doc("a"))
	data := doc("b")
	v := mustReplace(t, r, data, stale)
	_, err := r.Replace(bounded(t), doc("c"), stale)
	refused(t, "replace on the stale version", err, cas.Conflict)
	holds(t, r, data, v)
}

func replaceOnAbsent(t *testing.T, s *suite) {
	b := s.bucket(t)
	other := mustCreate(t, b.Register(s.fresh()), doc("a")) // a well-formed version of something else
	r := b.Register(s.fresh())
	_, err := r.Replace(bounded(t), doc("b"), other)
	refused(t, "replace on nothing", err, cas.Conflict)
	_, err = r.Load(bounded(t))
	refused(t, "load afterwards", err, cas.NotFound)
}

// An empty condition is no condition to many clients: the request goes out
// without the header and overwrites. A wildcard matches whatever is there.
func replaceOnImpossible(t *testing.T, s *suite) {
	r, data := s.register(t), doc("a")
	v := mustCreate(t, r, data)
	for _, old := range []cas.Version{"", "*", "0"} {
		_, err := r.Replace(bounded(t), doc("b"), old)
		refused(t, "replace on version "+string(old), err, cas.Conflict)
	}
	holds(t, r, data, v)
}

func versionsDiffer(t *testing.T, s *suite) {
	r := s.register(t)
	v := mustCreate(t, r, doc("same text"))
	seen := map[cas.Version]bool{v: true}
	for range 20 {
		v = mustReplace(t, r, doc("same text"), v)
		if seen[v] {
			t.Fatalf("version %q was given twice", v)
		}
		seen[v] = true
	}
}

func noABA(t *testing.T, s *suite) {
	r := s.register(t)
	first := mustCreate(t, r, doc("A"))
	second := mustReplace(t, r, doc("B"), first)
	data := doc("A")
	third := mustReplace(t, r, data, second)
	if third == first {
		t.Fatal("the third write has the version of the first")
	}
	for _, old := range []cas.Version{first, second} {
		_, err := r.Replace(bounded(t), doc("C"), old)
		refused(t, "replace on an earlier version", err, cas.Conflict)
	}
	holds(t, r, data, third)
}

func roundTrip(t *testing.T, s *suite) {
	all := make([]byte, 256)
	for i := range all {
		all[i] = byte(i)
	}
	large := make([]byte, 1<<20)
	_, _ = rand.Read(large)
	for name, data := range map[string][]byte{
		// An empty object exists: taking it for absent would let a lease be claimed.
		"empty":               {},
		"one byte":            {0},
		"every byte value":    all,
		"gzip magic":          {0x1f, 0x8b, 8, 0, 0, 0, 0, 0},
		"looks like an error": []byte(`<?xml version="1.0"?><Error><Code>NoSuchKey</Code></Error>`),
		"1 MiB":               large,
	} {
		t.Run(name, func(t *testing.T) {
			r := s.register(t)
			v := mustCreate(t, r, data)
			holds(t, r, data, v)
			next := append(bytes.Clone(data), token()...)
			holds(t, r, next, mustReplace(t, r, next, v))
		})
	}
}

func tooLargeIsCorrupt(t *testing.T, s *suite) {
	r := s.register(t)
	data := make([]byte, cas.MaxSize+1)
	v := mustCreate(t, r, data)
	got, err := r.Load(bounded(t))
	refused(t, "load of MaxSize+1", err, cas.Corrupt)
	if got.Version != v || got.Data != nil {
		t.Errorf("load of MaxSize+1: version %q, %d bytes; want %q and no data, so that it can be replaced", got.Version, len(got.Data), v)
	}
	holds(t, r, data[1:], mustReplace(t, r, data[1:], v)) // exactly MaxSize is fine
}

func keys(t *testing.T, s *suite) {
	b := s.bucket(t)
	var written []cas.Register
	for _, name := range []string{
		"plain", "a/b/c.json", "with space", "plus+and%percent", "literal%2Fescape", "ünïcode/ключ/鍵",
		"query?x=1&y=2", "hash#tag", "dots..and.lease", "quote'\"s", "semi;colon:at@", "UPPER", "upper", "under_score~tilde",
	} {
		r := b.Register(s.fresh() + "/" + name)
		data := doc(name)
		holds(t, r, data, mustCreate(t, r, data))
		if !strings.HasSuffix(r.Describe(), name) {
			t.Errorf("Describe() = %q does not end in the key %q", r.Describe(), name)
		}
		written = append(written, r)
	}
	seen := map[string]bool{}
	for _, r := range written {
		v, err := r.Load(bounded(t))
		if err != nil {
			t.Fatal(err)
		}
		if seen[string(v.Data)] {
			t.Errorf("%s shares its object with another key", r.Describe())
		}
		seen[string(v.Data)] = true
	}
}

func endedContext(t *testing.T, s *suite) {
	r := s.register(t)
	data := doc("a")
	v := mustCreate(t, r, data)
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	past, cancel := context.WithDeadline(t.Context(), time.Unix(1, 0))
	defer cancel()
	for _, tt := range []struct {
		ctx  context.Context
		want error
	}{{ended, context.Canceled}, {past, context.DeadlineExceeded}} {
		for op, call := range operations(r, tt.ctx, v) {
			done := make(chan error, 1)
			go func() { done <- call() }()
			select {
			case err := <-done:
				refused(t, op, err, cas.Ambiguous)
				if !errors.Is(err, tt.want) {
					t.Errorf("%s: %v does not say that the context ended (%v)", op, err, tt.want)
				}
			case <-time.After(patience):
				t.Fatalf("%s hangs though its context has ended", op)
			}
		}
	}
	holds(t, r, data, v) // an ended context sends nothing
}

// operations are all calls on r that can fail.
func operations(r cas.Register, ctx context.Context, v cas.Version) map[string]func() error {
	return map[string]func() error{
		"load":    func() error { _, err := r.Load(ctx); return err },
		"create":  func() error { _, err := r.Create(ctx, doc("x")); return err },
		"replace": func() error { _, err := r.Replace(ctx, doc("x"), v); return err },
	}
}

func errorsAreComplete(t *testing.T, s *suite) {
	b := s.bucket(t)
	absent, present := b.Register(s.fresh()), b.Register(s.fresh())
	mustCreate(t, present, doc("a"))
	_, load := absent.Load(bounded(t))
	_, create := present.Create(bounded(t), doc("b"))
	_, replace := present.Replace(bounded(t), doc("b"), "0")
	for _, tt := range []struct {
		op    string
		r     cas.Register
		class cas.Class
		err   error
	}{
		{"load", absent, cas.NotFound, load},
		{"create", present, cas.Conflict, create},
		{"replace", present, cas.Conflict, replace},
	} {
		var e *cas.Error
		if !errors.As(tt.err, &e) {
			t.Errorf("%s: %T is no *cas.Error", tt.op, tt.err)
			continue
		}
		if e.Op != tt.op || e.Object != tt.r.Describe() || e.Class != tt.class {
			t.Errorf("%s: op %q, object %q, class %q; want %q, %q, %q", tt.op, e.Op, e.Object, e.Class, tt.op, tt.r.Describe(), tt.class)
		}
		if !strings.Contains(e.Error(), tt.r.Describe()) {
			t.Errorf("%s: text %q does not name the object", tt.op, e)
		}
	}
	for _, r := range []cas.Register{absent, present} {
		if strings.ContainsAny(r.Describe(), "@?") {
			t.Errorf("Describe() = %q looks like a URL with userinfo or a query", r.Describe())
		}
	}
}

func closedBucket(t *testing.T, s *suite) {
	b := s.open(t)
	r, key := b.Register(s.fresh()), s.fresh()
	v := mustCreate(t, r, doc("a"))
	if err := b.Close(); err != nil {
		t.Fatalf("Close: %v", err)
	}
	for op, call := range operations(r, bounded(t), v) {
		if call() == nil {
			t.Errorf("%s on a closed bucket succeeded", op)
		}
	}
	if _, err := b.Register(key).Create(bounded(t), doc("b")); err == nil {
		t.Error("a register made after Close works")
	}
}
