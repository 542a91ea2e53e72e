package failoverbench

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/sf2loki/sf2loki-ha/coordinator"
)

// Run plays the plans with every contestant, side by side, and returns a result for
// each. clock is ours; nil: the system's. done is called after each round.
func Run(ctx context.Context, contestants []Contestant, plans []Plan, latency Latency, clock coordinator.Clock, done func()) ([]Result, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	results := make([]Result, len(contestants))
	var (
		mu    sync.Mutex
		first error
		wg    sync.WaitGroup

		leaders, standbys = make([]traffic, len(contestants)), make([]traffic, len(contestants))
	)
	for i, c := range contestants {
		results[i] = Result{About: c.About, Rounds: make([]Round, len(plans))}
		for n, plan := range plans {
			wg.Go(func() {
				select {
				case <-time.After(plan.Begin):
				case <-ctx.Done():
					return
				}
				p, err := c.play(ctx, plan, fmt.Sprintf("contestant-%d/round-%d/leader.lease", i, n), latency, clock)
				mu.Lock()
				defer mu.Unlock()
				if err != nil {
					if first == nil {
						first = fmt.Errorf("%s on %s, %s, round %d: %w", c.Name, c.Store, c.Settings, n, err)
					}
					cancel() // what was measured of the others would be no comparison
					return
				}
				results[i].Rounds[n] = p.Round
				leaders[i], standbys[i] = leaders[i].plus(p.leader), standbys[i].plus(p.standby)
				done()
			})
		}
	}
	wg.Wait()
	if first != nil {
		return nil, first
	}
	for i := range results {
		results[i].Leader, results[i].Standby = leaders[i].perHour(), standbys[i].perHour()
	}
	return results, ctx.Err()
}
