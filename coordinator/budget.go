package coordinator

import "time"

// RoundTrip is the allowance for one request in the published bounds.
const RoundTrip = 100 * time.Millisecond

// Budget is what a Config promises, computed by the same formulas that the
// election uses. "After a renewal" counts from the send of the last one that
// landed.
type Budget struct {
	// Failover is the longest time from the last renewal that landed to the
	// acquisition by a standby that was watching: ttl + poll interval + four
	// requests of RoundTrip.
	Failover time.Duration
	// Handover is the longest time, at a requested stop, from the end of the work
	// to the acquisition by a standby that was watching and had read of the stop:
	// one short poll and five requests of RoundTrip. Where the store limits writes,
	// two distances between writes and a poll interval come on top.
	Handover time.Duration
	// Outage is how long the store may fail every request without the leader
	// stopping its work, in the worst case: it begins just before a renewal is
	// due and ends just after an attempt was sent.
	Outage time.Duration
	// StopAfter is the time after a renewal at which the work is told to stop if
	// no later renewal lands.
	StopAfter time.Duration
	// KillAfter is the time after a renewal at which the work is killed.
	KillAfter time.Duration
	// DeadAfter is the time after a renewal to the deadline by which the work is
	// gone.
	DeadAfter time.Duration
	// Drain is the longest time from a requested stop to the kill of the work.
	Drain time.Duration
	// ClockRates is by how much an observer's clock may tick faster than the
	// holder's: an observer that waits a ttl is still later than a holder that
	// counts DeadAfter.
	ClockRates float64
	// LeaderWritesPerHour, LeaderReadsPerHour and StandbyReadsPerHour are the most
	// requests of one leader and one standby in steady state. A leader reads the
	// request object once a renewal (WithRequests). A standby reads once a poll
	// interval, and at most once more a renewal, to meet it.
	LeaderWritesPerHour, LeaderReadsPerHour, StandbyReadsPerHour int
}

// Budget computes what c promises.
func (c Config) Budget() Budget {
	c = c.WithDefaults()
	b := Budget{
		Failover:            c.TTL + c.PollInterval + 4*RoundTrip,
		Handover:            min(c.PollInterval, stoppingPoll) + 5*RoundTrip,
		Outage:              c.outage(),
		StopAfter:           c.usable(),
		KillAfter:           c.lifetime() - c.KillMargin,
		DeadAfter:           c.lifetime(),
		Drain:               c.drainLimit(),
		ClockRates:          c.TTL.Seconds()/c.lifetime().Seconds() - 1,
		LeaderWritesPerHour: perHour(c.RenewInterval),
		LeaderReadsPerHour:  perHour(c.RenewInterval),
		StandbyReadsPerHour: perHour(c.PollInterval) + perHour(c.RenewInterval),
	}
	if c.MinWriteInterval > 0 {
		b.Handover += 2*c.MinWriteInterval + c.PollInterval
	}
	return b
}

// perHour rounds up.
func perHour(every time.Duration) int { return int((time.Hour + every - 1) / every) }

// outage follows the retries of a renewal whose requests all fail: when the store
// answers again an attempt may just have been sent in vain, and the pause behind it
// is the longer, the more attempts have failed.
func (c Config) outage() time.Duration {
	left := c.usable() - c.RenewInterval // from the renewal that was due to the stop instant
	// What follows the end of an outage at worst: an attempt that hangs, its pause,
	// and a success, before which a read comes if several attempts are in doubt.
	hangs, success := c.CallTimeout+answerSlack, 2*RoundTrip+min(stoppingPoll, c.RenewInterval/2)
	// The earliest send of the attempt with that many failures before it and its
	// own: the others failed at once, and their pauses were short.
	sent := time.Duration(0)
	for fails := 1; ; fails++ {
		pause := longestPause(fails, c.retryPause())
		longest := left - hangs - max(pause, c.MinWriteInterval) - success
		next := sent + pause/2
		switch {
		case longest <= sent:
			return sent // it ends before this attempt
		case longest <= next:
			return longest
		}
		sent = next
	}
}

// retryPause is the longest pause of a holder between two attempts, a third of a
// call: what a pause takes is missing when the store answers again. It still spares
// a store that refuses everything: two or three requests a second at the defaults.
func (c Config) retryPause() time.Duration { return max(leastRetryPause, c.CallTimeout/3) }

// leastRetryPause keeps a very short call timeout from becoming a flood.
const leastRetryPause = 100 * time.Millisecond
