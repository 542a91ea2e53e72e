package supervise_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/sf2loki/sf2loki-ha/internal/boottime"
	"github.com/sf2loki/sf2loki-ha/internal/guard/guardtest"
	"github.com/sf2loki/sf2loki-ha/internal/proctree"
	"github.com/sf2loki/sf2loki-ha/internal/supervise"
)

func TestSupervisorKilledTreeIsGoneAtOnce(t *testing.T) {
	// The orphaned guard comes to us, and not to some init that may not reap.
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	cmd, out := supervisor(t, far(), guardtest.Program("family", dir))
	guardPID := parent(t, out.Ready(t, 4)["family"])
	killed := boottime.Now()
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	out.Ended(t)
	guardtest.WaitDead(t, guardPID)
	_ = cmd.Wait()
	if _, err := unix.Wait4(guardPID, nil, 0, nil); err != nil {
		t.Errorf("reap the guard: %v", err)
	}
	for _, file := range guardtest.Members(dir) {
		within(t, file, guardtest.LastAct(t, file), killed.Add(margin))
	}
	noChildren(t)
}

func TestSupervisorFrozenTreeIsGoneByTheDeadline(t *testing.T) {
	dir := t.TempDir()
	at := boottime.Now().Add(3 * time.Second)
	cmd, out := supervisor(t, at, guardtest.Program("family", dir))
	guardPID := parent(t, out.Ready(t, 4)["family"])
	halt(t, cmd.Process.Pid)
	guardtest.WaitDead(t, guardPID)
	for _, file := range guardtest.Members(dir) {
		last := guardtest.LastAct(t, file)
		within(t, file, last, at.Add(margin))
		if last < at.Add(-margin) {
			t.Errorf("%s was killed %v before its time", file, at.Sub(last))
		}
	}
	// Awake again the supervisor tells what happened.
	if err := unix.Kill(cmd.Process.Pid, unix.SIGCONT); err != nil {
		t.Fatal(err)
	}
	rest := strings.Join(out.Ended(t), "\n")
	if want := "outcome killed_at_deadline <nil>"; rest != want {
		t.Errorf("the supervisor says %q, want %q", rest, want)
	}
}

func TestGuardKilledTreeIsGoneAndReaped(t *testing.T) {
	dir := t.TempDir()
	w := start(t, far(), guardtest.Program("family", dir))
	child := w.ready(4)["family"]
	killed := boottime.Now()
	if err := unix.Kill(parent(t, child), unix.SIGKILL); err != nil {
		t.Fatal(err)
	}
	r := w.expect(supervise.GuardFailed)
	if !errors.Is(r.err, supervise.ErrGuard) {
		t.Errorf("error %v, want ErrGuard", r.err)
	}
	if !r.outcome.Exited || r.outcome.Signal != syscall.SIGKILL {
		t.Errorf("outcome %+v, want the kernel's SIGKILL", r.outcome)
	}
	for _, file := range guardtest.Members(dir) {
		within(t, file, guardtest.LastAct(t, file), killed.Add(margin))
	}
	noChildren(t)
}

func TestGuardKilledWhileTheSupervisorIsFrozenTheKernelKillsTheChild(t *testing.T) {
	file := tempFile(t)
	cmd, out := supervisor(t, far(), guardtest.Program("stubborn", file))
	child := out.Ready(t, 1)["stubborn"]
	guardPID := parent(t, child)
	halt(t, cmd.Process.Pid)
	killed := boottime.Now()
	if err := unix.Kill(guardPID, unix.SIGKILL); err != nil {
		t.Fatal(err)
	}
	guardtest.WaitDead(t, child)
	within(t, "the child", guardtest.LastAct(t, file), killed.Add(margin))
	if err := unix.Kill(cmd.Process.Pid, unix.SIGCONT); err != nil {
		t.Fatal(err)
	}
	if rest := strings.Join(out.Ended(t), "\n"); !strings.HasPrefix(rest, "outcome guard_failed") {
		t.Errorf("the supervisor says %q, want guard_failed", rest)
	}
}

func TestGuardFrozenTreeIsGoneWhenARenewalIsNotConfirmed(t *testing.T) {
	dir := t.TempDir()
	w := start(t, far(), guardtest.Program("family", dir))
	halt(t, parent(t, w.ready(4)["family"]))
	renewed := boottime.Now()
	w.lease.move(far())
	r := w.expect(supervise.GuardFailed)
	if !errors.Is(r.err, supervise.ErrGuard) {
		t.Errorf("error %v, want ErrGuard", r.err)
	}
	for _, file := range guardtest.Members(dir) {
		// Half of the margin to answer, the other half to die.
		within(t, file, guardtest.LastAct(t, file), renewed.Add(margin))
	}
	noChildren(t)
}

func TestGuardAndChildFrozenTreeIsGoneAfterALoss(t *testing.T) {
	w := start(t, far(), guardtest.Program("stubborn", tempFile(t)))
	child := w.ready(1)["stubborn"]
	halt(t, parent(t, child))
	halt(t, child)
	w.cancel(errLost)
	w.expect(supervise.KilledOnLoss)
	noChildren(t)
}

func TestGuardThatFailsAtItsTaskIsGivenUp(t *testing.T) {
	for how, tt := range map[string]struct {
		term time.Duration
		act  func(w *work)
		kind supervise.Kind
	}{
		"ends":    {time.Hour, nil, supervise.GuardFailed},
		"babbles": {time.Hour, nil, supervise.GuardFailed},
		// No child runs yet, so a silent guard has time, but not beyond KillAt.
		"is-silent": {time.Second, nil, supervise.GuardFailed},
		"obeys-once": {time.Hour, func(w *work) {
			w.ready(4)
			w.lease.move(far())
		}, supervise.GuardFailed},
		"never-fires": {time.Hour, func(w *work) {
			w.ready(4)
			w.lease.move(boottime.Now().Add(50 * time.Millisecond))
		}, supervise.GuardFailed},
		"hangs-after-gone": {time.Hour, nil, supervise.StartFailed},
	} {
		t.Run(how, func(t *testing.T) {
			dir := t.TempDir()
			w := start(t, boottime.Now().Add(tt.term), guardtest.Program("family", dir), withGuard(how))
			if tt.act != nil {
				tt.act(w)
			}
			began := boottime.Now()
			r := w.expect(tt.kind)
			if tt.kind == supervise.GuardFailed && !errors.Is(r.err, supervise.ErrGuard) {
				t.Errorf("error %v, want ErrGuard", r.err)
			}
			for _, file := range guardtest.Members(dir) {
				if acts := guardtest.Acts(t, file); len(acts) > 0 {
					within(t, file, acts[len(acts)-1], began.Add(2*margin))
				}
			}
			noChildren(t)
		})
	}
}

func TestGuardThatCannotBeStartedIsAnError(t *testing.T) {
	w := start(t, far(), []string{"true"}, func(c *supervise.Config) { c.GuardCommand = []string{"/no/such/guard"} })
	if r := w.expect(supervise.GuardFailed); !errors.Is(r.err, supervise.ErrGuard) {
		t.Errorf("error %v, want ErrGuard", r.err)
	}
}

func TestOrphansThatAreNotOfTheTreeLive(t *testing.T) {
	// A child of this process in its own session, as other code may have it, is
	// told from the tree as long as it is older than the guard; one in our
	// session always.
	file, younger := tempFile(t), tempFile(t)
	older := exec.Command(guardtest.Program("act", file)[0], guardtest.Program("act", file)[1:]...)
	older.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := older.Start(); err != nil {
		t.Fatal(err)
	}
	guardtest.Eventually(t, "the older process", func() bool { return len(guardtest.Acts(t, file)) > 0 })
	w := start(t, far(), guardtest.Program("family", t.TempDir()))
	child := w.ready(4)["family"]
	ours := exec.Command(guardtest.Program("act", younger)[0], guardtest.Program("act", younger)[1:]...)
	if err := ours.Start(); err != nil {
		t.Fatal(err)
	}
	if err := unix.Kill(parent(t, child), unix.SIGKILL); err != nil {
		t.Fatal(err)
	}
	w.expect(supervise.GuardFailed)
	for name, cmd := range map[string]*exec.Cmd{"older, other session": older, "younger, our session": ours} {
		p, err := proctree.Read(cmd.Process.Pid)
		if err != nil || p.Dead() {
			t.Errorf("%s: killed (%+v, %v)", name, p, err)
		}
		_ = cmd.Process.Kill()
		if err := cmd.Wait(); err == nil {
			t.Errorf("%s: somebody else has reaped it", name)
		}
	}
}

func TestDeadGuardOfOneRunLeavesAnotherRunAlone(t *testing.T) {
	first := start(t, far(), guardtest.Program("stubborn", tempFile(t)))
	child := first.ready(1)["stubborn"]
	file := tempFile(t)
	second := start(t, far(), guardtest.Program("act", file))
	second.ready(1)
	if err := unix.Kill(parent(t, child), unix.SIGKILL); err != nil {
		t.Fatal(err)
	}
	first.expect(supervise.GuardFailed)
	before := len(guardtest.Acts(t, file))
	guardtest.Eventually(t, "ten more acts of the second run", func() bool { return len(guardtest.Acts(t, file)) > before+10 })
	second.cancel(errLost)
	second.expect(supervise.KilledOnLoss)
}

func TestRenewalsKeepTheWorkAlive(t *testing.T) {
	file := tempFile(t)
	at := boottime.Now().Add(2 * time.Second)
	first := at
	w := start(t, at, guardtest.Program("act", file))
	w.ready(1)
	for range 4 {
		at = at.Add(200 * time.Millisecond)
		w.lease.move(at)
	}
	w.expect(supervise.KilledAtDeadline)
	last := guardtest.LastAct(t, file)
	if last < first || last < at.Add(-margin) {
		t.Errorf("the last act is %v before the last instant", at.Sub(last))
	}
	within(t, "the child", last, at.Add(margin))
}

func TestExpiredLeaseEndsSlowWorkBeforeTheDeadline(t *testing.T) {
	// The whole budget: the lease cannot be renewed, the stop instant comes a
	// grace before KillAt, the child does not obey.
	file := tempFile(t)
	at := boottime.Now().Add(2 * time.Second)
	const grace = 300 * time.Millisecond
	w := start(t, at, guardtest.Program("stubborn", file), func(c *supervise.Config) { c.StopGrace = grace })
	w.ready(1)
	guardtest.Until(t, at.Add(-grace))
	w.cancel(errExpired)
	r := w.wait()
	if r.outcome.Kind != supervise.Stopped && r.outcome.Kind != supervise.KilledAtDeadline {
		t.Errorf("outcome %+v", r.outcome)
	}
	deadline := at.Add(margin)
	within(t, "the child", guardtest.LastAct(t, file), deadline)
	if r.at > deadline {
		t.Errorf("the tree was gone %v after the deadline", r.at.Sub(deadline))
	}
}

// noChildren checks that this process has no child left, not even a dead one.
func noChildren(t *testing.T) {
	t.Helper()
	if left := children(t); len(left) > 0 {
		t.Errorf("children are left: %v", left)
	}
}

func children(t *testing.T) (left []string) {
	t.Helper()
	all, err := proctree.List()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range proctree.Descendants(all, os.Getpid()) {
		left = append(left, fmt.Sprintf("%+v", p))
	}
	return left
}
