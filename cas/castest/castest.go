package castest

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/sf2loki/sf2loki-ha/cas"
)

// patience bounds every call of the suite: a backend that hangs fails its test
// instead of the whole run.
const patience = time.Minute

// Run checks one backend.
//
// open returns a new client at each call, and all clients it returns during one
// Run reach the same store and the same bucket. It may use its t to fail and to
// register clean-up; Run closes the buckets itself.
func Run(t *testing.T, open func(t *testing.T) cas.Bucket) {
	run(t, open, []check{
		{"absent object is NotFound", absentIsNotFound},
		{"created object is loaded with its version", createdIsLoaded},
		{"create on an existing object is Conflict and changes nothing", createOnExisting},
		{"replace on the current version is loaded by another client", replaceOnCurrent},
		{"replace on a stale version is Conflict and changes nothing", replaceOnStale},
		{"replace on an absent object is Conflict and creates nothing", replaceOnAbsent},
		{"replace on a version no store gives is Conflict", replaceOnImpossible},
		{"every write of fresh bytes has a fresh version", versionsDiffer},
		{"going back to similar content does not revive a version", noABA},
		{"data comes back byte for byte", roundTrip},
		{"object beyond MaxSize is Corrupt", tooLargeIsCorrupt},
		{"any key is one object", keys},
		{"age is what passed since the write, or nothing", ageIsNotTooLarge},
		{"one of 64 creators wins", oneCreatorWins},
		{"one of 64 replacers wins each round", oneReplacerWins},
		{"load never pairs a version with older data", loadNotOlder},
		{"ended context is Ambiguous at once", endedContext},
		{"errors say what, where and why", errorsAreComplete},
		{"registers of a closed bucket fail", closedBucket},
	})
}

// Exact checks what package cas promises beyond what is needed for safety: data
// and version of a Load come from one write even while others write. A store that
// looks them up one after the other may show newer data beside an older version,
// which Run lets pass; versitygw 1.8.0 does.
func Exact(t *testing.T, open func(t *testing.T) cas.Bucket) {
	run(t, open, []check{{"load never mixes two writes", loadIsOneWrite}})
}

// Ages checks that the store says when it wrote: the age grows, and starts again
// with each write. Run lets pass a store that does not say it, which package cas
// allows. It takes two seconds, because HTTP counts in seconds.
func Ages(t *testing.T, open func(t *testing.T) cas.Bucket) {
	run(t, open, []check{{"age grows and starts again with a write", ageGrows}})
}

type check struct {
	name string
	run  func(*testing.T, *suite)
}

func run(t *testing.T, open func(*testing.T) cas.Bucket, checks []check) {
	s := &suite{open: open, prefix: "castest/" + token() + "/"}
	for _, c := range checks {
		t.Run(c.name, func(t *testing.T) { c.run(t, s) })
	}
}

type suite struct {
	open   func(*testing.T) cas.Bucket
	prefix string
}

// bucket opens a client for the length of the test.
func (s *suite) bucket(t *testing.T) cas.Bucket {
	t.Helper()
	b := s.open(t)
	t.Cleanup(func() {
		if err := b.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
	return b
}

// fresh is a key that no other test uses.
func (s *suite) fresh() string { return s.prefix + token() }

func (s *suite) register(t *testing.T) cas.Register {
	t.Helper()
	return s.bucket(t).Register(s.fresh())
}

func token() string {
	b := make([]byte, 8)
	_, _ = rand.Read(b)
	return hex.EncodeToString(b)
}

// doc is a small document with fresh bytes, as the contract demands of callers.
func doc(text string) []byte { return fmt.Appendf(nil, `{"text":%q,"nonce":%q}`, text, token()) }

func bounded(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	return ctx
}

func mustCreate(t *testing.T, r cas.Register, data []byte) cas.Version {
	t.Helper()
	v, err := r.Create(bounded(t), data)
	if err != nil {
		t.Fatalf("create: %v", err)
	}
	if v == "" {
		t.Fatal("create succeeded without a version")
	}
	return v
}

func mustReplace(t *testing.T, r cas.Register, data []byte, old cas.Version) cas.Version {
	t.Helper()
	v, err := r.Replace(bounded(t), data, old)
	if err != nil {
		t.Fatalf("replace: %v", err)
	}
	if v == "" {
		t.Fatal("replace succeeded without a version")
	}
	return v
}

// holds fails the test unless the object has exactly this content and version.
func holds(t *testing.T, r cas.Register, data []byte, v cas.Version) {
	t.Helper()
	got, err := r.Load(bounded(t))
	if err != nil {
		t.Fatalf("load: %v", err)
	}
	if !bytes.Equal(got.Data, data) {
		t.Fatalf("load: %s, want %s", brief(got.Data), brief(data))
	}
	if got.Version != v {
		t.Fatalf("load: version %q, want %q of the write", got.Version, v)
	}
}

// refused fails the test unless err has one of the classes.
func refused(t *testing.T, what string, err error, classes ...cas.Class) {
	t.Helper()
	for _, c := range classes {
		if errors.Is(err, c) {
			return
		}
	}
	t.Fatalf("%s: %v, want class %v", what, err, classes)
}

func brief(b []byte) string {
	if len(b) <= 120 {
		return fmt.Sprintf("%q", b)
	}
	return fmt.Sprintf("%d bytes from %q", len(b), b[:40])
}
