package guard

import (
	"fmt"
	"os"
	"os/signal"
	"runtime"

	"golang.org/x/sys/unix"
)

// exit codes of the guard process. Nobody decides by them: what happened is in
// the reports.
const (
	exitGone   = 0
	exitFailed = 1 // the guard could not be set up; nothing was started
	exitUsage  = 2
)

// Main is the hidden verb "guard": it guards one run of one command and returns
// the exit code of the process. args is what follows the verb: "--" and the
// command. It must be called from the main goroutine, and the process must do
// nothing else, because Main reaps every child of the process.
//
// The descriptors [ControlFD] and [StatusFD] must be the ends of two pipes. The
// environment and the working directory pass through to the command.
func Main(args []string) int {
	if len(args) < 2 || args[0] != "--" {
		fmt.Fprintln(os.Stderr, "guard: this verb is internal: use \"run -- COMMAND\"")
		return exitUsage
	}
	// The parent death signal of the child is tied to the thread that forks
	// it, not to the process. This thread stays until the process ends.
	runtime.LockOSThread()
	g, err := newGuard()
	if err != nil {
		fmt.Fprintf(os.Stderr, "guard: %v; this verb is internal: use \"run -- COMMAND\"\n", err)
		return exitFailed
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread() // priority is per thread, see fire
		g.run()
	}()
	// Forking has a thread of its own because it can hang: the caller of vfork
	// waits for exec, and exec waits for a network file system. The loop must
	// be able to fire meanwhile.
	for {
		select {
		case <-g.fork:
			pid, err := startChild(args[1:])
			g.forked <- forkResult{pid, err}
			g.wake.ring()
		case <-done:
			return exitGone
		}
	}
}

// newGuard prepares everything that can fail, before the first order is read.
func newGuard() (*guard, error) {
	// 1. Pipe ends: ours alone. Should the child inherit the status pipe, its
	//    end would no longer show the supervisor that the guard is gone.
	for _, fd := range []int{ControlFD, StatusFD} {
		var st unix.Stat_t
		if err := unix.Fstat(fd, &st); err != nil || st.Mode&unix.S_IFMT != unix.S_IFIFO {
			return nil, fmt.Errorf("descriptor %d is not a pipe", fd)
		}
		unix.CloseOnExec(fd)
		if err := unix.SetNonblock(fd, true); err != nil {
			return nil, fmt.Errorf("descriptor %d: set non-blocking: %w", fd, err)
		}
	}
	// 2. A session of our own: no terminal signals us, and no process outside
	//    our tree can be in one of its process groups, which is what makes
	//    killing by group safe.
	if sid, err := unix.Getsid(0); err != nil || sid != os.Getpid() {
		if _, err := unix.Setsid(); err != nil {
			return nil, fmt.Errorf("new session: %w", err)
		}
	}
	// 3. Orphans of the tree come to us and not to init.
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return nil, fmt.Errorf("become subreaper: %w", err)
	}
	// 4. Only the supervisor decides. Handlers, not SIG_IGN: an ignored signal
	//    stays ignored across exec, and the child would never see its SIGTERM.
	signal.Notify(make(chan os.Signal, 1), unix.SIGTERM, unix.SIGINT, unix.SIGHUP, unix.SIGQUIT,
		unix.SIGUSR1, unix.SIGUSR2, unix.SIGALRM)
	// 5. The clock and the bell.
	wake, err := newBell()
	if err != nil {
		return nil, err
	}
	timer, err := newAlarm()
	if err != nil {
		return nil, err
	}
	deaths := make(chan os.Signal, 1)
	signal.Notify(deaths, unix.SIGCHLD)
	go func() {
		for range deaths {
			wake.ring()
		}
	}()
	return &guard{
		parent: os.Getppid(),
		wake:   wake,
		timer:  timer,
		fork:   make(chan struct{}, 1),
		forked: make(chan forkResult, 1),
	}, nil
}
