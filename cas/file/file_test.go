package file_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sf2loki/sf2loki-ha/cas"
	"github.com/sf2loki/sf2loki-ha/cas/castest"
	"github.com/sf2loki/sf2loki-ha/cas/file"
)

func TestConformance(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "not", "yet", "there")
	open := func(*testing.T) cas.Bucket { return file.Open(dir) }
	castest.Run(t, open)
	castest.Exact(t, open)
}

func class(t *testing.T, what string, err error, want cas.Class) *cas.Error {
	t.Helper()
	var e *cas.Error
	if !errors.As(err, &e) || e.Class != want {
		t.Fatalf("%s: %v, want class %q", what, err, want)
	}
	return e
}

func write(t *testing.T, path string, data []byte) {
	t.Helper()
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestFirstWriteMakesPrivateFilesAndLeavesNothingElse(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a", "b", "leader.lease")
	r := file.New(path)
	if _, err := os.Stat(filepath.Dir(path)); err == nil {
		t.Fatal("New made the directory")
	}
	v, err := r.Create(t.Context(), []byte("1"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.Replace(t.Context(), []byte("2"), v); err != nil {
		t.Fatal(err)
	}
	names, err := os.ReadDir(filepath.Dir(path))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, n := range names {
		info, err := n.Info()
		if err != nil {
			t.Fatal(err)
		}
		if info.Mode() != 0o600 {
			t.Errorf("%s has mode %v", n.Name(), info.Mode())
		}
		got = append(got, n.Name())
	}
	if fmt.Sprint(got) != "[leader.lease leader.lease.lock]" {
		t.Errorf("files: %v", got)
	}
	if info, err := os.Stat(filepath.Dir(path)); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("directory: %v, %v", info.Mode(), err)
	}
}

func TestSameBytesWrittenAgainAreAnotherVersion(t *testing.T) {
	// Not demanded by the contract, which wants fresh bytes; inode and time give it.
	r := file.New(filepath.Join(t.TempDir(), "x"))
	v1, err := r.Create(t.Context(), []byte("same"))
	if err != nil {
		t.Fatal(err)
	}
	v2, err := r.Replace(t.Context(), []byte("same"), v1)
	if err != nil || v2 == v1 {
		t.Fatalf("version %q after %q, %v", v2, v1, err)
	}
}

func TestEditInPlaceIsANewVersion(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x")
	r := file.New(path)
	v, err := r.Create(t.Context(), []byte("aaaa"))
	if err != nil {
		t.Fatal(err)
	}
	write(t, path, []byte("bbbb"))
	_, err = r.Replace(t.Context(), []byte("c"), v)
	class(t, "replace on the version before the edit", err, cas.Conflict)
	got, err := r.Load(t.Context())
	if err != nil || string(got.Data) != "bbbb" {
		t.Fatalf("load: %q, %v", got.Data, err)
	}
	if _, err := r.Replace(t.Context(), []byte("c"), got.Version); err != nil {
		t.Fatalf("replace on the edited version: %v", err)
	}
}

func TestUnfinishedWriteOfACrashedProcessIsIgnoredAndRemoved(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x")
	write(t, path+".tmp", []byte("half a wri"))
	r := file.New(path)
	_, err := r.Load(t.Context())
	class(t, "load", err, cas.NotFound)
	if _, err := r.Create(t.Context(), []byte("whole")); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(path + ".tmp"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the unfinished write is still there: %v", err)
	}
}

func TestWriteWaitsForTheLockAndItsContextBoundsTheWait(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x")
	r := file.New(path)
	v, err := r.Create(t.Context(), []byte("1"))
	if err != nil {
		t.Fatal(err)
	}
	held, err := os.Open(path + ".lock")
	if err != nil {
		t.Fatal(err)
	}
	defer held.Close()
	if err := syscall.Flock(int(held.Fd()), syscall.LOCK_EX); err != nil {
		t.Fatal(err)
	}

	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		start := time.Now()
		_, err = r.Replace(ctx, []byte("2"), v)
		class(t, "replace while the lock is held", err, cas.Ambiguous)
		if !errors.Is(err, context.DeadlineExceeded) || time.Since(start) != time.Second {
			t.Errorf("%v after %v, want the deadline after 1s", err, time.Since(start))
		}
		if got, err := r.Load(t.Context()); err != nil || string(got.Data) != "1" {
			t.Errorf("a load must not need the lock: %q, %v", got.Data, err)
		}

		done := make(chan error, 1)
		go func() { _, err := r.Replace(t.Context(), []byte("3"), v); done <- err }()
		if err := syscall.Flock(int(held.Fd()), syscall.LOCK_UN); err != nil {
			t.Fatal(err)
		}
		if err := <-done; err != nil {
			t.Errorf("replace after the lock was dropped: %v", err)
		}
	})
}

func TestRemovedLockFileDoesNotLetTwoWritersIn(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x")
	r := file.New(path)
	v, err := r.Create(t.Context(), []byte("1"))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(path + ".lock"); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Replace(t.Context(), []byte("2"), v); err != nil {
		t.Fatalf("replace: %v", err)
	}
	if _, err := os.Stat(path + ".lock"); err != nil {
		t.Errorf("the lock file was not made again: %v", err)
	}
}

func TestWhatIsNotARegularFileIsCorruptAndIsNotReplaced(t *testing.T) {
	for name, make := range map[string]func(path string) error{
		"directory":        func(p string) error { return os.Mkdir(p, 0o700) },
		"symbolic link":    func(p string) error { return os.Symlink("elsewhere", p) },
		"dangling link up": func(p string) error { return os.Symlink("/nonexistent/x", p) },
		"link to a file": func(p string) error {
			return errors.Join(os.WriteFile(p+".real", nil, 0o600), os.Symlink(p+".real", p))
		},
		"named pipe, no writer": func(p string) error { return syscall.Mkfifo(p, 0o600) },
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "x")
			if err := make(path); err != nil {
				t.Fatal(err)
			}
			before, err := os.Lstat(path)
			if err != nil {
				t.Fatal(err)
			}
			r := file.New(path)
			_, err = r.Load(t.Context())
			if e := class(t, "load", err, cas.Corrupt); e.Hint == "" {
				t.Error("no hint")
			}
			_, err = r.Create(t.Context(), []byte("1"))
			class(t, "create", err, cas.Conflict)
			_, err = r.Replace(t.Context(), []byte("1"), "v")
			class(t, "replace", err, cas.Conflict)
			if after, err := os.Lstat(path); err != nil || !os.SameFile(before, after) {
				t.Errorf("it was replaced: %v", err)
			}
		})
	}
}

func TestFileInPlaceOfADirectoryIsAConfigurationError(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "f"), nil)
	r := file.New(filepath.Join(dir, "f", "x"))
	_, err := r.Load(t.Context())
	class(t, "load", err, cas.NoBucket)
	_, err = r.Create(t.Context(), nil)
	class(t, "create", err, cas.NoBucket)
	_, err = r.Replace(t.Context(), nil, "v")
	class(t, "replace", err, cas.NoBucket)
}

func TestMissingDirectoryIsAbsenceForReadsAndConflictForReplace(t *testing.T) {
	r := file.New(filepath.Join(t.TempDir(), "no", "x"))
	_, err := r.Load(t.Context())
	class(t, "load", err, cas.NotFound)
	_, err = r.Replace(t.Context(), nil, "v")
	class(t, "replace", err, cas.Conflict)
}

func TestNamesThatLeaveTheDirectoryOrMeetOurOwnFilesAreDenied(t *testing.T) {
	b := file.Open(t.TempDir())
	for _, name := range []string{"", "..", "../x", "a/../../x", "/etc/passwd", "x.lock", "x.tmp", "dir/"} {
		r := b.Register(name)
		_, err := r.Load(t.Context())
		class(t, "load of "+name, err, cas.Denied)
		_, err = r.Create(t.Context(), nil)
		class(t, "create of "+name, err, cas.Denied)
		_, err = r.Replace(t.Context(), nil, "v")
		class(t, "replace of "+name, err, cas.Denied)
	}
}

func TestErrorNamesThePath(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x")
	_, err := file.New(path).Load(t.Context())
	if !strings.Contains(err.Error(), path) {
		t.Errorf("%v", err)
	}
}
