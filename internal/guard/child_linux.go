package guard

import (
	"fmt"
	"os"
	"os/exec"
	"syscall"
)

type forkResult struct {
	pid int
	err error
}

// startChild forks and executes the command and returns once exec succeeded or
// failed. It does not use os/exec: the guard reaps its children in one place.
func startChild(command []string) (int, error) {
	path, err := exec.LookPath(command[0])
	if err != nil {
		return 0, err
	}
	null, err := os.Open(os.DevNull)
	if err != nil {
		return 0, fmt.Errorf("stdin: %w", err)
	}
	defer null.Close()
	pid, err := syscall.ForkExec(path, command, &syscall.ProcAttr{
		Env:   os.Environ(),
		Files: []uintptr{null.Fd(), 1, 2},
		Sys: &syscall.SysProcAttr{
			// A group of its own, so that one signal reaches the command and the
			// helpers it started, and does not reach us.
			Setpgid: true,
			// If the guard dies, between fork and exec as well, the kernel kills
			// the child.
			Pdeathsig: syscall.SIGKILL,
		},
	})
	if err != nil {
		return 0, fmt.Errorf("exec %s: %w", path, err)
	}
	return pid, nil
}
