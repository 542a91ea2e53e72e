package supervise_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/sf2loki/sf2loki-ha/coordinator"
	"github.com/sf2loki/sf2loki-ha/internal/boottime"
	"github.com/sf2loki/sf2loki-ha/internal/guard"
	"github.com/sf2loki/sf2loki-ha/internal/guard/guardtest"
	"github.com/sf2loki/sf2loki-ha/internal/proctree"
	"github.com/sf2loki/sf2loki-ha/internal/supervise"
)

func TestMain(m *testing.M) {
	guardtest.Main(m, map[string]func([]string) int{
		"supervisor": supervisorProgram,
		"badguard":   badGuard,
	})
}

// margin is the kill margin of the tests: the shortest that a configuration
// allows.
const margin = 250 * time.Millisecond

// lease is a term whose instant the test moves.
type lease struct {
	mu      sync.Mutex
	at      boottime.Instant
	changed chan struct{}
}

func newLease(at boottime.Instant) *lease { return &lease{at: at, changed: make(chan struct{})} }

func (l *lease) Epoch() int64 { return 7 }
func (l *lease) ID() string   { return "term-7" }

func (l *lease) KillAt() boottime.Instant {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.at
}

func (l *lease) Changed() <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.changed
}

func (l *lease) move(at boottime.Instant) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.at = at
	close(l.changed)
	l.changed = make(chan struct{})
}

func far() boottime.Instant { return boottime.Now().Add(time.Hour) }

// work is one run of a command in this process.
type work struct {
	t      *testing.T
	out    *guardtest.Output
	lease  *lease
	cancel context.CancelCauseFunc
	result chan result

	mu       sync.Mutex
	stopping []error
}

type result struct {
	outcome supervise.Outcome
	err     error
	at      boottime.Instant // when Run returned
}

// start runs the command until the test ends it.
func start(t *testing.T, at boottime.Instant, command []string, change ...func(*supervise.Config)) *work {
	t.Helper()
	w := &work{t: t, out: guardtest.NewOutput(t), lease: newLease(at), result: make(chan result, 1)}
	cfg := supervise.Config{
		Command:      command,
		StopGrace:    300 * time.Millisecond,
		KillMargin:   margin,
		Stdout:       w.out.Writer,
		Stderr:       os.Stderr,
		GuardCommand: guardtest.GuardCommand(),
		Logger:       slog.New(slog.NewTextHandler(io.Discard, nil)),
		Stopping: func(cause error) {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.stopping = append(w.stopping, cause)
		},
	}
	for _, f := range change {
		f(&cfg)
	}
	s, err := supervise.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancelCause(context.Background())
	w.cancel = cancel
	returned := make(chan struct{})
	go func() {
		defer close(returned)
		outcome, err := s.Run(ctx, w.lease)
		at := boottime.Now()
		// Ours is the last open end now, if everybody else is dead.
		w.out.Started()
		w.result <- result{outcome, err, at}
	}()
	t.Cleanup(func() {
		cancel(coordinator.ErrLost)
		<-returned
	})
	return w
}

// ready waits for n programs and returns the pid of the last of each name.
func (w *work) ready(n int) map[string]int {
	w.t.Helper()
	return w.out.Ready(w.t, n)
}

// wait waits for the end of Run and checks that nobody is left.
func (w *work) wait() result {
	w.t.Helper()
	select {
	case r := <-w.result:
		w.out.Ended(w.t)
		return r
	case <-time.After(guardtest.Patience):
		w.t.Fatal("Run does not return")
		return result{}
	}
}

func (w *work) expect(kind supervise.Kind) result {
	w.t.Helper()
	r := w.wait()
	if r.outcome.Kind != kind {
		w.t.Errorf("outcome %+v (error %v), want %v", r.outcome, r.err, kind)
	}
	return r
}

// parent returns the parent of a process: the guard of a child.
func parent(t *testing.T, pid int) int {
	t.Helper()
	p, err := proctree.Read(pid)
	if err != nil {
		t.Fatal(err)
	}
	return p.Parent
}

func halt(t *testing.T, pid int) {
	t.Helper()
	if err := unix.Kill(pid, unix.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	guardtest.Eventually(t, "a stopped process", func() bool {
		p, err := proctree.Read(pid)
		return err == nil && p.State == 'T'
	})
}

func within(t *testing.T, what string, last, limit boottime.Instant) {
	t.Helper()
	if last > limit {
		t.Errorf("%s acted %v after its limit", what, last.Sub(limit))
	}
}

func tempFile(t *testing.T) string {
	t.Helper()
	return filepath.Join(t.TempDir(), "acts")
}

// supervisorProgram AT COMMAND…: supervises the command until the instant and
// prints the outcome.
func supervisorProgram(args []string) int {
	at, err := strconv.ParseInt(args[0], 10, 64)
	if err != nil {
		panic(err)
	}
	s, err := supervise.New(supervise.Config{
		Command: args[1:], StopGrace: time.Second, KillMargin: margin,
		GuardCommand: guardtest.GuardCommand(),
		Logger:       slog.New(slog.NewTextHandler(io.Discard, nil)),
	})
	if err != nil {
		panic(err)
	}
	out, err := s.Run(context.Background(), newLease(boottime.Instant(at)))
	fmt.Println("outcome", out.Kind, err)
	return 0
}

// supervisor starts supervisorProgram as a process of its own.
func supervisor(t *testing.T, at boottime.Instant, command []string) (*exec.Cmd, *guardtest.Output) {
	t.Helper()
	out := guardtest.NewOutput(t)
	argv := guardtest.Program("supervisor", append([]string{fmt.Sprint(int64(at))}, command...)...)
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Stdout, cmd.Stderr = out.Writer, os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	out.Started()
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	return cmd, out
}

// badGuard HOW -- COMMAND…: takes the place of the guard and fails at it.
func badGuard(args []string) int {
	how, command := args[0], args[2:]
	control, status := os.NewFile(guard.ControlFD, "control"), os.NewFile(guard.StatusFD, "status")
	report := func(r guard.Report) {
		line, err := r.Encode()
		if err != nil {
			panic(err)
		}
		_, _ = status.Write(line)
	}
	switch how {
	case "ends":
		return 3
	case "babbles":
		_, _ = status.WriteString("I am fine\n")
	case "hangs-after-gone":
		report(guard.Report{Type: guard.ReportAck, Seq: 1})
		report(guard.Report{Type: guard.ReportStartFailed, Error: "nothing to start"})
		report(guard.Report{Type: guard.ReportFiring, Reason: guard.ReasonStartFailed})
		report(guard.Report{Type: guard.ReportGone, Reason: guard.ReasonStartFailed})
	case "obeys-once", "never-fires":
		// Confirms (the first, or every instant), starts the command, and kills
		// nobody, ever.
		var dec guard.Decoder[guard.Order]
		buf := make([]byte, 4096)
		for first := true; first || how == "never-fires"; first = false {
			n, err := control.Read(buf)
			if err != nil {
				break
			}
			orders, _ := dec.Feed(buf[:n])
			for _, o := range orders {
				report(guard.Report{Type: guard.ReportAck, Seq: o.Seq})
			}
			if first {
				cmd := exec.Command(command[0], command[1:]...)
				cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
				if err := cmd.Start(); err != nil {
					panic(err)
				}
				report(guard.Report{Type: guard.ReportStarted, PID: cmd.Process.Pid})
			}
		}
	case "is-silent":
	}
	select {} // until it is killed
}

func withGuard(how string) func(*supervise.Config) {
	return func(c *supervise.Config) { c.GuardCommand = guardtest.Program("badguard", how) }
}
