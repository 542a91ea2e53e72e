package proctree

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// Process is one line of the process table. PID and Start together name a
// process for the time that this machine is up.
type Process struct {
	PID, Parent, Group, Session int
	// State is the letter of /proc/PID/stat: R, S, D, T, Z, X …
	State byte
	// Start is the time the process started, in clock ticks since boot.
	Start uint64
}

// Dead reports that the process has ended and only waits to be reaped.
func (p Process) Dead() bool { return p.State == 'Z' || p.State == 'X' || p.State == 'x' }

// Read reads one process. A process that does not exist (any more) is an error
// that matches [os.ErrNotExist].
func Read(pid int) (Process, error) {
	var buf [1024]byte // a line of stat is shorter than half of it
	n, err := readFile("/proc/"+strconv.Itoa(pid)+"/stat", buf[:])
	if err != nil {
		return Process{}, fmt.Errorf("proctree: read process %d: %w", pid, err)
	}
	p, err := parse(buf[:n])
	if err != nil {
		return Process{}, fmt.Errorf("proctree: read process %d: %w", pid, err)
	}
	return p, nil
}

// readFile reads a file of /proc with the fewest possible system calls: the
// guard runs it a hundred times in a round, in competition for the processor
// with the tree that it is about to kill.
func readFile(path string, buf []byte) (int, error) {
	for {
		fd, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC, 0)
		if err == nil {
			var n int
			n, err = unix.Read(fd, buf)
			_ = unix.Close(fd)
			if err == nil {
				return n, nil
			}
		}
		switch {
		case errors.Is(err, unix.EINTR):
		case errors.Is(err, unix.ESRCH):
			// The process ended between open and read.
			return 0, os.ErrNotExist
		default:
			return 0, err
		}
	}
}

// List reads the whole process table. Processes that end while it is read are
// left out.
func List() ([]Process, error) {
	dir, err := os.Open("/proc")
	if err != nil {
		return nil, fmt.Errorf("proctree: list: %w", err)
	}
	defer dir.Close()
	names, err := dir.Readdirnames(-1)
	if err != nil {
		return nil, fmt.Errorf("proctree: list: %w", err)
	}
	all := make([]Process, 0, len(names))
	for _, name := range names {
		pid, err := strconv.Atoi(name)
		if err != nil {
			continue
		}
		if p, err := Read(pid); err == nil {
			all = append(all, p)
		}
	}
	return all, nil
}

// Descendants returns the processes of all that descend from root, root itself
// excluded, parents before their children.
func Descendants(all []Process, root int) []Process {
	children := make(map[int][]Process)
	for _, p := range all {
		children[p.Parent] = append(children[p.Parent], p)
	}
	var found []Process
	// The table is not read at one instant, so a recycled pid may close a
	// circle: every pid is visited once.
	seen := map[int]bool{root: true}
	queue := []int{root}
	for len(queue) > 0 {
		next := queue[0]
		queue = queue[1:]
		for _, p := range children[next] {
			if !seen[p.PID] {
				seen[p.PID] = true
				found = append(found, p)
				queue = append(queue, p.PID)
			}
		}
	}
	return found
}

// parse reads the text of /proc/PID/stat. The command name, second field, may
// hold blanks, newlines and brackets; the last closing bracket ends it.
func parse(data []byte) (Process, error) {
	open, end := bytes.IndexByte(data, '('), bytes.LastIndexByte(data, ')')
	if open < 1 || end < open {
		return Process{}, errors.New("no command name in stat")
	}
	rest := strings.Fields(string(data[end+1:]))
	const stateAt, parentAt, groupAt, sessionAt, startAt = 0, 1, 2, 3, 19
	if len(rest) <= startAt {
		return Process{}, errors.New("stat is too short")
	}
	p := Process{State: rest[stateAt][0]}
	for _, f := range []struct {
		into *int
		text string
	}{
		{&p.PID, strings.TrimSpace(string(data[:open]))},
		{&p.Parent, rest[parentAt]},
		{&p.Group, rest[groupAt]},
		{&p.Session, rest[sessionAt]},
	} {
		n, err := strconv.Atoi(f.text)
		if err != nil {
			return Process{}, fmt.Errorf("stat: %w", err)
		}
		*f.into = n
	}
	start, err := strconv.ParseUint(rest[startAt], 10, 64)
	if err != nil {
		return Process{}, fmt.Errorf("stat: %w", err)
	}
	p.Start = start
	return p, nil
}
