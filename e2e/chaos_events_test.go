//go:build linux

package e2e

import (
	"errors"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"github.com/sf2loki/sf2loki-ha/e2e/cluster"
	"github.com/sf2loki/sf2loki-ha/e2e/faultproxy"
	"github.com/sf2loki/sf2loki-ha/e2e/history"
	"github.com/sf2loki/sf2loki-ha/internal/boottime"
	"github.com/sf2loki/sf2loki-ha/internal/proctree"
)

// rage does one thing after the other to the pair, at random; the first four are
// to the leader, and two of them in any case.
func (c *chaos) rage(span time.Duration) {
	c.t.Helper()
	if _, ok := c.c.History().Await(time.Minute, func(cluster.Act) bool { return true }); !ok {
		c.t.Fatal("no first leader")
	}
	begin := []func(string){c.kill, c.freezeLong, c.cut, c.freezeSupervisor}
	events := []func(string){c.kill, c.kill, c.freezeWhole, c.freezeWhole, c.freezeSupervisor, c.freezeGuard, c.cut, c.cut}
	for end, i := time.Now().Add(span), 0; i < 2 || time.Now().Before(end); i++ {
		c.pause(200*time.Millisecond, c.stage.run.TTL/2)
		c.alive()
		if i < len(begin) {
			from := int64(boottime.Now())
			c.c.History().Await(2*c.stage.budget.Failover, func(a cluster.Act) bool { return a.Boot > from })
			begin[i](c.leader())
			continue
		}
		victim := c.leader()
		if c.rng.IntN(4) == 0 {
			victim = other(victim)
		}
		events[c.rng.IntN(len(events))](victim)
		if c.rng.IntN(4) == 0 { // and the other one, too
			events[c.rng.IntN(len(events))](other(victim))
		}
	}
}

func other(name string) string { return map[string]string{"A": "B", "B": "A"}[name] }

// leader is the replica that acted last.
func (c *chaos) leader() string {
	acts := c.c.History().Acts()
	return slices.MaxFunc(acts, func(a, b cluster.Act) int { return int(a.Boot - b.Boot) }).Replica
}

// span is a time by chance.
func (c *chaos) span(from, to time.Duration) time.Duration {
	return from + time.Duration(c.rng.Int64N(int64(to-from)))
}

func (c *chaos) pause(from, to time.Duration) {
	time.Sleep(c.span(from, to))
}

// alive fails the test if a replica has ended by itself.
func (c *chaos) alive() {
	c.t.Helper()
	for name, r := range c.replicas {
		if r.Wait(0) {
			c.t.Fatalf("replica %s ended by itself with status %d", name, r.ExitCode())
		}
	}
}

// family is the processes of a replica, parents first.
func (c *chaos) family(name string) []int {
	c.t.Helper()
	all, err := proctree.List()
	if err != nil {
		c.t.Fatal(err)
	}
	pids := []int{c.replicas[name].PID()}
	for _, p := range proctree.Descendants(all, pids[0]) {
		pids = append(pids, p.PID)
	}
	return pids
}

func (c *chaos) signal(pids []int, s unix.Signal) {
	c.t.Helper()
	for _, pid := range pids {
		if err := unix.Kill(pid, s); err != nil && !errors.Is(err, unix.ESRCH) {
			c.t.Error(err)
		}
	}
}

// kill ends a replica, its supervisor alone or all of its processes in any order,
// and starts it again after a while.
func (c *chaos) kill(name string) {
	c.t.Helper()
	pids, detail := c.family(name), "whole"
	c.rng.Shuffle(len(pids), func(i, j int) { pids[i], pids[j] = pids[j], pids[i] })
	if c.rng.IntN(2) == 0 {
		pids, detail = []int{c.replicas[name].PID()}, "supervisor"
	}
	c.event(name, history.Kill, detail)
	c.signal(pids, unix.SIGKILL)
	if !c.replicas[name].Wait(5 * time.Second) {
		c.t.Fatalf("the work of %s still lives 5 s after its kill", name)
	}
	c.pause(0, time.Second)
	c.start(name)
}

// freezeWhole stops every process of a replica.
func (c *chaos) freezeWhole(name string) {
	c.t.Helper()
	c.freeze(name, c.span(200*time.Millisecond, c.stage.run.TTL*8/5))
}

// freezeLong is a freeze that no lease survives.
func (c *chaos) freezeLong(name string) {
	c.t.Helper()
	c.freeze(name, c.span(c.stage.run.TTL*5/4, c.stage.run.TTL*8/5))
}

// freeze stops the supervisor first: nothing may be left that nobody watches.
func (c *chaos) freeze(name string, span time.Duration) {
	c.t.Helper()
	c.event(name, history.Freeze, "").Whole = true
	var frozen []int
	for {
		fresh := slices.DeleteFunc(c.family(name), func(pid int) bool { return slices.Contains(frozen, pid) })
		if len(fresh) == 0 {
			break
		}
		c.signal(fresh, unix.SIGSTOP)
		frozen = append(frozen, fresh...)
	}
	time.Sleep(span)
	if c.rng.IntN(2) == 0 {
		slices.Reverse(frozen) // the work first
	}
	lag := schedulerLag()
	thaw := c.event(name, history.Thaw, "")
	thaw.Whole = true
	c.signal(frozen, unix.SIGCONT)
	thaw.Lag = boottime.Now().Sub(thaw.At) + lag()
}

// freezeSupervisor leaves the guard to watch the work.
func (c *chaos) freezeSupervisor(name string) {
	c.t.Helper()
	c.freezeOne(name, 0)
}

// freezeGuard leaves the supervisor to notice; a standby has no guard.
func (c *chaos) freezeGuard(name string) {
	c.t.Helper()
	c.freezeOne(name, 1)
}

func (c *chaos) freezeOne(name string, which int) {
	c.t.Helper()
	pids := c.family(name)
	which = min(which, len(pids)-1)
	c.event(name, history.Freeze, []string{"supervisor", "guard"}[which])
	c.signal(pids[which:which+1], unix.SIGSTOP)
	c.pause(200*time.Millisecond, c.stage.run.TTL*8/5)
	c.event(name, history.Thaw, "")
	c.signal(pids[which:which+1], unix.SIGCONT)
}

// cut lets nothing pass between a replica and the store for a while, which goes on
// while other things happen.
func (c *chaos) cut(name string) {
	c.t.Helper()
	dir := []faultproxy.Direction{faultproxy.Requests, faultproxy.Answers, faultproxy.Both}[c.rng.IntN(3)]
	d := c.span(200*time.Millisecond, c.stage.run.TTL*3/2)
	c.event(name, history.Cut, dir.String()+" for "+d.Round(time.Millisecond).String())
	if err := c.proxy.Cut(name, dir, d); err != nil {
		c.t.Fatal(err)
	}
}

// recover ends all faults: within the bound somebody leads, and the pair is in
// order.
func (c *chaos) recover() {
	c.t.Helper()
	c.alive()
	c.proxy.Calm()
	from := int64(boottime.Now())
	// A replica that had to step down stays out for at most two ttls.
	bound := c.stage.budget.Failover + 2*c.stage.run.TTL + 2*slack
	if _, ok := c.c.History().Await(bound, func(a cluster.Act) bool { return a.Boot > from }); !ok {
		c.t.Fatalf("nobody acts within %v after the end of all faults", bound)
	}
	ready := func() bool {
		a, errA := leads(c.replicas["A"])
		b, errB := leads(c.replicas["B"])
		return errA == nil && errB == nil && a != b
	}
	if !await(bound, ready) {
		c.t.Fatalf("not exactly one leads within %v after the end of all faults", bound)
	}
	c.t.Logf("%v after the end of all faults one leads", time.Duration(int64(boottime.Now())-from).Round(time.Millisecond))
	for _, name := range []string{"A", "B"} {
		if err := c.replicas[name].Signal(unix.SIGTERM); err != nil {
			c.t.Error(err)
		}
	}
	for name, r := range c.replicas {
		if !r.Wait(c.stage.budget.Drain+5*time.Second) || r.ExitCode() != 0 {
			c.t.Errorf("%s does not stop, or with status %d", name, r.ExitCode())
		}
	}
}
