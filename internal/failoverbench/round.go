package failoverbench

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/sf2loki/sf2loki-ha/coordinator"
)

// Plan is when things happen in a round, counted from its beginning.
type Plan struct {
	// Begin is counted from the beginning of the run: the rounds of a contestant
	// overlap, but do not all do the same at once.
	Begin time.Duration
	// Second is the start of the standby, Quiet the beginning of the stretch in
	// which requests are counted, Crash its end.
	Second, Quiet, Crash time.Duration
}

// Plans draws n rounds of leases that last ttl and are renewed about every renew.
// spread is the time over which their beginnings are spread.
func Plans(seed uint64, n int, ttl, renew, spread time.Duration) []Plan {
	rng := rand.New(rand.NewPCG(seed, 0x9e3779b97f4a7c15))
	upTo := func(d time.Duration) time.Duration { return time.Duration(rng.Int64N(int64(d) + 1)) }
	plans := make([]Plan, n)
	for i := range plans {
		p := &plans[i]
		p.Begin = time.Duration(i) * spread / time.Duration(n)
		// A first leader may have to wait for a ttl, and then some.
		p.Second = ttl + renew + upTo(renew)
		// A pair that has run for hours knows its rhythm: give it some renewals.
		p.Crash = p.Second + 8*renew + upTo(2*renew)
		p.Quiet = p.Crash - 4*renew
	}
	return plans
}

// patience is how many ttls a milestone is waited for.
const patience = 6

// runner is one replica in a round.
type runner struct {
	link    *Link
	reached [milestones]chan time.Time
	cancel  context.CancelFunc
	done    <-chan struct{}
}

func (c Contestant) run(ctx context.Context, site Site, id string, latency Latency) (*runner, error) {
	r := &runner{link: newLink(latency)}
	for i := range r.reached {
		r.reached[i] = make(chan time.Time, 1)
	}
	ctx, r.cancel = context.WithCancel(ctx)
	var err error
	r.done, err = c.start(ctx, site, id, r.link, func(m Milestone) {
		select {
		case r.reached[m] <- time.Now():
		default: // a second term is no part of a round
		}
	})
	if err != nil {
		r.cancel()
		return nil, err
	}
	return r, nil
}

func (r *runner) stop() {
	r.cancel()
	<-r.done
	r.link.onWay.Wait()
}

// wait returns when a milestone was reached.
func (r *runner) wait(ctx context.Context, m Milestone, limit time.Duration) (time.Time, error) {
	select {
	case at := <-r.reached[m]:
		return at, nil
	case <-time.After(limit):
		return time.Time{}, fmt.Errorf("milestone %d was not reached within %v", m, limit)
	case <-ctx.Done():
		return time.Time{}, ctx.Err()
	}
}

// played is a round with the traffic before its crash.
type played struct {
	Round
	leader, standby traffic
}

// play plays one round.
func (c Contestant) play(ctx context.Context, plan Plan, lease string, latency Latency, clock coordinator.Clock) (_ played, err error) {
	site := Site{Place: c.Place, Lease: lease, Clock: clock}
	begin := time.Now()
	at := func(offset time.Duration) {
		if err != nil {
			return
		}
		select {
		case <-time.After(time.Until(begin.Add(offset))):
		case <-ctx.Done():
			err = ctx.Err()
		}
	}
	// 1. A leader, and later a standby.
	first, err := c.run(ctx, site, "first", latency)
	if err != nil {
		return played{}, err
	}
	defer first.stop()
	if at(plan.Second); err == nil && len(first.reached[Started]) == 0 {
		err = fmt.Errorf("the first replica does not lead %v after its start", plan.Second)
	}
	if err != nil {
		return played{}, err
	}
	second, err := c.run(ctx, site, "second", latency)
	if err != nil {
		return played{}, err
	}
	defer second.stop()
	// 2. Nothing happens.
	at(plan.Quiet)
	quiet := time.Now()
	at(plan.Crash)
	p := played{Round: Round{Crash: plan.Crash}, leader: first.link.traffic(quiet), standby: second.link.traffic(quiet)}
	// 3. The crash.
	first.link.Cut()
	crash := time.Now()
	if err == nil && len(second.reached[Acquired]) > 0 {
		err = errors.New("the second replica led before the first one crashed")
	}
	since := func(m Milestone) time.Duration {
		var reached time.Time
		if err == nil {
			reached, err = second.wait(ctx, m, patience*c.TTL)
		}
		return reached.Sub(crash)
	}
	p.Failover = since(Acquired)
	// What was on its way has landed long ago.
	p.Age = crash.Sub(first.link.Landed())
	if c.Ours {
		p.Seal = since(Sealed)
	}
	p.Start = since(Started)
	return p, err
}
