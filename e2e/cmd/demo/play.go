package main

import (
	"context"
	"errors"
	"fmt"
	"sort"
	"syscall"
	"time"

	"github.com/sf2loki/sf2loki-ha/coordinator"
	"github.com/sf2loki/sf2loki-ha/e2e/cluster"
)

// handoverLimit is what a planned stop may cost here.
const handoverLimit = 2 * time.Second

// demo is one performance: which replica leads, and what was measured.
type demo struct {
	cluster *cluster.Cluster
	show    *timeline
	budget  coordinator.Budget

	leader, standby *cluster.Replica
	crash, handover []time.Duration
}

// play starts the pair and runs the rounds.
func (d *demo) play(ctx context.Context, rounds int) error {
	for _, name := range []string{"A", "B"} {
		r, err := d.cluster.Start(name)
		if err != nil {
			return err
		}
		d.show.say(name, "sf2loki-ha run -- sf2loki-ha canary   (supervisor pid %d)", r.PID())
		if d.leader == nil {
			d.leader = r
		} else {
			d.standby = r
		}
	}
	d.show.say("", "nobody has led this lease before, so one ttl (%v) must pass", ttl)
	first, err := d.await(ctx, func(cluster.Act) bool { return true })
	if err != nil {
		return fmt.Errorf("no first leader: %w", err)
	}
	if first.Replica != d.leader.Name {
		d.leader, d.standby = d.standby, d.leader
	}
	d.show.say(first.Replica, "leads at epoch %d, its canary writes record %d", first.Epoch, first.N)

	for i := range rounds {
		took, err := d.round(ctx, syscall.SIGKILL, i+1, rounds)
		if err != nil {
			return fmt.Errorf("crash round %d: %w", i+1, err)
		}
		d.crash = append(d.crash, took)
	}
	for i := range rounds {
		took, err := d.round(ctx, syscall.SIGTERM, i+1, rounds)
		if err != nil {
			return fmt.Errorf("handover round %d: %w", i+1, err)
		}
		d.handover = append(d.handover, took)
	}
	return nil
}

// round ends the leader with a signal, waits until the other replica works, and
// starts a new standby.
func (d *demo) round(ctx context.Context, how syscall.Signal, i, of int) (time.Duration, error) {
	// The crash comes at another point of the renewal interval each time.
	if err := pause(ctx, 2500*time.Millisecond+time.Duration(i)*700*time.Millisecond); err != nil {
		return 0, err
	}
	if !d.standby.AwaitReady("standby", 20*time.Second) {
		return 0, fmt.Errorf("replica %s is not a standby", d.standby.Name)
	}
	acts := d.cluster.History().Acts()
	epoch := acts[len(acts)-1].Epoch
	label, verb := "kill", "SIGKILL"
	if how == syscall.SIGTERM {
		label, verb = "stop", "SIGTERM"
	}
	d.show.say(label, "%s to %s   (round %d of %d)", verb, d.leader.Name, i, of)
	start := time.Now()
	if err := d.leader.Signal(how); err != nil {
		return 0, err
	}
	next, err := d.await(ctx, func(a cluster.Act) bool { return a.Epoch > epoch })
	took := time.Since(start)
	if err != nil {
		return 0, fmt.Errorf("nobody took over: %w", err)
	}
	if !d.leader.Wait(10 * time.Second) {
		return 0, fmt.Errorf("the work of %s outlived it", d.leader.Name)
	}
	if how == syscall.SIGTERM && d.leader.ExitCode() != 0 {
		return 0, fmt.Errorf("replica %s ended with status %d after a requested stop", d.leader.Name, d.leader.ExitCode())
	}
	d.show.say(next.Replica, "leads at epoch %d after %.2fs, its canary goes on with record %d (%d written twice)",
		next.Epoch, took.Seconds(), next.N, repeated(d.cluster.History().Acts(), next))

	name := d.leader.Name
	d.leader = d.standby
	fresh, err := d.cluster.Start(name)
	if err != nil {
		return 0, err
	}
	d.standby = fresh
	d.show.say(name, "back as standby   (supervisor pid %d)", fresh.PID())
	return took, nil
}

// repeated is how many records of earlier terms the successor writes again.
func repeated(acts []cluster.Act, next cluster.Act) int64 {
	var last int64
	for _, a := range acts {
		if a.Epoch < next.Epoch {
			last = max(last, a.N)
		}
	}
	return max(0, last-next.N+1)
}

func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return errInterrupted
	}
}

var errInterrupted = errors.New("interrupted")

// await waits for an act, for at most 30 s and not longer than the standby lives.
func (d *demo) await(ctx context.Context, match func(cluster.Act) bool) (cluster.Act, error) {
	const limit, slice = 30 * time.Second, 100 * time.Millisecond
	for begun := time.Now(); time.Since(begun) < limit; {
		if a, ok := d.cluster.History().Await(slice, match); ok {
			return a, nil
		}
		if ctx.Err() != nil {
			return cluster.Act{}, errInterrupted
		}
		if d.standby.Wait(0) {
			return cluster.Act{}, fmt.Errorf("replica %s has ended with status %d", d.standby.Name, d.standby.ExitCode())
		}
	}
	return cluster.Act{}, fmt.Errorf("waited %v", limit)
}

// figures prints the two lines and returns what was violated.
func (d *demo) figures() error {
	acts := d.cluster.History().Acts()
	crashOverlap, handOverlap := d.overlaps(acts)
	fmt.Fprintf(d.show.out, "crash: rounds=%d p50=%.1fs max=%.1fs bound=%.1fs overlap=%s\n",
		len(d.crash), median(d.crash).Seconds(), longest(d.crash).Seconds(), d.budget.Failover.Seconds(), short(crashOverlap))
	fmt.Fprintf(d.show.out, "handover: rounds=%d p50=%.1fs max=%.1fs overlap=%s\n",
		len(d.handover), median(d.handover).Seconds(), longest(d.handover).Seconds(), short(handOverlap))
	var errs []error
	if got := longest(d.crash); got > d.budget.Failover {
		errs = append(errs, fmt.Errorf("a crash took %v, more than the published bound of %v", got, d.budget.Failover))
	}
	if got := longest(d.handover); got > handoverLimit {
		errs = append(errs, fmt.Errorf("a handover took %v, more than %v", got, handoverLimit))
	}
	if total := cluster.Overlap(acts); total > 0 {
		errs = append(errs, fmt.Errorf("two canaries acted at once for %v", total))
	}
	if missing := cluster.Missing(acts); len(missing) > 0 {
		errs = append(errs, fmt.Errorf("%d records are missing, the first is %d", len(missing), missing[0]))
	}
	return errors.Join(errs...)
}

// overlaps splits the acts at the last crash round. The term that led before a
// round belongs to it too.
func (d *demo) overlaps(acts []cluster.Act) (crash, handover time.Duration) {
	order := map[string]int{}
	for _, a := range acts {
		if _, seen := order[a.Term]; !seen {
			order[a.Term] = len(order)
		}
	}
	var early, late []cluster.Act
	for _, a := range acts {
		if order[a.Term] <= len(d.crash) {
			early = append(early, a)
		}
		if order[a.Term] >= len(d.crash) {
			late = append(late, a)
		}
	}
	return cluster.Overlap(early), cluster.Overlap(late)
}

func sorted(d []time.Duration) []time.Duration {
	s := append([]time.Duration(nil), d...)
	sort.Slice(s, func(i, j int) bool { return s[i] < s[j] })
	return s
}

func median(d []time.Duration) time.Duration {
	if len(d) == 0 {
		return 0
	}
	return sorted(d)[len(d)/2]
}

func longest(d []time.Duration) time.Duration {
	if len(d) == 0 {
		return 0
	}
	return sorted(d)[len(d)-1]
}

// short prints 0 as "0s" and anything else to the millisecond.
func short(d time.Duration) string { return d.Round(time.Millisecond).String() }
