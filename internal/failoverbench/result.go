package failoverbench

import (
	"math"
	"slices"
	"time"
)

// Round is what was measured of one pair. Times are counted from the crash, but for
// the first two.
type Round struct {
	// Crash is counted from the start of the first replica.
	Crash time.Duration
	// Age is that of the last write of the crashed one that landed, at the crash;
	// negative if it landed just after.
	Age time.Duration
	// Failover is the confirmed acquisition by the survivor, Seal that of the
	// checkpoint document, 0 for those that have none, Start that of the work.
	Failover, Seal, Start time.Duration
}

// AfterRenewal is the time from the last write that landed to the acquisition.
func (r Round) AfterRenewal() time.Duration { return r.Failover + r.Age }

// Result is what was measured of one contestant.
type Result struct {
	About
	Rounds []Round
	// Leader and Standby are their requests per hour while nothing happened.
	Leader, Standby Rates
}

// limitOf is how long after the crash of a round anybody may take over at the
// earliest.
func (r Result) limitOf(x Round) time.Duration { return r.TTL - x.Age }

// Of computes the figures of one measure.
func (r Result) Of(measure func(Round) time.Duration) Stats {
	values := make([]time.Duration, len(r.Rounds))
	for i, round := range r.Rounds {
		values[i] = measure(round)
	}
	return StatsOf(values)
}

// Failover and Limit are counted from the crash, AfterRenewal from the last renewal.
func (r Result) Failover() Stats     { return r.Of(func(x Round) time.Duration { return x.Failover }) }
func (r Result) Limit() Stats        { return r.Of(r.limitOf) }
func (r Result) AfterRenewal() Stats { return r.Of(Round.AfterRenewal) }

// Seal and Start are counted from the acquisition.
func (r Result) Seal() Stats { return r.Of(func(x Round) time.Duration { return x.Seal - x.Failover }) }
func (r Result) Start() Stats {
	return r.Of(func(x Round) time.Duration { return x.Start - x.Failover })
}

// Ratio is the mean failover over the mean limit: nobody can beat 1.
func (r Result) Ratio() float64 {
	limit := r.Limit().Mean
	if limit <= 0 {
		return math.Inf(1)
	}
	return float64(r.Failover().Mean) / float64(limit)
}

// Ratios are those of the single rounds, sorted.
func (r Result) Ratios() []float64 {
	var all []float64
	for _, x := range r.Rounds {
		all = append(all, float64(x.Failover)/float64(max(1, r.limitOf(x))))
	}
	slices.Sort(all)
	return all
}
