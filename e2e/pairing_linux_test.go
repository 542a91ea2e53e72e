package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"syscall"
	"testing"
	"time"

	"github.com/sf2loki/sf2loki-ha/e2e/cluster"
)

// isolated runs a replica as process 1 of a process namespace, on a host that is
// called localhost: what a container without a name of its own looks like. It
// needs root.
var isolated = cluster.Launch{
	Env:     []string{"SF2LOKI_COORDINATE__FILE_LEASE__HOLDER_ID="},
	Through: []string{"sh", "-c", `mount -t proc proc /proc && echo localhost > /proc/sys/kernel/hostname && exec "$0" "$@"`},
	Change: func(a *syscall.SysProcAttr) {
		a.Cloneflags = syscall.CLONE_NEWPID | syscall.CLONE_NEWUTS
		a.Unshareflags = syscall.CLONE_NEWNS
	},
}

// hoursAhead is the offset of the kernel's own clocks for one of two replicas.
const hoursAhead = 5 * time.Hour

// elsewhen runs a replica in a time namespace: CLOCK_BOOTTIME and CLOCK_MONOTONIC,
// by which it, its guard and its work count, are hours ahead, as on a machine that
// has been up for longer. It needs root.
var elsewhen = cluster.Launch{Through: []string{"unshare", "--time", "--boottime", fmt.Sprint(int(hoursAhead.Seconds())),
	"--monotonic", fmt.Sprint(int(hoursAhead.Seconds())), "--"}}

// allowed tells whether this user may start a process so, and why not.
func allowed(l cluster.Launch) error {
	argv := append(append([]string{}, l.Through...), "true")
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.SysProcAttr = &syscall.SysProcAttr{}
	if l.Change != nil {
		l.Change(cmd.SysProcAttr)
	}
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%w: %s", err, out)
	}
	return nil
}

func TestAPairOfLookalikesOrOfMachinesWithOtherClocksHasOneLeader(t *testing.T) {
	together(t, map[string]func(*testing.T){"process 1 of localhost": lookalikes, "boot clocks hours apart": otherBootClock})
}

// lookalikes: neither host name nor process id tells the replicas apart, nor do
// those of their guards and their work.
func lookalikes(t *testing.T) {
	o := &odd{b: fileBackend(t), launch: map[string]cluster.Launch{"A": isolated, "B": isolated}}
	holder, namespaces := "localhost", allowed(isolated)
	if namespaces != nil {
		t.Logf("no namespaces here (%v): emulated by the holder id alone", namespaces)
		holder = "localhost-1"
		named := cluster.Launch{Env: []string{"SF2LOKI_COORDINATE__FILE_LEASE__HOLDER_ID=" + holder}}
		o.launch = map[string]cluster.Launch{"A": named, "B": named}
	}
	leader := o.turns(t, 6*time.Second)
	if rec := o.b.record(t); rec.Holder != holder {
		t.Errorf("holder %q, want %q: nothing was tested", rec.Holder, holder)
	}
	if namespaces != nil {
		return
	}
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", leader.PID()))
	if err != nil || !regexp.MustCompile(`(?m)^NSpid:.*\t1$`).Match(status) {
		t.Errorf("the replica is not process 1 of its namespace, nothing was tested: %v\n%s", err, status)
	}
	t.Log("each replica was process 1 of a process namespace, on a host called localhost")
}

// otherBootClock: no instant of one machine's clock reaches another machine.
func otherBootClock(t *testing.T) {
	o := &odd{b: fileBackend(t), launch: map[string]cluster.Launch{"B": elsewhen}, bootAhead: map[string]time.Duration{"B": hoursAhead}}
	if err := allowed(elsewhen); err != nil {
		t.Logf("no time namespaces here (%v): both replicas have the clock of this machine", err)
		o.launch, o.bootAhead = nil, nil
	}
	o.turns(t, 6*time.Second)
}
