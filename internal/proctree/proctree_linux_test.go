package proctree

import (
	"errors"
	"os"
	"os/exec"
	"reflect"
	"testing"

	"golang.org/x/sys/unix"
)

func TestStatIsReadWhateverTheCommandIsCalled(t *testing.T) {
	for _, name := range []string{"sh", "a b", ")", "(((", ") R 1 2 3", "new\nline", ""} {
		// The start time is the 22nd field.
		line := "42 (" + name + ") S 7 42 40 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 999 1 2 3\n"
		got, err := parse([]byte(line))
		want := Process{PID: 42, Parent: 7, Group: 42, Session: 40, State: 'S', Start: 999}
		if err != nil || got != want {
			t.Errorf("%q: got %+v (%v), want %+v", name, got, err, want)
		}
	}
}

func TestBadStatIsAnError(t *testing.T) {
	for _, text := range []string{"", "42", "(sh) S", "42 (sh", "42 (sh) S 7 42", "x (sh) S 7 42 40 0 -1 0 1 2 3 4 5 6 7 8 20 0 1 0 999",
		"42 (sh) S 7 42 40 0 -1 0 1 2 3 4 5 6 7 8 20 0 1 0 -9"} {
		if p, err := parse([]byte(text)); err == nil {
			t.Errorf("%q is read as %+v", text, p)
		}
	}
}

func TestDescendantsAreFoundAtAnyDepth(t *testing.T) {
	all := []Process{{PID: 1}, {PID: 9, Parent: 5}, {PID: 2, Parent: 1}, {PID: 3, Parent: 2}, {PID: 4, Parent: 3},
		{PID: 5, Parent: 1}, {PID: 6, Parent: 2},
		{PID: 20, Parent: 21}, {PID: 21, Parent: 20}} // a circle, as a recycled pid makes one
	pids := func(root int) (out []int) {
		for _, p := range Descendants(all, root) {
			out = append(out, p.PID)
		}
		return out
	}
	for root, want := range map[int][]int{1: {2, 5, 3, 6, 9, 4}, 2: {3, 6, 4}, 4: nil, 77: nil, 20: {21}} {
		if got := pids(root); !reflect.DeepEqual(got, want) {
			t.Errorf("descendants of %d: %v, want %v", root, got, want)
		}
	}
}

func TestOwnProcessIsListed(t *testing.T) {
	all, err := List()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range all {
		if p.PID == os.Getpid() {
			if p.Parent != os.Getppid() || p.Group != unix.Getpgrp() || p.Dead() {
				t.Errorf("got %+v", p)
			}
			return
		}
	}
	t.Error("the process table does not show this process")
}

func TestMissingProcessIsErrNotExist(t *testing.T) {
	cmd := child(t)
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	if _, err := Read(cmd.Process.Pid); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("error %v, want os.ErrNotExist", err)
	}
	if err := Signal(Process{PID: cmd.Process.Pid, Start: 1}, unix.SIGKILL); err != nil {
		t.Errorf("signal to a process that is gone: %v", err)
	}
}

func TestProcessThatTookOverAPidIsLeftAlone(t *testing.T) {
	cmd := child(t)
	p, err := Read(cmd.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	before := p
	before.Start--
	if err := Signal(before, unix.SIGKILL); err != nil {
		t.Error(err)
	}
	Kill([]Process{before})
	if now, err := Read(p.PID); err != nil || now.Dead() {
		t.Errorf("the successor was hit: %+v (%v)", now, err)
	}
	if n := Kill([]Process{p}); n != 1 {
		t.Errorf("%d were alive, want 1", n)
	}
	if err := cmd.Wait(); err == nil {
		t.Error("the process was not killed")
	}
}

// child starts a process that waits until it is killed: this test binary, told
// by a descriptor that never ends.
func child(t *testing.T) *exec.Cmd {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), "PROCTREE_TEST_WAIT=1")
	cmd.Stdin = r
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	_ = r.Close()
	t.Cleanup(func() {
		_ = w.Close() // it ends with us, whatever happened
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	return cmd
}

func TestMain(m *testing.M) {
	if os.Getenv("PROCTREE_TEST_WAIT") != "" {
		_, _ = os.Stdin.Read(make([]byte, 1))
		return
	}
	os.Exit(m.Run())
}
