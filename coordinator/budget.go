package coordinator

import "time"

// roundTrip is the allowance for one request in the published bounds.
const roundTrip = 100 * time.Millisecond

// Budget is what a Config promises, computed by the same formulas that the
// election uses.
type Budget struct {
	// Failover is the longest time from the last renewal that landed to the
	// acquisition by a standby that was watching: ttl + poll interval + four
	// requests of 100 ms.
	Failover time.Duration
	// Outage is the longest time the store may be unreachable without the
	// leader stopping its work, in the worst case: it begins just before a
	// renewal was due.
	Outage time.Duration
	// StopAfter is the time from a renewal's send to the stop of the work if no
	// later renewal lands.
	StopAfter time.Duration
	// KillAfter is the time from a renewal's send to the kill of the work.
	KillAfter time.Duration
	// DeadAfter is the time from a renewal's send to the deadline by which the
	// work is gone.
	DeadAfter time.Duration
	// Drain is the longest time from a requested stop to the kill of the work.
	Drain time.Duration
	// WritesPerHour and ReadsPerHour are the requests of one leader and one
	// standby in steady state.
	WritesPerHour, ReadsPerHour int
}

// Budget computes what c promises.
func (c Config) Budget() Budget {
	c = c.WithDefaults()
	return Budget{
		Failover:      c.TTL + c.PollInterval + 4*roundTrip,
		Outage:        max(0, c.usable()-c.RenewInterval-c.CallTimeout),
		StopAfter:     c.usable(),
		KillAfter:     c.lifetime() - c.KillMargin,
		DeadAfter:     c.lifetime(),
		Drain:         c.drainLimit(),
		WritesPerHour: int(time.Hour / c.RenewInterval),
		ReadsPerHour:  int(time.Hour / c.PollInterval),
	}
}
