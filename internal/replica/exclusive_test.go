package replica

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/sf2loki/sf2loki-ha/cas/file"
)

func noopOnFile(t *testing.T, path string) *Replica {
	t.Helper()
	r, err := New(t.Context(), options(t, fmt.Sprintf("coordinate: {type: noop}\nstate: {store: file, file: {path: %q}}\nservice: {health_addr: \"127.0.0.1:0\"}\n", path)))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestWithoutAnElectionASecondProcessOnTheSameFileIsRefused(t *testing.T) {
	path := filepath.Join(t.TempDir(), "not", "yet", "state.json")
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	first := noopOnFile(t, path)
	ended := make(chan error, 1)
	go func() { ended <- first.Run(ctx) }()
	within(t, func() bool { return StateInUse(t.Context(), path) != nil })

	err := noopOnFile(t, path).Run(ctx)
	var setup *SetupError
	var used *InUseError
	if !errors.As(err, &setup) || !errors.As(err, &used) || used.Path != path || used.Lock != path+".instance.lock" || !strings.Contains(err.Error(), path) {
		t.Errorf("%v, want a setup error that names the path", err)
	}
	// The lock is not the one of single writes: the work of the first may commit.
	if _, err := file.New(path).Create(t.Context(), []byte("{}")); err != nil {
		t.Errorf("a write beside the lock: %v", err)
	}
	stop()
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	// With the process the lock is gone.
	if err := StateInUse(t.Context(), path); err != nil {
		t.Errorf("after the end: %v", err)
	}
	done, cancel := context.WithCancel(t.Context())
	cancel()
	if err := noopOnFile(t, path).Run(done); err != nil {
		t.Errorf("a third: %v", err)
	}
}

func TestTheLockOfSf2lokiItselfIsSeen(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state.json")
	if err := StateInUse(t.Context(), path); err != nil {
		t.Fatalf("without lock files: %v", err)
	}
	lock, err := os.Create(path + ".lock")
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Close()
	if err := StateInUse(t.Context(), path); err != nil {
		t.Errorf("a lock file that nobody holds: %v", err)
	}
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX); err != nil {
		t.Fatal(err)
	}
	if err := StateInUse(t.Context(), path); err == nil || !strings.Contains(err.Error(), path+".lock") || !strings.Contains(err.Error(), "sf2loki itself") {
		t.Errorf("%v", err)
	}
	if _, err := os.Stat(path + ".instance.lock"); err == nil {
		t.Error("looking made a file")
	}
	var setup *SetupError
	if err := noopOnFile(t, path).Run(t.Context()); !errors.As(err, &setup) || !strings.Contains(err.Error(), path+".lock") {
		t.Errorf("run: %v", err)
	}
	// Held for the time of a write only.
	time.AfterFunc(200*time.Millisecond, func() { _ = lock.Close() })
	if err := StateInUse(t.Context(), path); err != nil {
		t.Errorf("a write: %v", err)
	}
}

func TestAStateDirectoryThatCannotBeWrittenIsNamedWithTheUser(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "file"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "file", "state.json")
	err := noopOnFile(t, path).Run(t.Context())
	var setup *SetupError
	if !errors.As(err, &setup) || !strings.Contains(err.Error(), filepath.Dir(path)) || !strings.Contains(err.Error(), fmt.Sprintf("uid %d", os.Geteuid())) {
		t.Errorf("%v", err)
	}
	if strings.Count(err.Error(), "\n") > 0 {
		t.Errorf("more than one line: %v", err)
	}
}

func within(t *testing.T, what func() bool) {
	t.Helper()
	for end := time.After(10 * time.Second); !what(); {
		select {
		case <-end:
			t.Fatal("not within 10 s")
		case <-time.After(5 * time.Millisecond):
		}
	}
}
