package proctree

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// Round kills, with SIGKILL, every descendant of root that one reading of the
// process table shows, root itself excluded, and returns how many it found
// alive. Zero does not prove that there are none, see the package comment.
//
// SIGKILL rather than SIGSTOP first: neither lets the receiver fork again, and
// a stopped tree would need a second pass until it is dead.
func Round(root int) (int, error) {
	all, err := List()
	if err != nil {
		return 0, err
	}
	return Kill(Descendants(all, root), root), nil
}

// Kill kills the given processes with SIGKILL and returns how many of them were
// alive. The process groups of the caller and of the processes in spare are
// never killed as groups; their members are killed one by one.
func Kill(procs []Process, spare ...int) int {
	// 1. By group. The kernel refuses fork to a process with a signal pending
	//    and adds a new process to its group under the same lock, so nothing
	//    that stays in its group escapes this call, however fast it forks.
	spared := map[int]bool{0: true, 1: true, unix.Getpgrp(): true}
	for _, pid := range spare {
		if group, err := unix.Getpgid(pid); err == nil {
			spared[group] = true
		}
	}
	killed := make(map[int]bool)
	alive := 0
	for _, p := range procs {
		if !p.Dead() {
			alive++
		}
		if !spared[p.Group] && !killed[p.Group] && same(p) {
			killed[p.Group] = unix.Kill(-p.Group, unix.SIGKILL) == nil
		}
	}
	// 2. One by one: those in a spared group, and those whose group is gone
	//    because they changed it. One that changed it a moment ago and whose
	//    old group lives is found by the next round.
	for _, p := range procs {
		if !p.Dead() && !killed[p.Group] {
			_ = Signal(p, unix.SIGKILL)
		}
	}
	return alive
}

// Signal sends sig to exactly the process p: a process that has taken over its
// pid is left alone. A process that has ended is no error.
func Signal(p Process, sig unix.Signal) error {
	fd, err := unix.PidfdOpen(p.PID, 0)
	switch {
	case errors.Is(err, unix.ESRCH):
		return nil
	case err != nil:
		// No pidfd on this kernel. Between the check and the kill the pid would
		// have to be freed and the whole pid space walked through.
		if same(p) {
			err = unix.Kill(p.PID, sig)
		} else {
			err = nil
		}
	default:
		defer unix.Close(fd)
		// The check comes after the open: what the descriptor points at cannot
		// change any more.
		if !same(p) {
			return nil
		}
		err = unix.PidfdSendSignal(fd, sig, nil, 0)
		if errors.Is(err, unix.ENOSYS) || errors.Is(err, unix.EPERM) {
			// A sandbox may know or allow only one half of the pidfd calls. The
			// process was there a moment ago.
			err = unix.Kill(p.PID, sig)
		}
	}
	if err != nil && !errors.Is(err, unix.ESRCH) {
		return fmt.Errorf("proctree: signal process %d: %w", p.PID, err)
	}
	return nil
}

// same reports that p still exists, alive or as a zombie.
func same(p Process) bool {
	now, err := Read(p.PID)
	return err == nil && now.Start == p.Start
}

// Children returns the pids of the direct children of the calling process,
// dead ones included. It is much cheaper than [List], and nil where the kernel
// does not offer it. Until the caller reaps them these pids cannot be recycled.
func Children() []int {
	tasks, err := os.ReadDir("/proc/self/task")
	if err != nil {
		return nil
	}
	var pids []int
	for _, task := range tasks {
		text, err := os.ReadFile("/proc/self/task/" + task.Name() + "/children")
		if err != nil {
			continue
		}
		for _, field := range strings.Fields(string(text)) {
			if pid, err := strconv.Atoi(field); err == nil {
				pids = append(pids, pid)
			}
		}
	}
	return pids
}
