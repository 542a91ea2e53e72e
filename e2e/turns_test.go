package e2e

import (
	"syscall"
	"testing"
	"time"

	"github.com/sf2loki/sf2loki-ha/e2e/cluster"
)

// odd is a pair whose replicas have something of their own, which their election
// must not mind.
type odd struct {
	b backend
	c *cluster.Cluster
	// launch, by the name of a replica.
	launch map[string]cluster.Launch
	// bootAhead and wallAhead say how far the clocks of a replica are ahead of
	// those of this machine.
	bootAhead, wallAhead map[string]time.Duration
}

// start starts a replica and waits until it says so.
func (o *odd) start(t *testing.T, name, ready string) *cluster.Replica {
	t.Helper()
	if o.c == nil {
		o.c = newCluster(t, o.b)
	}
	r, err := o.c.StartAs(name, o.launch[name])
	if err != nil {
		t.Fatal(err)
	}
	if !r.AwaitReady(ready, 30*time.Second) {
		t.Fatalf("replica %s does not say %q within 30 s", name, ready)
	}
	return r
}

// acts are all acts so far on this machine's clock.
func (o *odd) acts() []cluster.Act {
	acts := o.c.History().Acts()
	for i, a := range acts {
		acts[i].Boot -= int64(o.bootAhead[a.Replica])
	}
	return acts
}

// fail kills the leader and judges the takeover: not before the lease was stale
// for the longer of the two ttls, not after the bound that follows from it.
func (o *odd) fail(t *testing.T, leader, standby *cluster.Replica, longest time.Duration) {
	t.Helper()
	rec := o.b.record(t)
	if err := leader.Signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	killed := time.Now()
	if !leader.Wait(2 * time.Second) {
		t.Errorf("the work of %s still lives 2 s after its kill", leader.Name)
	}
	if now := o.b.record(t); now.Epoch == rec.Epoch {
		rec = now // renewed between the first read and the kill
	}
	if _, ok := o.c.History().Await(longest+20*time.Second, func(a cluster.Act) bool { return a.Epoch > rec.Epoch }); !ok {
		t.Fatalf("nobody took over from %s", leader.Name)
	}
	var first cluster.Act
	for _, a := range o.acts() {
		if a.Epoch > rec.Epoch {
			first = a
			break
		}
	}
	renewed := onBoot(rec.RenewedAt) - int64(o.wallAhead[leader.Name])
	waited, bound := time.Duration(first.Boot-renewed), longest+time.Second+400*time.Millisecond+slack
	if waited < longest || waited > bound {
		t.Errorf("%s acted %v after the last renewal of %s; want %v to %v", first.Replica, waited, leader.Name, longest, bound)
	}
	if first.Replica != standby.Name || first.Epoch != rec.Epoch+1 {
		t.Errorf("%s acts at epoch %d after the kill of %s at %d", first.Replica, first.Epoch, leader.Name, rec.Epoch)
	}
	t.Logf("%s killed, %s acted %v after the last renewal, %v after the kill", leader.Name, standby.Name, waited, time.Since(killed).Round(time.Millisecond))
}

// turns lets A lead, then B, then A: each of them once as the leader that dies,
// as its successor, and as the one that comes back. It returns the last leader.
func (o *odd) turns(t *testing.T, longest time.Duration) *cluster.Replica {
	t.Helper()
	stop := watchCommits(t, document(t, o.b))
	a := o.start(t, "A", "ready")
	b := o.start(t, "B", "standby")
	stays(t, a, b, time.Second)
	o.fail(t, a, b, longest)
	a = o.start(t, "A", "standby")
	if !b.AwaitReady("ready", 5*time.Second) {
		t.Fatal("B does not report to lead")
	}
	stays(t, b, a, time.Second)
	o.fail(t, b, a, longest)
	stop()
	o.sound(t)
	return a
}

// sound fails if two canaries acted at once, a record is missing or an epoch went
// back.
func (o *odd) sound(t *testing.T) {
	t.Helper()
	acts := o.acts()
	if overlap := cluster.Overlap(acts); overlap > 0 {
		t.Errorf("two canaries acted at once for %v", overlap)
	}
	if missing := cluster.Missing(acts); len(missing) > 0 {
		t.Errorf("%d records are missing, the first is %d", len(missing), missing[0])
	}
	terms(t, acts)
}
