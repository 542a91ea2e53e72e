package guard_test

import (
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/sf2loki/sf2loki-ha/internal/boottime"
	"github.com/sf2loki/sf2loki-ha/internal/guard"
	"github.com/sf2loki/sf2loki-ha/internal/guard/guardtest"
	"github.com/sf2loki/sf2loki-ha/internal/proctree"
)

func TestMain(m *testing.M) {
	guardtest.Main(m, map[string]func([]string) int{"startguard": startGuard})
}

// margin is the shortest kill_margin that the configuration allows: the time
// from the instant to the deadline, by which the tree must be gone.
const margin = 250 * time.Millisecond

// far is an instant that no test reaches.
func far() boottime.Instant { return boottime.Now().Add(time.Hour) }

// subject is a guard under test; the test is its supervisor.
type subject struct {
	t       *testing.T
	pid     int
	control *os.File
	status  *os.File
	out     *guardtest.Output
	reports chan guard.Report
	exited  chan struct{}
	seq     uint64
}

// launch starts a guard for the command and sends it nothing yet.
func launch(t *testing.T, command ...string) *subject {
	t.Helper()
	controlR, controlW := pipe(t)
	statusR, statusW := pipe(t)
	s := &subject{t: t, control: controlW, status: statusR, out: guardtest.NewOutput(t),
		reports: make(chan guard.Report, 64), exited: make(chan struct{})}
	argv := append(append(guardtest.GuardCommand(), "--"), command...)
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Stdout, cmd.Stderr = s.out.Writer, os.Stderr
	cmd.ExtraFiles = []*os.File{controlR, statusW}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	_ = controlR.Close()
	_ = statusW.Close()
	s.out.Started()
	s.pid = cmd.Process.Pid
	go func() {
		defer close(s.exited)
		_ = cmd.Wait()
	}()
	read := make(chan struct{})
	go func() {
		defer close(read)
		s.read()
	}()
	t.Cleanup(func() {
		_ = controlW.Close()
		select {
		case <-s.exited:
		case <-time.After(guardtest.Patience):
			t.Error("the guard did not end")
			_, _ = proctree.Round(s.pid)
			_ = cmd.Process.Kill()
		}
		_ = statusR.Close()
		<-read
	})
	return s
}

func pipe(t *testing.T) (r, w *os.File) {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	return r, w
}

func (s *subject) read() {
	defer close(s.reports)
	var dec guard.Decoder[guard.Report]
	buf := make([]byte, 512)
	for {
		n, err := s.status.Read(buf)
		if n > 0 {
			out, bad := dec.Feed(buf[:n])
			for _, r := range out {
				s.reports <- r
			}
			if bad != nil {
				s.t.Error(bad)
				return
			}
		}
		if err != nil {
			if !errors.Is(err, io.EOF) && !errors.Is(err, os.ErrClosed) {
				s.t.Error(err)
			}
			return
		}
	}
}

func (s *subject) send(o guard.Order) {
	s.t.Helper()
	line, err := o.Encode()
	if err != nil {
		s.t.Fatal(err)
	}
	if _, err := s.control.Write(line); err != nil {
		s.t.Fatal(err)
	}
}

// deadline sends the next instant and does not wait for the answer.
func (s *subject) deadline(at boottime.Instant) {
	s.t.Helper()
	s.seq++
	s.send(guard.Order{Type: guard.OrderDeadline, Seq: s.seq, At: at})
}

// expect takes the next report, which must be of this type.
func (s *subject) expect(kind string) guard.Report {
	s.t.Helper()
	select {
	case r, ok := <-s.reports:
		if !ok {
			s.t.Fatalf("the guard ended without report %q", kind)
		}
		if r.Type != kind {
			s.t.Fatalf("report %+v, want %q", r, kind)
		}
		return r
	case <-time.After(guardtest.Patience):
		s.t.Fatalf("no report, want %q", kind)
		return guard.Report{}
	}
}

// extend sends an instant and waits until it is in force.
func (s *subject) extend(at boottime.Instant) {
	s.t.Helper()
	s.deadline(at)
	if r := s.expect(guard.ReportAck); r.Seq != s.seq {
		s.t.Fatalf("acknowledged %d, want %d", r.Seq, s.seq)
	}
}

// begin hands over the first instant, waits for the child and returns its pid.
func (s *subject) begin(at boottime.Instant) int {
	s.t.Helper()
	s.extend(at)
	return s.expect(guard.ReportStarted).PID
}

// gone takes the reports of the end, which must come for this reason, and
// checks that nobody is left: no holder of stdout, no guard.
func (s *subject) gone(reason guard.Reason) guard.Report {
	s.t.Helper()
	if r := s.expect(guard.ReportFiring); r.Reason != reason {
		s.t.Errorf("fires for %q, want %q", r.Reason, reason)
	}
	exit := s.expect(guard.ReportExited)
	if r := s.expect(guard.ReportGone); r.Reason != reason {
		s.t.Errorf("gone for %q, want %q", r.Reason, reason)
	}
	s.out.Ended(s.t)
	<-s.exited
	return exit
}

// halt stops processes as SIGSTOP does and waits until they stand still.
func halt(t *testing.T, pids ...int) {
	t.Helper()
	for _, pid := range pids {
		if err := unix.Kill(pid, unix.SIGSTOP); err != nil {
			t.Fatal(err)
		}
		guardtest.Eventually(t, "a stopped process", func() bool {
			p, err := proctree.Read(pid)
			return err == nil && p.State == 'T'
		})
	}
}

func thaw(t *testing.T, pids ...int) {
	t.Helper()
	for _, pid := range pids {
		if err := unix.Kill(pid, unix.SIGCONT); err != nil {
			t.Fatal(err)
		}
	}
}

func within(t *testing.T, what string, last, limit boottime.Instant) {
	t.Helper()
	if last > limit {
		t.Errorf("%s acted %v after its limit", what, last.Sub(limit))
	}
}

// startGuard COMMAND…: starts a guard whose pipes are this process's own
// descriptors 3 and 4, and waits to be killed.
func startGuard(command []string) int {
	argv := append(append(guardtest.GuardCommand(), "--"), command...)
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	cmd.ExtraFiles = []*os.File{os.NewFile(3, "control"), os.NewFile(4, "status")}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		panic(err)
	}
	_ = cmd.Wait()
	return 0
}

func tempFile(t *testing.T) string {
	t.Helper()
	return filepath.Join(t.TempDir(), "acts")
}
