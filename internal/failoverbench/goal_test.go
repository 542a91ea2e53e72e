package failoverbench

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sf2loki/sf2loki-ha/coordinator"
)

// rivals are the contestants beside ours. client-go is among them if it is compiled
// in (-tags clientgo), which "make test" does.
var rivals []func(Place) Contestant

// bubbleClock follows the fake time of a bubble.
type bubbleClock struct{ start time.Time }

func (c bubbleClock) Now() coordinator.Instant {
	return coordinator.Instant(time.Hour + time.Since(c.start))
}

// The benchmark as it is run by hand, with the same durations and crashes, but on
// fake time: minutes pass in a second, and timers are never late.
func TestEverybodyFailsOverAndOursMeetsTheGoal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const n = 60
		place := NewMemory()
		contestants := []Contestant{Ours(place, coordinator.Config{})}
		for _, rival := range rivals {
			contestants = append(contestants, rival(place))
		}
		plans := Plans(1, n, 15*time.Second, 5*time.Second, time.Minute)
		over := 0
		results, err := Run(t.Context(), contestants, plans, Latency{60 * time.Millisecond, 100 * time.Millisecond}, bubbleClock{time.Now()}, func() { over++ })
		if err != nil {
			t.Fatal(err)
		}
		if over != n*len(contestants) {
			t.Errorf("%d rounds ended, want %d", over, n*len(contestants))
		}
		for _, r := range results {
			t.Logf("%s (%s): mean %v, %.3f of its limit; %+v %+v", r.Name, r.Settings, r.Failover().Mean, r.Ratio(), r.Leader, r.Standby)
			for i, x := range r.Rounds {
				if limit := r.limitOf(x); x.Failover < limit || limit > r.TTL+50*time.Millisecond || limit < r.TTL/2 {
					t.Errorf("%s, round %d: failover %v, limit %v", r.Settings, i, x.Failover, limit)
				}
				if x.Crash != plans[i].Crash {
					t.Errorf("%s, round %d: another crash than planned", r.Settings, i)
				}
			}
			if r.Leader.Writes < 600 || r.Standby.Reads < 400 || r.Standby.Writes != 0 {
				t.Errorf("%s: %+v by the leader, %+v by the standby", r.Settings, r.Leader, r.Standby)
			}
		}
		for _, v := range Judge(results) {
			if !v.Met {
				t.Error("missed:", v.Text)
			}
		}
		budget := coordinator.Config{}.Budget()
		ours := results[0]
		if int(ours.Leader.Writes) != budget.LeaderWritesPerHour || int(ours.Leader.Reads) != budget.LeaderReadsPerHour ||
			int(ours.Standby.Reads) > budget.StandbyReadsPerHour || int(ours.Standby.Reads) < budget.StandbyReadsPerHour*3/4 {
			t.Errorf("%+v and %+v requests per hour; published are %+v", ours.Leader, ours.Standby, budget)
		}
	})
}

// A benchmark that can only succeed shows nothing.
func TestEachPartOfTheGoalCanBeMissed(t *testing.T) {
	good := Result{
		About:  About{Name: "us", Store: "memory", Ours: true, TTL: 15 * time.Second, Bound: 16400 * time.Millisecond},
		Rounds: []Round{{Age: 2 * time.Second, Failover: 13300 * time.Millisecond}}, Leader: Rates{Writes: 720},
	}
	same := Result{About: About{Name: "them", Store: "memory"}, Leader: Rates{Writes: 706}}
	elsewhere := Result{About: About{Name: "them", Store: "another"}, Leader: Rates{Writes: 1}}
	for _, v := range Judge([]Result{good, same, elsewhere}) {
		if !v.Met {
			t.Error(v.Text)
		}
	}
	for name, c := range map[string]struct {
		change func(r, other *Result)
		want   string
	}{
		"slow on average": {func(r, _ *Result) { r.Rounds[0].Failover = 13700 * time.Millisecond }, "mean failover 1.054"},
		"slow once": {func(r, _ *Result) {
			for range 99 {
				r.Rounds = append(r.Rounds, r.Rounds[0])
			}
			r.Rounds[50].Failover = 14500 * time.Millisecond
		}, "acquired at most 16.50 s"},
		"early":       {func(r, _ *Result) { r.Rounds[0].Failover = 12999 * time.Millisecond }, "1 acquisitions before"},
		"more writes": {func(_, other *Result) { other.Leader.Writes = 690 }, "720 writes an hour, 690 by them"},
	} {
		r, other := good, same
		r.Rounds = append([]Round(nil), good.Rounds...)
		c.change(&r, &other)
		var missed []string
		for _, v := range Judge([]Result{r, other}) {
			if !v.Met {
				missed = append(missed, v.Text)
			}
		}
		if len(missed) != 1 || !strings.Contains(missed[0], c.want) {
			t.Errorf("%s: missed %q, want only %q", name, missed, c.want)
		}
	}
}
