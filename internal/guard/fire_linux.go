package guard

import (
	"errors"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"github.com/sf2loki/sf2loki-ha/internal/proctree"
)

// fire begins the end: from here on no order is read. The first reason stands.
func (g *guard) fire(reason Reason) {
	g.rule.Fire(reason)
	reason, _ = g.rule.Fired()
	// The child's group first, before anything that takes time. While the child
	// is not reaped its pid cannot belong to anybody else.
	if g.child != 0 && !g.reaped {
		_ = unix.Kill(-g.child, unix.SIGKILL)
		_ = unix.Kill(g.child, unix.SIGKILL)
	}
	// From here on the guard competes for the processor with the tree that it
	// kills. Where the system allows it, it goes first; the child cannot inherit
	// this, since it is forked by another thread.
	g.hurry()
	g.report(Report{Type: ReportFiring, Reason: reason})
}

// clear kills and reaps until no descendant is left. It does not give up: a
// process in an uninterruptible call dies when the call ends.
func (g *guard) clear() {
	const shortest, longest = time.Millisecond, 50 * time.Millisecond
	pause, killed := shortest, map[proctree.Process]bool{}
	for {
		// 1. A fork that was under way may have produced a child after we fired.
		g.takeFork()
		// 2. Whoever lost its parent is our direct child now. These are found
		//    and killed in microseconds, which is what catches a process that
		//    keeps forking, leaving its group and ending.
		for _, pid := range proctree.Children() {
			_ = unix.Kill(pid, unix.SIGKILL)
		}
		// 3. Everybody else, by parentage. An error of reading /proc leaves
		//    steps 2 and 4, which need several passes down the tree.
		fresh := killAll(killed)
		// The killed need the processor now, to end: a guard that keeps it would
		// only be in their way.
		g.calm()
		// 4. No child, dead or alive, means no descendant: all of their lines
		//    of parents lead to us. Only the kernel can say so.
		if none := g.reap(); none && !g.forking {
			return
		}
		// 5. New processes kept coming: at once again. Else wait for deaths: those
		//    that were killed before and are still there need time, not signals.
		if fresh {
			pause = shortest
		}
		wait(pause, g.wake.fd)
		g.wake.silence()
		pause = min(2*pause, longest)
	}
}

// killAll kills every descendant and reports whether there was one that none of
// the rounds before, which killed has, had killed.
func killAll(killed map[proctree.Process]bool) (fresh bool) {
	all, err := proctree.List()
	if err != nil {
		return false
	}
	procs := proctree.Descendants(all, os.Getpid())
	proctree.Kill(procs, os.Getpid())
	for _, p := range procs {
		// The state changes, who it is does not.
		id := proctree.Process{PID: p.PID, Start: p.Start}
		fresh = fresh || !p.Dead() && !killed[id]
		killed[id] = true
	}
	return fresh
}

// hurry and calm raise this thread's priority and give it back.
func (g *guard) hurry() {
	// The system call returns 20 less the priority.
	if raw, err := unix.Getpriority(unix.PRIO_PROCESS, unix.Gettid()); err == nil {
		g.nice, g.hurried = 20-raw, unix.Setpriority(unix.PRIO_PROCESS, unix.Gettid(), -20) == nil
	}
}

func (g *guard) calm() {
	if g.hurried {
		g.hurried = unix.Setpriority(unix.PRIO_PROCESS, unix.Gettid(), g.nice) != nil
	}
}

// reap collects every dead child and reports whether there is no child at all.
// __WALL: also those made by clone without the usual exit signal.
func (g *guard) reap() (none bool) {
	for {
		var status unix.WaitStatus
		pid, err := unix.Wait4(-1, &status, unix.WNOHANG|unix.WALL, nil)
		switch {
		case errors.Is(err, unix.EINTR):
		case errors.Is(err, unix.ECHILD):
			return true
		case err != nil || pid == 0:
			return false
		case pid == g.child:
			g.reaped, g.status = true, status
		case g.forking:
			g.early[pid] = status
		}
	}
}
