package linkfile

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/sf2loki/sf2loki-ha/cas"
	"github.com/sf2loki/sf2loki-ha/cas/internal/posix"
	"github.com/sf2loki/sf2loki-ha/internal/boottime"
)

// script is a real file system that does what a test wants at single calls. The
// calls are numbered from 1.
type script struct {
	before func(n int, op, path string) error // an error: the call is not carried out
	after  func(n int, op, path string, err error) error
	torn   bool // a write that before refuses puts half of its bytes there

	mu  sync.Mutex
	ops []string
}

func (s *script) call(op, path string, do func() error) error {
	s.mu.Lock()
	s.ops = append(s.ops, op)
	n := len(s.ops)
	s.mu.Unlock()
	if s.before != nil {
		if err := s.before(n, op, path); err != nil {
			return err
		}
	}
	err := do()
	if s.after != nil {
		err = s.after(n, op, path, err)
	}
	return err
}

func (s *script) count(op string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := 0
	for _, o := range s.ops {
		if op == "" || o == op {
			n++
		}
	}
	return n
}

func (s *script) list(dir string) (names []string, err error) {
	err = s.call("list", dir, func() (err error) { names, err = real{}.list(dir); return err })
	return names, err
}

func (s *script) read(path string) (c posix.Content, err error) {
	err = s.call("read", path, func() (err error) { c, err = real{}.read(path); return err })
	return c, err
}

func (s *script) stat(path string) (info fs.FileInfo, err error) {
	err = s.call("stat", path, func() (err error) { info, err = real{}.stat(path); return err })
	return info, err
}

func (s *script) create(path string) (file, error) {
	var f file
	err := s.call("create", path, func() (err error) { f, err = real{}.create(path); return err })
	if err != nil {
		if f != nil {
			_ = f.Close()
		}
		return nil, err
	}
	return &scriptFile{s, path, f}, nil
}

func (s *script) link(old, new string) error {
	return s.call("link", new, func() error { return real{}.link(old, new) })
}
func (s *script) rename(old, new string) error {
	return s.call("rename", new, func() error { return real{}.rename(old, new) })
}
func (s *script) remove(path string) error {
	return s.call("remove", path, func() error { return real{}.remove(path) })
}
func (s *script) makeDir(dir string) error {
	return s.call("makeDir", dir, func() error { return real{}.makeDir(dir) })
}

// Syncs are calls like the others, but no power is cut here and disks are slow.
func (s *script) syncDir(dir string) error {
	return s.call("syncDir", dir, func() error { return nil })
}

type scriptFile struct {
	s    *script
	path string
	file
}

func (f *scriptFile) Write(p []byte) (n int, err error) {
	carriedOut := false
	err = f.s.call("write", f.path, func() (err error) { carriedOut = true; n, err = f.file.Write(p); return err })
	if err != nil && !carriedOut && f.s.torn {
		n, _ = f.file.Write(p[:len(p)/2])
	}
	return n, err
}

func (f *scriptFile) Sync() error { return f.s.call("sync", f.path, func() error { return nil }) }

// Close always closes, or the tests would run out of descriptors: a killed
// process closes its files as well.
func (f *scriptFile) Close() error {
	err := f.s.call("close", f.path, func() error { return nil })
	return errors.Join(err, f.file.Close())
}

var errKilled = errors.New("killed")

// dieAt carries nothing out from call k on: what a kill between two calls does.
func dieAt(k int, torn bool) *script {
	return &script{torn: torn, before: func(n int, _, _ string) error {
		if n >= k {
			return errKilled
		}
		return nil
	}}
}

// at runs do once, before the first call of that kind.
func at(op string, do func()) *script {
	var done atomic.Bool
	return &script{before: func(_ int, o, _ string) error {
		if o == op && done.CompareAndSwap(false, true) {
			do()
		}
		return nil
	}}
}

// afterwards runs do once, after the first call of that kind.
func afterwards(op string, do func()) *script {
	var done atomic.Bool
	return &script{after: func(_ int, o, _ string, err error) error {
		if o == op && done.CompareAndSwap(false, true) {
			do()
		}
		return err
	}}
}

// trusting is a register that never reads before it writes what it knows.
var trusting = Options{MaxReadAge: time.Hour}

func open(path string, opts Options, sys system) *register {
	return newRegister(path, opts, sys, new(atomic.Bool))
}

func lease(t *testing.T) string { return filepath.Join(t.TempDir(), "leader.lease") }

// writeMore lets another process write n versions on top of what is there.
func writeMore(t *testing.T, path string, n int) {
	t.Helper()
	r := open(path, trusting, &script{})
	v, err := r.Load(t.Context())
	if errors.Is(err, cas.NotFound) {
		v.Version, err = r.Create(t.Context(), []byte("other 0"))
		n--
	}
	if err != nil {
		t.Fatal(err)
	}
	for range n {
		if v.Version, err = r.Replace(t.Context(), append([]byte("other "), v.Version...), v.Version); err != nil {
			t.Fatal(err)
		}
	}
}

func load(t *testing.T, r cas.Register) cas.Value {
	t.Helper()
	v, err := r.Load(t.Context())
	if err != nil {
		t.Fatalf("load: %v", err)
	}
	return v
}

func seq(t *testing.T, v cas.Version) int64 {
	t.Helper()
	p, ok := parse(v)
	if !ok {
		t.Fatalf("%q is no version", v)
	}
	return p.seq
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// refusal is how the os package reports an errno of a call.
func refusal(op string, errno syscall.Errno) error {
	if op == "link" || op == "rename" {
		return &os.LinkError{Op: op, Old: "a", New: "b", Err: errno}
	}
	return &os.PathError{Op: op, Path: "a", Err: errno}
}

// clock is set by hand.
type clock struct{ atomic.Int64 }

func (c *clock) now() boottime.Instant { return boottime.Instant(c.Load()) }
