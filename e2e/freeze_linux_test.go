package e2e

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/sf2loki/sf2loki-ha/coordinator/k8slease"
	"github.com/sf2loki/sf2loki-ha/e2e/cluster"
	"github.com/sf2loki/sf2loki-ha/internal/boottime"
	"github.com/sf2loki/sf2loki-ha/internal/proctree"
	"github.com/sf2loki/sf2loki-ha/internal/testservers"
)

// afterThaw is how long old work may run after the end of a freeze that covered
// its guard.
const afterThaw = 200 * time.Millisecond

// dying is how long the kernel may take to bring a killed process down on a busy
// machine. It runs no instruction of its own any more, which its acts show.
const dying = 150 * time.Millisecond

// tree is the processes of a leader, supervisor first, then its guard, then the
// work.
type tree []int

func (p tree) work() tree { return p[2:] }

func treeOf(t *testing.T, supervisor int) tree {
	t.Helper()
	all, err := proctree.List()
	if err != nil {
		t.Fatal(err)
	}
	pids := tree{supervisor}
	for _, p := range proctree.Descendants(all, supervisor) { // parents first
		pids = append(pids, p.PID)
	}
	if len(pids) != 4 {
		t.Fatalf("processes %v; want supervisor, guard, canary and its child", pids)
	}
	return pids
}

// send signals each of them, as fast as it can.
func send(t *testing.T, pids tree, s unix.Signal) {
	t.Helper()
	for _, pid := range pids {
		if err := unix.Kill(pid, s); err != nil && !errors.Is(err, unix.ESRCH) {
			t.Error(err)
		}
	}
}

// ending waits for the end of a process; the instant of it is 0 until then.
func ending(t *testing.T, pid int) *atomic.Int64 {
	t.Helper()
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		t.Fatal(err)
	}
	at := &atomic.Int64{}
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer unix.Close(fd)
		for t.Context().Err() == nil {
			if n, _ := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, 100); n > 0 {
				at.Store(int64(boottime.Now()))
				return
			}
		}
	}()
	t.Cleanup(func() { <-done })
	return at
}

// stubborn is work for which it takes a guard: beside the canary, which ends when
// its commit is refused, a second one that knows of no document and writes on.
func stubborn(t *testing.T) []string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "stubborn.yaml")
	if err := os.WriteFile(file, []byte("coordinate: {type: noop}\nstate: {store: none}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return []string{"sh", "-c", `"$0" canary --interval 20ms --config "$1" & exec "$0" canary --interval 20ms`, binary(t), file}
}

// frozen is one kind of freeze.
type frozen struct {
	name string
	pick func(tree) tree // who is stopped
	// guarded: the guard runs, so that the work is dead by the deadline. Otherwise
	// it is dead soon after the end of the freeze.
	guarded bool
}

var freezes = []frozen{
	{"supervisor", func(p tree) tree { return p[:1] }, true},
	{"supervisor and guard", func(p tree) tree { return p[:2] }, false},
	{"whole tree", func(p tree) tree { return p }, false},
}

// k8sBackends are Leases with names of their own on one API server.
func k8sBackends(t *testing.T) func(t *testing.T, name string) backend {
	srv := kubeServer(t)
	return func(t *testing.T, name string) backend {
		config := srv.Kubeconfig(t, srv.AdminToken)
		store, err := k8slease.Open(t.Context(), k8slease.Config{Namespace: testservers.KubeNamespace, Name: name, Kubeconfig: config})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = store.Close() })
		return backend{
			name: "kube-apiserver", budget: budget(6*time.Second, 2*time.Second), store: store,
			config: fmt.Sprintf("coordinate: {type: k8s_lease, k8s_lease: {namespace: %s, name: %s, kubeconfig: %s, lease_duration: 6s, renew_interval: 2s}}\nstate: {store: file, file: {path: %s/state.json, shared: true}}\n",
				testservers.KubeNamespace, name, config, t.TempDir()),
		}
	}
}

func TestAfterAFreezeTheOldWorkIsDeadAndItsReplicaAStandby(t *testing.T) {
	own := func(open func(*testing.T) backend) func(*testing.T) {
		return func(t *testing.T) {
			cases := map[string]func(*testing.T){}
			for _, f := range freezes {
				cases[f.name] = func(t *testing.T) { freeze(t, open(t), f) }
			}
			together(t, cases)
		}
	}
	together(t, map[string]func(*testing.T){
		"s3_lease": own(s3Backend), "gcs_lease": own(gcsBackend), "file_lease": own(fileBackend),
		"k8s_lease": func(t *testing.T) {
			open, cases := k8sBackends(t), map[string]func(*testing.T){}
			for _, f := range freezes {
				cases[f.name] = func(t *testing.T) { freeze(t, open(t, strings.ReplaceAll(f.name, " ", "-")), f) }
			}
			together(t, cases)
		},
	})
}

// freeze stops processes of a leader for three times its ttl and judges by the
// acts, the document and what the replicas say.
func freeze(t *testing.T, b backend, f frozen) {
	b.env = append(b.env[:len(b.env):len(b.env)], "SF2LOKI_WORKLOAD__UNFENCED_STATE=accept") // its canary is fenced in a file, too
	p := newPair(t, b, stubborn(t)...)
	old := p.leader
	if !await(5*time.Second, func() bool { return len(byProcess(p.History().Acts())) == 2 }) {
		t.Fatal("the second process of the work does not act")
	}
	processes := treeOf(t, old.PID())
	var ends []*atomic.Int64
	for _, pid := range processes.work() {
		ends = append(ends, ending(t, pid))
	}
	reg := document(t, b)
	stop := watchCommits(t, reg)

	// 1. Freeze.
	victims := f.pick(processes)
	begun := time.Now()
	send(t, victims, unix.SIGSTOP)
	time.Sleep(200 * time.Millisecond) // a renewal on its way lands
	rec := b.record(t)
	if rec.Epoch != p.epoch || rec.Holder != old.Name {
		t.Fatalf("record of %q at epoch %d before the takeover", rec.Holder, rec.Epoch)
	}
	deadline := onBoot(rec.RenewedAt) + int64(b.budget.DeadAfter)

	// 2. Takeover.
	next := p.successor(t, 30*time.Second)
	if took := time.Since(begun); took > b.budget.Failover+slack {
		t.Errorf("takeover after %v, bound %v", took, b.budget.Failover)
	}
	if next.Replica != p.standby.Name {
		t.Fatalf("the frozen replica %s leads again", next.Replica)
	}
	time.Sleep(time.Until(begun.Add(3 * rec.TTL)))
	if f.guarded {
		for i, end := range ends {
			switch at := end.Load(); {
			case at == 0:
				t.Errorf("process %d of the work lives", i)
			case at > deadline:
				t.Errorf("process %d of the work ended %v after the deadline", i, time.Duration(at-deadline))
			}
		}
	}

	// 3. Thaw, the work first: that is the worst order.
	victims = slices.Clone(victims)
	slices.Reverse(victims)
	lag := schedulerLag()
	thawed := int64(boottime.Now())
	send(t, victims, unix.SIGCONT)
	for end := time.Now().Add(10 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("the thawed replica is not a standby within 10 s")
		}
		_, body, err := old.Ready()
		if body == "ready" {
			t.Fatal("the thawed replica says that it is ready")
		}
		if err == nil && body == "standby" {
			break
		}
	}
	stays(t, p.standby, old, b.budget.Failover+time.Second)

	// 4. Judge.
	acts := p.History().Acts()
	judgeOldWork(t, p, f, acts, instants{deadline: deadline, thawed: thawed, successor: next.Boot, ends: ends, lag: lag()})
	if epochs := terms(t, acts); len(epochs) != 2 {
		t.Errorf("terms of epochs %v acted, want two", epochs)
	}
	if missing := cluster.Missing(tracked(acts, p.History().Remarks())); len(missing) > 0 {
		t.Errorf("%d records are missing, the first is %d", len(missing), missing[0])
	}
	if reads := stop(); reads < 50 {
		t.Errorf("the document was read %d times: too few to show anything", reads)
	}
	if now, err := readProgress(t.Context(), reg); err != nil || now.Epoch != next.Epoch || now.Term != next.Term || now.Fence.Term != next.Term {
		t.Errorf("document %+v, %v; want commits of epoch %d, term %s", now, err, next.Epoch, next.Term)
	}
	if rec := b.record(t); rec.Epoch != next.Epoch || rec.Term != next.Term {
		t.Errorf("lease at epoch %d, term %s; want %d, %s", rec.Epoch, rec.Term, next.Epoch, next.Term)
	}
}

// instants of a freeze, on the clock of the acts.
type instants struct {
	deadline, thawed, successor int64
	ends                        []*atomic.Int64
	lag                         time.Duration // of this machine, after SIGCONT
}

// schedulerLag measures, on every processor, how late this machine wakes a thread
// that sleeps: 200 ms after a freeze is what the guard needs once the operating
// system runs it. The function returned waits for the result.
func schedulerLag() func() time.Duration {
	begun, worst := boottime.Now(), make(chan time.Duration, runtime.NumCPU())
	for cpu := range runtime.NumCPU() {
		go func() {
			runtime.LockOSThread() // and never unlocked: the thread ends with the goroutine
			var one unix.CPUSet
			one.Set(cpu)
			_ = unix.SchedSetaffinity(0, &one) // not ours to use: measured elsewhere
			lag := boottime.Now().Sub(begun)   // of its own start
			for boottime.Now().Sub(begun) < 2*afterThaw {
				at := boottime.Now()
				_ = unix.Nanosleep(&unix.Timespec{Nsec: int64(time.Millisecond)}, nil)
				lag = max(lag, boottime.Now().Sub(at)-time.Millisecond)
			}
			worst <- lag
		}()
	}
	return func() (lag time.Duration) {
		for range runtime.NumCPU() {
			lag = max(lag, <-worst)
		}
		return lag
	}
}

// judgeOldWork looks at what the work of the frozen replica did, and when.
func judgeOldWork(t *testing.T, p *pair, f frozen, acts []cluster.Act, at instants) {
	t.Helper()
	var during, after int
	var last int64
	writers := map[int]int{}
	for _, a := range acts {
		if a.Replica != p.leader.Name {
			continue
		}
		last = max(last, a.Boot)
		switch {
		case a.Boot > at.thawed:
			after++
		case a.Boot > at.deadline:
			during++
			writers[a.PID]++
		}
	}
	refused := 0
	for _, r := range p.History().Remarks() {
		if r.Replica == p.leader.Name && r.Event == "fenced" {
			refused++
		}
	}
	if f.guarded {
		if last > at.deadline || last >= at.successor {
			t.Errorf("the old work acted %v after its deadline, %v after the new work had begun", time.Duration(last-at.deadline), time.Duration(last-at.successor))
		}
		t.Logf("last act %v before the deadline, first act of the successor %v after it", time.Duration(at.deadline-last), time.Duration(at.successor-at.deadline))
		return
	}
	limit := at.thawed + int64(afterThaw+at.lag)
	if last > limit {
		t.Errorf("the old work acted %v after SIGCONT", time.Duration(last-at.thawed))
	}
	var ended []time.Duration
	for i, end := range at.ends {
		e := end.Load()
		switch {
		case e == 0:
			t.Errorf("process %d of the work lives", i)
			continue
		case e > limit+int64(dying):
			t.Errorf("process %d of the work ended %v after SIGCONT", i, time.Duration(e-at.thawed))
		}
		ended = append(ended, time.Duration(e-at.thawed).Round(time.Millisecond))
	}
	t.Logf("%d acts after SIGCONT; the processes of the work ended at SIGCONT + %v (this machine wakes threads up to %v late); %d commits refused",
		after, ended, at.lag.Round(time.Millisecond), refused)
	if f.name != "supervisor and guard" {
		if during > 0 {
			t.Errorf("%d acts of work that was frozen", during)
		}
		return
	}
	// Outside the claim: nobody was left to stop it, except the document.
	t.Logf("outside the claim: %d acts between the deadline and SIGCONT, by process %v", during, writers)
	if during == 0 {
		t.Error("no act while supervisor and guard were stopped: the end of the freeze ended nothing")
	}
	if refused == 0 {
		t.Error("the canary wrote on, and no commit of it was refused")
	}
}

// process is one process that acts.
type process struct {
	replica string
	pid     int
}

func byProcess(acts []cluster.Act) map[process]int {
	n := map[process]int{}
	for _, a := range acts {
		n[process{a.Replica, a.PID}]++
	}
	return n
}

// tracked are the acts of canaries that keep their position in the document.
func tracked(acts, remarks []cluster.Act) []cluster.Act {
	untracked := map[process]bool{}
	for _, r := range remarks {
		if r.Verdict == "untracked" {
			untracked[process{r.Replica, r.PID}] = true
		}
	}
	return slices.DeleteFunc(slices.Clone(acts), func(a cluster.Act) bool { return untracked[process{a.Replica, a.PID}] })
}
