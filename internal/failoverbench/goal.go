package failoverbench

import (
	"fmt"
)

// mostRatio is the goal for the mean failover over the mean limit.
const mostRatio = 1.05

// sameInterval is how far two rates of writes may be apart that come from one renew
// interval: ours begins at the send of a renewal, client-go's at its answer.
const sameInterval = 0.03

// Verdict is one part of the goal, and whether it was met.
type Verdict struct {
	Text string
	Met  bool
}

// Judge holds our results against the goal: mean failover at most 1.05 of the mean
// limit; every acquisition within ttl, poll interval and four round trips of 100 ms
// after the last renewal that landed; nobody earlier than the limit; fewer writes
// than every other elector in the same store, or as many where it renews as often.
func Judge(results []Result) []Verdict {
	var all []Verdict
	for _, r := range results {
		if !r.Ours {
			continue
		}
		say := func(met bool, format string, args ...any) {
			all = append(all, Verdict{r.Store + ": " + fmt.Sprintf(format, args...), met})
		}
		say(r.Ratio() <= mostRatio, "mean failover %.3f of its limit, at most %.2f", r.Ratio(), mostRatio)
		longest := r.AfterRenewal().Max
		say(longest <= r.Bound, "acquired at most %s after the last renewal, bound %s", seconds(longest), seconds(r.Bound))
		early := 0
		for _, x := range r.Rounds {
			if x.Failover < r.limitOf(x) {
				early++
			}
		}
		say(early == 0, "%d acquisitions before the limit", early)
		for _, other := range results {
			if other.Ours || other.Store != r.Store {
				continue
			}
			ours, theirs := r.Leader.Writes, other.Leader.Writes
			note := ""
			if ours > theirs {
				note = ", which renews as often, counted from its answers"
			}
			say(ours <= theirs*(1+sameInterval), "%.0f writes an hour, %.0f by %s (%s)%s", ours, theirs, other.Name, other.Settings, note)
		}
	}
	return all
}
