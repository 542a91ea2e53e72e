package guard_test

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/sf2loki/sf2loki-ha/internal/boottime"
	"github.com/sf2loki/sf2loki-ha/internal/guard"
	"github.com/sf2loki/sf2loki-ha/internal/guard/guardtest"
)

func TestWholeTreeDiesAtOnce(t *testing.T) {
	garbage := func(text string) func(*subject) {
		return func(s *subject) {
			if _, err := s.control.WriteString(text); err != nil {
				s.t.Fatal(err)
			}
		}
	}
	for name, tt := range map[string]struct {
		act    func(*subject)
		reason guard.Reason
	}{
		"end of the control pipe": {func(s *subject) { _ = s.control.Close() }, guard.ReasonEOF},
		"order":                   {func(s *subject) { s.send(guard.Order{Type: guard.OrderKill}) }, guard.ReasonKill},
		"garbage":                 {garbage("\x00\x01\x02\n"), guard.ReasonEOF},
		"other version":           {garbage(`{"v":2,"type":"deadline","seq":9,"at":9}` + "\n"), guard.ReasonEOF},
		"endless line":            {garbage(strings.Repeat("x", 5000)), guard.ReasonEOF},
		"instant repeated":        {garbage(`{"v":1,"type":"deadline","seq":1,"at":9223372036854775807}` + "\n"), guard.ReasonEOF},
		"kill after half an order": {func(s *subject) {
			garbage(`{"v":1,"type":`)(s)
			_ = s.control.Close()
		}, guard.ReasonEOF},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			s := launch(t, guardtest.Program("family", dir)...)
			s.begin(far())
			s.out.Ready(t, 4)
			now := boottime.Now()
			tt.act(s)
			s.gone(tt.reason)
			for _, file := range guardtest.Members(dir) {
				within(t, file, guardtest.LastAct(t, file), now.Add(margin))
			}
		})
	}
}

func TestGuardNoticesADeadSupervisorThoughSomebodyHoldsThePipe(t *testing.T) {
	file := tempFile(t)
	controlR, controlW := pipe(t)
	statusR, statusW := pipe(t)
	defer controlW.Close() // the end that never comes
	defer statusR.Close()
	out := guardtest.NewOutput(t)
	argv := guardtest.Program("startguard", guardtest.Program("act", file)...)
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Stdout, cmd.Stderr = out.Writer, os.Stderr
	cmd.ExtraFiles = []*os.File{controlR, statusW}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	_ = controlR.Close()
	_ = statusW.Close()
	out.Started()
	line, err := guard.Order{Type: guard.OrderDeadline, Seq: 1, At: far()}.Encode()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := controlW.Write(line); err != nil {
		t.Fatal(err)
	}
	out.Ready(t, 1)
	killed := boottime.Now()
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	out.Ended(t)
	within(t, "the child", guardtest.LastAct(t, file), killed.Add(margin))
}

func TestExitOfTheChildEndsItsDescendants(t *testing.T) {
	file := tempFile(t)
	s := launch(t, guardtest.Program("leave", file)...)
	s.begin(far())
	// The child leaves with 0 once its descendant acts; that one is stubborn,
	// has a session of its own and holds stdout.
	s.out.Ready(t, 1)
	if exit := s.gone(guard.ReasonExited); exit.Code != 0 || exit.Signal != 0 {
		t.Errorf("the child ended with %+v, want code 0", exit)
	}
}

func TestExitIsReportedAsItWas(t *testing.T) {
	for _, code := range []int{0, 1, 3, 255} {
		s := launch(t, guardtest.Program("exit", fmt.Sprint(code))...)
		s.begin(far())
		if exit := s.gone(guard.ReasonExited); exit.Code != code || exit.Signal != 0 {
			t.Errorf("exit %d is reported as %+v", code, exit)
		}
	}
	s := launch(t, guardtest.Program("act", tempFile(t))...)
	child := s.begin(far())
	if err := unix.Kill(child, unix.SIGABRT); err != nil {
		t.Fatal(err)
	}
	exit := s.gone(guard.ReasonExited)
	// The Go runtime turns SIGABRT into exit code 2 after a stack trace.
	if exit.Signal != int(unix.SIGABRT) && exit.Code != 2 {
		t.Errorf("SIGABRT is reported as %+v", exit)
	}
}

func TestProcessesThatFlyFromTheirGroupAreCaught(t *testing.T) {
	t.Run("comet", func(t *testing.T) {
		file := tempFile(t)
		s := launch(t, guardtest.Program("comet", file)...)
		s.begin(far())
		// The first comet ends at once, and with it the guard's patience.
		exit := s.gone(guard.ReasonExited)
		if exit.Code != 0 {
			t.Errorf("the child ended with %+v, want code 0", exit)
		}
		if len(guardtest.Acts(t, file)) == 0 {
			t.Error("the comet never flew")
		}
	})
	t.Run("storm", func(t *testing.T) {
		dir := t.TempDir()
		s := launch(t, guardtest.Program("storm", dir, "3")...)
		s.begin(far())
		s.out.Ready(t, 8) // in the middle of the 40
		// How long forty dying processes need is up to the machine; that each
		// of them dies is up to the guard.
		now := boottime.Now()
		s.send(guard.Order{Type: guard.OrderKill})
		s.gone(guard.ReasonKill)
		t.Logf("gone %v after the order", boottime.Now().Sub(now))
	})
}

func TestSignalReachesTheGroupOnce(t *testing.T) {
	s := launch(t, guardtest.Program("tidy", tempFile(t), "100ms")...)
	s.begin(far())
	s.out.Ready(t, 1)
	s.send(guard.Order{Type: guard.OrderSignal, Signal: int(unix.SIGTERM)})
	s.expect(guard.ReportFiring)
	if exit := s.expect(guard.ReportExited); exit.Code != 0 || exit.Signal != 0 {
		t.Errorf("the child ended with %+v, want code 0", exit)
	}
	got := strings.Join(s.out.Ended(t), ", ")
	if want := "term terminated, clean"; got != want {
		t.Errorf("the child says %q, want %q", got, want)
	}
}

func TestSignalsToTheGuardItselfChangeNothing(t *testing.T) {
	s := launch(t, guardtest.Program("act", tempFile(t))...)
	s.begin(far())
	s.out.Ready(t, 1)
	for _, sig := range []unix.Signal{unix.SIGTERM, unix.SIGINT, unix.SIGHUP, unix.SIGQUIT, unix.SIGUSR1, unix.SIGUSR2, unix.SIGALRM, unix.SIGPIPE} {
		if err := unix.Kill(s.pid, sig); err != nil {
			t.Fatal(err)
		}
		s.extend(far()) // still there, still obedient, still guarding
	}
	s.send(guard.Order{Type: guard.OrderKill})
	s.gone(guard.ReasonKill)
}

func TestChildIsAloneWithItsOwnDescriptors(t *testing.T) {
	t.Setenv("GUARD_TEST_MARK", "passes through")
	file := tempFile(t)
	s := launch(t, guardtest.Program("inspect", file)...)
	child := s.begin(far())
	s.gone(guard.ReasonExited)
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var seen guardtest.Inspection
	if err := json.Unmarshal(text, &seen); err != nil {
		t.Fatal(err)
	}
	if seen.PID != child || seen.Group != child {
		t.Errorf("process %d, group %d: want both %d", seen.PID, seen.Group, child)
	}
	if seen.Parent != s.pid || seen.Session != s.pid {
		t.Errorf("parent %d, session %d: want both the guard, %d", seen.Parent, seen.Session, s.pid)
	}
	if seen.FDs[0] != os.DevNull || seen.FDs[1] == "" || seen.FDs[2] == "" {
		t.Errorf("descriptors %v: want 0 (%s), 1 and 2", seen.FDs, os.DevNull)
	}
	// Whoever started this test may have left descriptors open; they pass
	// through. Ours do not.
	passed := guardtest.Descriptors()
	for fd, target := range seen.FDs {
		if fd > 2 && passed[fd] != target {
			t.Errorf("descriptor %d (%s) leaked into the child", fd, target)
		}
	}
	if len(seen.Ignored) != 0 {
		t.Errorf("signals %v are ignored in the child", seen.Ignored)
	}
	if env := strings.Join(seen.Env, "\n"); !strings.Contains(env, "GUARD_TEST_MARK=passes through") {
		t.Error("the environment does not pass through")
	}
}

func TestStartThatFailsSaysWhy(t *testing.T) {
	plain := filepath.Join(t.TempDir(), "plain")
	if err := os.WriteFile(plain, []byte("no program"), 0o600); err != nil {
		t.Fatal(err)
	}
	empty := filepath.Join(t.TempDir(), "empty")
	if err := os.WriteFile(empty, nil, 0o700); err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct{ command, text string }{
		"not found":      {"sf2loki-no-such-command", "not found"},
		"not executable": {plain, "permission denied"},
		"a directory":    {filepath.Dir(plain), "is a directory"},
		"not a program":  {empty, "exec format error"},
	} {
		t.Run(name, func(t *testing.T) {
			s := launch(t, tt.command)
			s.extend(far())
			if r := s.expect(guard.ReportStartFailed); !strings.Contains(r.Error, tt.text) {
				t.Errorf("error %q, want one that contains %q", r.Error, tt.text)
			}
			s.expect(guard.ReportFiring)
			if r := s.expect(guard.ReportGone); r.Reason != guard.ReasonStartFailed {
				t.Errorf("gone for %q, want %q", r.Reason, guard.ReasonStartFailed)
			}
		})
	}
}

func TestGuardRefusesToRunByHand(t *testing.T) {
	argv := guardtest.GuardCommand()
	for name, args := range map[string][]string{
		"no command":   nil,
		"no separator": {"true"},
		"no pipes":     {"--", "true"},
	} {
		out, err := exec.Command(argv[0], append(argv[1:], args...)...).CombinedOutput()
		if err == nil || !strings.Contains(string(out), "internal") {
			t.Errorf("%s: error %v, output %q; want a refusal that says the verb is internal", name, err, out)
		}
	}
}
