package linkfile

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/sf2loki/sf2loki-ha/cas"
)

// situation is a directory and one write in it.
type situation struct {
	name  string
	opts  Options
	path  string                                         // below the directory of the test
	setUp func(t *testing.T, path string)                // files that are there before
	old   func(t *testing.T, r cas.Register) cas.Version // "" for Create
}

// few versions stay in these tests, or most of the time goes into copying files.
const few = 3

func upstreams(data []byte) bool { return strings.HasPrefix(string(data), "upstream") }

func loaded(t *testing.T, r cas.Register) cas.Version { return load(t, r).Version }

var situations = []situation{
	{"first create", Options{}, "not/there/lease", nil, nil},
	{"replace, read first", Options{}, "lease", func(t *testing.T, path string) { writeMore(t, path, 3) }, loaded},
	{"replace, trusted", trusting, "lease", func(t *testing.T, path string) { writeMore(t, path, 3) }, loaded},
	{"replace that marks the first", trusting, "lease", func(t *testing.T, path string) { writeMore(t, path, few) }, loaded},
	{"replace that removes an old version", trusting, "lease", func(t *testing.T, path string) { writeMore(t, path, few+5) }, loaded},
	{"takeover from upstream", Options{Foreign: upstreams}, "lease", func(t *testing.T, path string) { put(t, path, "upstream 1") }, loaded},
	{"takeover from upstream after a rollback", Options{Foreign: upstreams}, "lease", func(t *testing.T, path string) {
		writeMore(t, path, 3)
		put(t, path, "upstream 1")
	}, loaded},
}

func put(t *testing.T, path, data string) {
	t.Helper()
	// As sf2loki does it: a new file takes the name.
	if err := errors.Join(os.WriteFile(path+".new", []byte(data), 0o600), os.Rename(path+".new", path)); err != nil {
		t.Fatal(err)
	}
}

// outcome is one write under a script.
type outcome struct {
	before cas.Value // zero: absent
	calls  int
	v      cas.Version
	err    error
	path   string
}

const written = "the write under test"

// template makes the files of the situation once; try copies them.
func (s situation) template(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if s.setUp != nil {
		s.setUp(t, filepath.Join(dir, s.path))
	}
	return dir
}

// try makes the write of the situation in a fresh directory.
func (s situation) try(t *testing.T, template string, sys *script) outcome {
	t.Helper()
	dir, err := os.MkdirTemp(template+"/..", "try")
	if err == nil {
		err = os.CopyFS(dir, os.DirFS(template))
	}
	if err != nil {
		t.Fatal(err)
	}
	o := outcome{path: filepath.Join(dir, s.path)}
	r := open(o.path, s.opts, &script{})
	r.keep = few
	if s.old == nil {
		r.sys = sys
		o.v, o.err = r.Create(t.Context(), []byte(written))
	} else {
		old := s.old(t, r)
		o.before = load(t, r)
		r.sys = sys
		o.v, o.err = r.Replace(t.Context(), []byte(written), old)
	}
	o.calls = sys.count("")
	return o
}

// electable fails the test unless a fresh process finds either the state before
// the write or the write itself, can replace what it finds, and nothing goes back.
func (o outcome) electable(t *testing.T, opts Options) (landed bool) {
	t.Helper()
	fresh := open(o.path, opts, &script{})
	got, err := fresh.Load(t.Context())
	switch {
	case errors.Is(err, cas.NotFound) && o.before.Version == "":
		if o.err == nil {
			t.Fatal("the write succeeded and is not there")
		}
		if _, err := fresh.Create(t.Context(), []byte("next")); err != nil {
			t.Fatalf("nobody can create the lease: %v", err)
		}
		return false
	case err != nil:
		t.Fatalf("nobody can read the lease: %v", err)
	}
	landed = string(got.Data) == written
	switch {
	case !landed && string(got.Data) != string(o.before.Data):
		t.Fatalf("the lease reads %q", got.Data)
	case !landed && o.err == nil:
		t.Fatal("the write succeeded and is not there")
	case landed && o.err == nil && got.Version != o.v:
		t.Fatalf("version %q is loaded as %q", o.v, got.Version)
	case landed && cas.ClassOf(o.err).Definite() && o.err != nil:
		t.Fatalf("the write is there although it failed for certain: %v", o.err)
	}
	next, err := fresh.Replace(t.Context(), []byte("next"), got.Version)
	if err != nil {
		t.Fatalf("nobody can write the lease: %v", err)
	}
	was := int64(0)
	if o.before.Version != "" {
		was = seq(t, o.before.Version)
	}
	if landed && seq(t, next) != seq(t, got.Version)+1 || seq(t, next) <= was {
		t.Fatalf("version %q after %q and %q", next, got.Version, o.before.Version)
	}
	if again := load(t, open(o.path, opts, &script{})); again.Version != next || string(again.Data) != "next" {
		t.Fatalf("another process reads %q, %q", again.Version, again.Data)
	}
	// The version before is spent, whoever still holds it.
	if o.before.Version != "" {
		if _, err := open(o.path, opts, &script{}).Replace(t.Context(), []byte("late"), o.before.Version); !errors.Is(err, cas.Conflict) {
			t.Fatalf("the version before was replaced a second time: %v", err)
		}
	}
	return landed
}

func TestAKillBetweenAnyTwoCallsLeavesALeaseThatOthersReadAndWrite(t *testing.T) {
	for _, s := range situations {
		for _, torn := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, torn %v", s.name, torn), func(t *testing.T) {
				landed, lost := 0, 0
				template := s.template(t)
				for k := 1; ; k++ {
					sys := dieAt(k, torn)
					o := s.try(t, template, sys)
					if o.electable(t, s.opts) {
						landed++
					} else {
						lost++
					}
					if o.calls < k {
						break // it was not killed any more
					}
				}
				if landed == 0 || lost == 0 {
					t.Errorf("%d kills after the write had landed, %d before: not both sides were tried", landed, lost)
				}
			})
		}
	}
}

func TestACallThatFailsOrLosesItsAnswerNeverMakesALie(t *testing.T) {
	for _, s := range situations {
		// EIO stands for every errno without a meaning of its own, EACCES for those
		// that sound definite.
		for _, errno := range []syscall.Errno{syscall.EIO, syscall.EACCES, syscall.EEXIST, syscall.ENOENT} {
			for _, applied := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s, %v, carried out %v", s.name, errno, applied), func(t *testing.T) {
					template := s.template(t)
					for k := 1; ; k++ {
						// ENOENT and EEXIST are answers about a name; a file system
						// that tells lies about names that were asked for is beyond help.
						sensible := func(op string) bool {
							return errno != syscall.ENOENT && errno != syscall.EEXIST || op == "link" || op == "remove" && errno == syscall.ENOENT
						}
						sys := &script{}
						if applied {
							sys.after = func(n int, op, path string, err error) error {
								if n == k && sensible(op) {
									return refusal(op, errno)
								}
								return err
							}
						} else {
							sys.before = func(n int, op, path string) error {
								if n == k && sensible(op) && !(op == "link" && errno == syscall.EEXIST) {
									return refusal(op, errno)
								}
								return nil
							}
						}
						o := s.try(t, template, sys)
						o.electable(t, s.opts)
						if o.calls < k {
							break
						}
					}
				})
			}
		}
	}
}
