package supervise

import (
	"errors"
	"log/slog"
	"os"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/sf2loki/sf2loki-ha/internal/proctree"
)

type exitStatus struct {
	code   int
	signal syscall.Signal
}

// sweep kills and reaps what a dead guard left behind, and returns when nothing
// of it is left. It does not give up: until then this replica must not be a
// candidate.
func (g *guardProcess) sweep(log *slog.Logger) map[int]exitStatus {
	exits := make(map[int]exitStatus)
	wait := newPatience(log, "waiting for processes of the work to die", "guard", g.self.PID)
	defer wait.stop()
	for clean := 0; ; {
		// 1. Kill whoever is there.
		roots, tree, err := g.orphans()
		proctree.Kill(tree)
		// 2. Reap ours, and only ours: other children of this process belong to
		//    whoever started them.
		for _, p := range roots {
			var status unix.WaitStatus
			if pid, err := unix.Wait4(p.PID, &status, unix.WNOHANG|unix.WALL, nil); err == nil && pid == p.PID {
				exits[pid] = exitStatus{signal: status.Signal(), code: status.ExitStatus()}
				if !status.Signaled() {
					exits[pid] = exitStatus{code: status.ExitStatus()}
				}
			}
		}
		// 3. Nobody there. The kernel's word is a proof; if there are other
		//    children, so that it cannot give it, we look twice: one reading of
		//    the process table can miss a process that moves.
		if err == nil && len(tree) == 0 {
			clean++
			if clean == 2 || childless() {
				return exits
			}
			continue
		}
		clean = 0
		wait.pause()
	}
}

// orphans returns the processes that came to us from the dead guard, and with
// them everything below them.
func (g *guardProcess) orphans() (roots, tree []proctree.Process, err error) {
	all, err := proctree.List()
	if err != nil {
		return nil, nil, err
	}
	self := os.Getpid()
	session, err := unix.Getsid(0)
	if err != nil {
		return nil, nil, err
	}
	for _, p := range all {
		// The tree lives in the guard's session and in sessions made by it: never
		// in ours, which is where our own children are.
		if p.Parent != self || p.Session == session || p.Start < g.self.Start {
			continue
		}
		if _, other := guards.Load(p.PID); other {
			continue
		}
		roots = append(roots, p)
		tree = append(tree, p)
		tree = append(tree, proctree.Descendants(all, p.PID)...)
	}
	return roots, tree, nil
}

// childless reports that this process has no child at all, dead or alive.
func childless() bool {
	for {
		err := unix.Waitid(unix.P_ALL, 0, nil, unix.WEXITED|unix.WNOHANG|unix.WNOWAIT|unix.WALL, nil)
		if !errors.Is(err, unix.EINTR) {
			return errors.Is(err, unix.ECHILD)
		}
	}
}
