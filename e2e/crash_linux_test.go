package e2e

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/sf2loki/sf2loki-ha/cas/linkfile"
	"github.com/sf2loki/sf2loki-ha/coordinator"
	"github.com/sf2loki/sf2loki-ha/e2e/cluster"
	"github.com/sf2loki/sf2loki-ha/internal/boottime"
	"github.com/sf2loki/sf2loki-ha/internal/proctree"
)

// crashFor is how long the crash test runs; the environment may say longer.
const (
	crashFor    = 30 * time.Second
	crashForEnv = "SF2LOKI_HA_E2E_CRASH_FOR"
)

// quickFileBackend has the shortest timing that leaves a busy machine its time,
// so that many terms fit into the test.
func quickFileBackend(t *testing.T) (backend, string) {
	dir := t.TempDir()
	lease := filepath.Join(dir, "lease", "leader.lease")
	const ttl, renew, poll = 2 * time.Second, 400 * time.Millisecond, 200 * time.Millisecond
	return backend{
		name: "file", lease: linkfile.New(lease, linkfile.Options{}),
		budget: coordinator.Config{TTL: ttl, RenewInterval: renew, PollInterval: poll}.Budget(),
		config: fmt.Sprintf("coordinate: {type: file_lease, file_lease: {path: %s, ttl: %v, renew_interval: %v, poll_interval: %v}}\nstate: {store: file, file: {path: %s/state.json, shared: true}}\n",
			lease, ttl, renew, poll, dir),
	}, filepath.Dir(lease)
}

// crashes kills and restarts the two replicas of a pair.
type crashes struct {
	t        *testing.T
	c        *cluster.Cluster
	dir      string // of the lease
	replicas map[string]*cluster.Replica
	started  map[string]time.Time

	all []*cluster.Replica

	kills, turns int
	deposed      int             // leaders killed
	torn         map[string]bool // writes whose private file stayed behind
}

func (k *crashes) start(name string) {
	k.t.Helper()
	k.replicas[name] = start(k.t, k.c, name)
	k.started[name] = time.Now()
	k.all = append(k.all, k.replicas[name])
}

// kill ends a replica with SIGKILL: its supervisor alone, or every process of its
// tree in any order.
func (k *crashes) kill(name string, whole bool) {
	k.t.Helper()
	pids := tree{k.replicas[name].PID()}
	if whole {
		all, err := proctree.List()
		if err != nil {
			k.t.Fatal(err)
		}
		for _, p := range proctree.Descendants(all, pids[0]) {
			pids = append(pids, p.PID)
		}
		rand.Shuffle(len(pids), func(i, j int) { pids[i], pids[j] = pids[j], pids[i] })
	}
	send(k.t, pids, unix.SIGKILL)
	k.kills++
}

// temps are the private files of writes that are under way, or were torn off.
func (k *crashes) temps() map[string]bool {
	found := map[string]bool{}
	entries, _ := os.ReadDir(k.dir)
	for _, e := range entries {
		if strings.HasSuffix(e.Name(), ".tmp") {
			found[e.Name()] = true
		}
	}
	return found
}

// tear takes note of the writes that a kill tore off.
func (k *crashes) tear() {
	time.Sleep(20 * time.Millisecond) // the kill is over, and so is a write of the other one
	first := k.temps()
	time.Sleep(20 * time.Millisecond)
	for name := range k.temps() {
		if first[name] {
			k.torn[name] = true
		}
	}
}

// moment waits for the moment of a kill: any, or the midst of a write.
func (k *crashes) moment() {
	time.Sleep(rand.N(1200 * time.Millisecond))
	if rand.N(2) == 0 {
		return
	}
	before := k.temps()
	for end := time.Now().Add(time.Second); time.Now().Before(end); time.Sleep(100 * time.Microsecond) {
		for name := range k.temps() {
			if !before[name] {
				time.Sleep(rand.N(time.Millisecond))
				return
			}
		}
	}
}

// latest is the last act so far.
func (k *crashes) latest() cluster.Act {
	acts := k.c.History().Acts()
	return acts[len(acts)-1]
}

// turn kills one replica or both, restarts them and waits until one acts again,
// in a new term if the leader was killed.
func (k *crashes) turn(bound time.Duration) {
	t := k.t
	t.Helper()
	k.turns++
	leader := k.latest()
	standby := map[string]string{"A": "B", "B": "A"}[leader.Replica]
	victims := [][]string{{leader.Replica}, {leader.Replica}, {standby}, {leader.Replica, standby}}[rand.N(4)]
	k.moment()
	killed, from := int64(boottime.Now()), time.Now()
	for _, name := range victims {
		k.kill(name, rand.N(2) == 0)
	}
	k.tear()
	for _, name := range victims {
		time.Sleep(rand.N(400 * time.Millisecond))
		k.start(name)
	}
	// The bound counts from the first read of a replica that lives.
	first := k.started["A"]
	if k.started["B"].Before(first) {
		first = k.started["B"]
	}
	if first.After(from) {
		from = first
	}
	epoch := leader.Epoch
	if victims[0] == leader.Replica {
		epoch++
		k.deposed++
	}
	if _, ok := k.c.History().Await(bound-time.Since(from), func(a cluster.Act) bool {
		return a.Epoch >= epoch && a.Boot > killed
	}); !ok {
		t.Fatalf("turn %d: %v killed while %s led at epoch %d, and nobody acts within %v", k.turns, victims, leader.Replica, leader.Epoch, bound)
	}
}

// Two processes that are killed at any moment, also in the midst of a write of
// the lease: never two that act, and always one that is elected.
func TestAFileLeasePairThatIsKilledAtAnyMomentActsAloneAndElectsAgain(t *testing.T) {
	span := crashFor
	if text := os.Getenv(crashForEnv); text != "" {
		var err error
		if span, err = time.ParseDuration(text); err != nil {
			t.Fatalf("%s: %v", crashForEnv, err)
		}
	}
	b, dir := quickFileBackend(t)
	k := &crashes{t: t, c: newCluster(t, b), dir: dir, replicas: map[string]*cluster.Replica{}, started: map[string]time.Time{}, torn: map[string]bool{}}
	k.start("A")
	k.start("B")
	if _, ok := k.c.History().Await(b.budget.Failover+2*slack, func(cluster.Act) bool { return true }); !ok {
		t.Fatal("no first leader")
	}
	// The lease itself, all the time: readable, and its epoch never goes back.
	var last coordinator.Record
	store := coordinator.FromRegister(b.lease)
	stop := watch(t, 20*time.Millisecond, func(ctx context.Context) error {
		l, err := store.Read(ctx)
		switch {
		case ctx.Err() != nil:
			return err
		case err != nil, l.Corrupt != nil:
			t.Errorf("the lease cannot be read: %v", errors.Join(err, l.Corrupt))
		case l.Record.Epoch < last.Epoch, l.Record.Epoch == last.Epoch && l.Record.Term != last.Term:
			t.Errorf("the lease went from epoch %d, term %s, to epoch %d, term %s", last.Epoch, last.Term, l.Record.Epoch, l.Record.Term)
		}
		last = l.Record
		return err
	})
	commits := watchCommits(t, document(t, b))

	for end := time.Now().Add(span); time.Now().Before(end); {
		k.turn(b.budget.Failover + slack)
	}

	stop()
	commits()
	acts := k.c.History().Acts()
	if overlap := cluster.Overlap(acts); overlap > 0 {
		t.Errorf("two canaries acted at once for %v", overlap)
	}
	if missing := cluster.Missing(acts); len(missing) > 0 {
		t.Errorf("%d records are missing, the first is %d", len(missing), missing[0])
	}
	epochs := terms(t, acts)
	if len(epochs) < 4 {
		t.Errorf("%d terms: too few to show anything", len(epochs))
	}
	// Nobody took over from a leader that lived, unless the machine was too busy
	// for it.
	if extra := len(epochs) - 1 - k.deposed; extra > 0 && !slices.ContainsFunc(k.all, func(r *cluster.Replica) bool { return stalled(t, r) }) {
		t.Errorf("%d terms after %d killed leaders: %d leaders that lived were replaced", len(epochs), k.deposed, extra)
	}
	t.Logf("%d turns, %d kills, %d of them tore a write off, %d terms, epochs %d to %d, %d acts",
		k.turns, k.kills, len(k.torn), len(epochs), epochs[0], epochs[len(epochs)-1], len(acts))
}
