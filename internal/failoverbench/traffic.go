package failoverbench

import "time"

// pace is a number of requests within a time.
type pace struct {
	n    int
	span time.Duration
}

// counted is all that arrived from then to now.
func counted(arrivals []time.Time, from, now time.Time) pace {
	n := 0
	for _, at := range arrivals {
		if !at.Before(from) {
			n++
		}
	}
	return pace{n, now.Sub(from)}
}

// regular counts the gaps between requests. For what comes at one interval this is
// its exact rate, wherever the stretch begins.
func regular(arrivals []time.Time, from time.Time) pace {
	for len(arrivals) > 0 && arrivals[0].Before(from) {
		arrivals = arrivals[1:]
	}
	if len(arrivals) < 2 {
		return pace{}
	}
	return pace{len(arrivals) - 1, arrivals[len(arrivals)-1].Sub(arrivals[0])}
}

func (p pace) perHour() float64 {
	if p.span <= 0 {
		return 0
	}
	return float64(p.n) / p.span.Hours()
}

// traffic is the pace of both kinds.
type traffic struct{ reads, writes pace }

func (t traffic) plus(o traffic) traffic {
	add := func(a, b pace) pace { return pace{a.n + b.n, a.span + b.span} }
	return traffic{add(t.reads, o.reads), add(t.writes, o.writes)}
}

// Rates are requests per hour.
type Rates struct {
	Reads  float64 `json:"reads"`
	Writes float64 `json:"writes"`
}

func (t traffic) perHour() Rates { return Rates{t.reads.perHour(), t.writes.perHour()} }
