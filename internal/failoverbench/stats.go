package failoverbench

import (
	"math"
	"slices"
	"time"
)

// Stats are the usual figures of a set of durations.
type Stats struct {
	N                   int
	Mean, P50, P95, Max time.Duration
}

// StatsOf computes them. A percentile is the smallest value that at least that
// share of all values does not exceed.
func StatsOf(values []time.Duration) Stats {
	s := Stats{N: len(values)}
	if s.N == 0 {
		return s
	}
	sorted := slices.Sorted(slices.Values(values))
	sum := time.Duration(0)
	for _, v := range sorted {
		sum += v
	}
	at := func(share float64) time.Duration { return sorted[max(0, int(math.Ceil(share*float64(s.N)))-1)] }
	s.Mean, s.P50, s.P95, s.Max = sum/time.Duration(s.N), at(0.50), at(0.95), sorted[s.N-1]
	return s
}
