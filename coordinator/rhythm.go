package coordinator

import "time"

// rhythm lets a standby read just after the holder's renewals land. A takeover
// counts from the receipt of the first read that showed the last version, so that
// every moment between its landing and that read delays the failover. Nothing
// depends on the rhythm being right: reads go on at the poll interval, and a
// wrong guess costs one read.
type rhythm struct {
	oldSent Instant       // send of the last read that showed an older version
	lag     time.Duration // how late we notice a renewal, at most
	early   Instant       // a read is sent then, before the expected landing
}

// leastLag is how close to a landing the reads are moved: the time a renewal
// takes differs by more than that from one to the next.
const leastLag = 50 * time.Millisecond

// changed learns from a read that was sent at sent and showed a new version.
func (r *rhythm) changed(sent, received Instant, poll time.Duration) {
	gap := poll
	if r.oldSent != 0 {
		gap = min(gap, received.Sub(r.oldSent))
	}
	if r.early != 0 && sent >= r.early && sent < r.early.Add(leastLag) {
		// Noticed by the early read: it can come earlier still.
		gap = min(gap, r.lag/2)
	}
	r.lag = max(gap, leastLag)
	r.early = 0
	r.oldSent = sent
}

// unchanged learns from a read that showed the version known already.
func (r *rhythm) unchanged(sent Instant) { r.oldSent = sent }

// next is when to read again: regular, or earlier if a renewal is expected to have
// landed before that. since is when the present version was first seen, renew the
// holder's interval.
func (r *rhythm) next(now, regular, since Instant, renew time.Duration) Instant {
	if renew <= 0 {
		return regular
	}
	landing := since.Add(renew)
	early := landing.Add(-r.lag / 2)
	switch {
	case now < early && early < regular:
		r.early = early
		return early
	case now >= early && now < landing && landing < regular:
		return landing
	}
	return regular
}
