package guard_test

import (
	"os"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/sf2loki/sf2loki-ha/internal/boottime"
	"github.com/sf2loki/sf2loki-ha/internal/guard"
	"github.com/sf2loki/sf2loki-ha/internal/guard/guardtest"
)

func TestTreeIsGoneByTheDeadline(t *testing.T) {
	dir := t.TempDir()
	s := launch(t, guardtest.Program("family", dir)...)
	s.begin(far())
	s.out.Ready(t, 4)
	at := boottime.Now().Add(200 * time.Millisecond)
	s.extend(at)
	exit := s.gone(guard.ReasonDeadline)
	if now := boottime.Now(); now < at {
		t.Errorf("the guard fired %v early", at.Sub(now))
	}
	if exit.Signal != int(unix.SIGKILL) {
		t.Errorf("the child ended with %+v, want SIGKILL", exit)
	}
	for _, file := range guardtest.Members(dir) {
		within(t, file, guardtest.LastAct(t, file), at.Add(margin))
	}
}

func TestInstantThatHasPassedNeverForks(t *testing.T) {
	for name, at := range map[string]boottime.Instant{
		"just now":    boottime.Now(),
		"zero":        0,
		"before boot": -1,
	} {
		t.Run(name, func(t *testing.T) {
			file := tempFile(t)
			s := launch(t, guardtest.Program("act", file)...)
			s.deadline(at)
			s.expect(guard.ReportFiring)
			if r := s.expect(guard.ReportGone); r.Reason != guard.ReasonDeadline {
				t.Errorf("gone for %q, want %q", r.Reason, guard.ReasonDeadline)
			}
			s.out.Ended(t)
			if _, err := os.Stat(file); !os.IsNotExist(err) {
				t.Errorf("the child has run (%v)", err)
			}
		})
	}
}

func TestNoOrderNoChild(t *testing.T) {
	file := tempFile(t)
	s := launch(t, guardtest.Program("act", file)...)
	_ = s.control.Close()
	s.expect(guard.ReportFiring)
	if r := s.expect(guard.ReportGone); r.Reason != guard.ReasonEOF {
		t.Errorf("gone for %q, want %q", r.Reason, guard.ReasonEOF)
	}
	s.out.Ended(t)
	if _, err := os.Stat(file); !os.IsNotExist(err) {
		t.Errorf("the child has run (%v)", err)
	}
}

func TestRenewalsExtendTheInstant(t *testing.T) {
	file := tempFile(t)
	s := launch(t, guardtest.Program("act", file)...)
	// The first instant leaves time for a slow start; each later one is passed
	// by the next before it comes.
	at := boottime.Now().Add(2 * time.Second)
	first := at
	s.begin(at)
	s.out.Ready(t, 1)
	for range 3 {
		at = at.Add(300 * time.Millisecond)
		s.extend(at)
	}
	s.gone(guard.ReasonDeadline)
	last := guardtest.LastAct(t, file)
	if last < first {
		t.Errorf("the work ended %v before its first instant", first.Sub(last))
	}
	if last < at.Add(-margin) {
		t.Errorf("the work ended %v before its last instant", at.Sub(last))
	}
	within(t, "the child", last, at.Add(margin))
}

func TestEarlierInstantIsAccepted(t *testing.T) {
	file := tempFile(t)
	s := launch(t, guardtest.Program("act", file)...)
	s.begin(far())
	s.out.Ready(t, 1)
	at := boottime.Now().Add(50 * time.Millisecond)
	s.extend(at)
	s.gone(guard.ReasonDeadline)
	within(t, "the child", guardtest.LastAct(t, file), at.Add(margin))
}

func TestEarlierInstantThatHasPassedFiresAtOnce(t *testing.T) {
	s := launch(t, guardtest.Program("act", tempFile(t))...)
	s.begin(far())
	s.deadline(boottime.Now())
	s.gone(guard.ReasonDeadline)
}

func TestInstantWithoutEndIsKept(t *testing.T) {
	s := launch(t, guardtest.Program("exit", "0")...)
	s.begin(boottime.Never)
	s.gone(guard.ReasonExited)
}

func TestNoExtensionIsAcceptedOnceTheInstantHasPassed(t *testing.T) {
	file := tempFile(t)
	s := launch(t, guardtest.Program("act", file)...)
	at := boottime.Now().Add(2 * time.Second)
	s.begin(at)
	s.out.Ready(t, 1)
	// The order is written in time, but the guard stands still until the
	// instant has passed.
	halt(t, s.pid)
	s.deadline(far())
	guardtest.Until(t, at)
	thaw(t, s.pid)
	s.gone(guard.ReasonDeadline)
}

func TestAfterAFreezeOfGuardAndChildTheChildActsFor200msAtMost(t *testing.T) {
	file := tempFile(t)
	s := launch(t, guardtest.Program("act", file)...)
	at := boottime.Now().Add(2 * time.Second)
	child := s.begin(at)
	s.out.Ready(t, 1)
	halt(t, s.pid, child)
	guardtest.Until(t, at.Add(100*time.Millisecond))
	// The child first: the worse order.
	back := boottime.Now()
	thaw(t, child, s.pid)
	s.gone(guard.ReasonDeadline)
	within(t, "the thawed child", guardtest.LastAct(t, file), back.Add(200*time.Millisecond))
}

func TestAnOrderThatArrivesInPiecesIsOneOrder(t *testing.T) {
	s := launch(t, guardtest.Program("act", tempFile(t))...)
	line, err := guard.Order{Type: guard.OrderDeadline, Seq: 1, At: far()}.Encode()
	if err != nil {
		t.Fatal(err)
	}
	for i := range line {
		if _, err := s.control.Write(line[i : i+1]); err != nil {
			t.Fatal(err)
		}
	}
	s.expect(guard.ReportAck)
	s.expect(guard.ReportStarted)
	s.send(guard.Order{Type: guard.OrderKill})
	s.gone(guard.ReasonKill)
}
