package supervise

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/sf2loki/sf2loki-ha/internal/guard"
	"github.com/sf2loki/sf2loki-ha/internal/proctree"
)

// subreaper makes this process the parent of what a dead guard leaves behind.
var subreaper = sync.OnceValue(func() error {
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("become subreaper: %w", err)
	}
	return nil
})

// guards are the guard processes of this process that have not been reaped:
// children with a session of their own that are not orphans.
var guards sync.Map

// guardProcess is a running guard and the pipes to it.
type guardProcess struct {
	cmd     *exec.Cmd
	self    proctree.Process
	control *os.File
	status  *os.File

	reports chan guard.Report // closed when there will be no more
	garbage error             // set before reports is closed
	closing chan struct{}     // nobody takes reports any more
	exited  chan struct{}     // the guard has been reaped
}

// startGuard starts a guard, which starts nothing yet.
func startGuard(cfg Config, env []string) (_ *guardProcess, err error) {
	if err := subreaper(); err != nil {
		return nil, err
	}
	var open []*os.File
	defer func() {
		for _, f := range open {
			_ = f.Close()
		}
	}()
	controlR, control, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("control pipe: %w", err)
	}
	open = append(open, controlR, control)
	status, statusW, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("status pipe: %w", err)
	}
	open = append(open, status, statusW)

	argv := append(append([]string{}, cfg.GuardCommand...), "--")
	argv = append(argv, cfg.Command...)
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Args[0] = "sf2loki-ha" // what ps shows; /proc/self/exe would tell nobody
	cmd.Env = env
	cmd.Stdout, cmd.Stderr = cfg.Stdout, cfg.Stderr
	cmd.ExtraFiles = []*os.File{controlR, statusW} // guard.ControlFD, guard.StatusFD
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	pid := cmd.Process.Pid
	guards.Store(pid, true)
	// It cannot be gone yet: nobody has reaped it.
	self, err := proctree.Read(pid)
	if err != nil {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		guards.Delete(pid)
		return nil, err
	}
	open = []*os.File{controlR, statusW}
	g := &guardProcess{
		cmd: cmd, self: self, control: control, status: status,
		reports: make(chan guard.Report, 16),
		closing: make(chan struct{}),
		exited:  make(chan struct{}),
	}
	go g.read()
	go func() {
		_ = cmd.Wait()
		guards.Delete(pid)
		close(g.exited)
	}()
	return g, nil
}

// read passes the reports on until the guard closes its end.
func (g *guardProcess) read() {
	defer close(g.reports)
	var dec guard.Decoder[guard.Report]
	buf := make([]byte, 4096)
	for {
		n, err := g.status.Read(buf)
		reports, bad := dec.Feed(buf[:n])
		for _, r := range reports {
			select {
			case g.reports <- r:
			case <-g.closing:
				return
			}
		}
		if bad != nil {
			g.garbage = bad
			return
		}
		if err != nil {
			if !errors.Is(err, io.EOF) {
				g.garbage = err
			}
			return
		}
	}
}

// lost says why there are no more reports.
func (g *guardProcess) lost() error {
	if g.garbage != nil {
		return g.garbage
	}
	return errors.New("the guard ended without a word")
}

// send writes an order. It does not wait for a guard that does not read.
func (g *guardProcess) send(o guard.Order) error {
	line, err := o.Encode()
	if err != nil {
		return err
	}
	if err := g.control.SetWriteDeadline(time.Now().Add(lossPatience)); err != nil {
		return fmt.Errorf("send %s: %w", o.Type, err)
	}
	if _, err := g.control.Write(line); err != nil {
		return fmt.Errorf("send %s: %w", o.Type, err)
	}
	return nil
}

// finish waits for the end of a guard that has nothing left to do.
func (g *guardProcess) finish(log *slog.Logger) {
	const patience = time.Second
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case <-g.exited:
		return
	case <-timer.C:
	}
	log.Warn("the guard is done and does not exit: killing it", "guard", g.self.PID)
	_ = g.cmd.Process.Kill()
	g.await(log)
}

// abandon kills the tree and the guard, in this order, and returns when none of
// them is left: with the exits of the processes that we had to reap.
func (g *guardProcess) abandon(log *slog.Logger) map[int]exitStatus {
	log.Warn("killing the work without its guard", "guard", g.self.PID)
	// 1. A guard that still reads sees the end of its pipe and kills too.
	_ = g.control.Close()
	// 2. As long as the guard lives its tree is known by parentage alone.
	_, _ = proctree.Round(g.self.PID)
	// 3. Its death kills the child, whatever the child has become since step 2,
	//    and makes every descendant ours.
	_ = g.cmd.Process.Kill()
	g.await(log)
	// 4. Kill and reap what we inherited.
	return g.sweep(log)
}

// lastWords returns the reports of a dead guard that nobody has taken.
func (g *guardProcess) lastWords() (reports []guard.Report) {
	// Its end of the pipe is closed, so the end comes at once; the deadline is
	// for a descriptor that went astray.
	_ = g.status.SetReadDeadline(time.Now().Add(lossPatience))
	for r := range g.reports {
		reports = append(reports, r)
	}
	return reports
}

// await waits for the death of the guard.
func (g *guardProcess) await(log *slog.Logger) {
	wait := newPatience(log, "waiting for the guard to die", "guard", g.self.PID)
	defer wait.stop()
	for {
		select {
		case <-g.exited:
			return
		case <-wait.next():
		}
	}
}

// close gives every resource of a guard that is gone back.
func (g *guardProcess) close() {
	_ = g.control.Close()
	close(g.closing)
	_ = g.status.Close()
	for range g.reports {
		// Until the reader has left.
	}
}
