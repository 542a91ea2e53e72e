package coordinator

import (
	"time"

	"github.com/sf2loki/sf2loki-ha/cas"
)

// EventKind names what happened. Its text is also the label of metrics.
type EventKind string

// The events, one per transition or answer.
const (
	// BecameStandby: this replica watches the lease.
	BecameStandby EventKind = "standby"
	// Observed: a state of the lease that was not seen before was read.
	Observed EventKind = "observed"
	// Acquired: an acquisition is confirmed; the work starts.
	Acquired EventKind = "acquired"
	// Renewed: a renewal is confirmed.
	Renewed EventKind = "renewed"
	// Lost: the lease is another's, or gone; the work is killed.
	Lost EventKind = "lost"
	// Expired: the lease could not be renewed in time; the work is stopped.
	Expired EventKind = "expired"
	// SteppingDown: a stop was requested; the work drains.
	SteppingDown EventKind = "stepping_down"
	// WorkEnded: the work ended by itself.
	WorkEnded EventKind = "work_ended"
	// Overran: the work is not gone although its time is over.
	Overran EventKind = "overran"
	// ReleasedLease: the lease was given back.
	ReleasedLease EventKind = "released"
	// ReleaseFailed: the lease could not be given back; it runs out.
	ReleaseFailed EventKind = "release_failed"
	// ClaimLost: another replica was faster.
	ClaimLost EventKind = "claim_lost"
	// WriteInDoubt: a write has no definite answer.
	WriteInDoubt EventKind = "write_in_doubt"
	// WriteSettled: a read showed that a write in doubt had landed.
	WriteSettled EventKind = "write_settled"
	// StoreFailed: a request failed with a class that needs attention.
	StoreFailed EventKind = "store_failed"
	// Requested: a request to the store ended, well or not.
	Requested EventKind = "requested"
	// OnHold: somebody asked that nobody leads for a while.
	OnHold EventKind = "on_hold"
	// RequestUnclear: something in the request object cannot be understood and asks
	// for nothing. Said once for each version of the document.
	RequestUnclear EventKind = "request_unclear"
	// Resumed: the hold is over.
	Resumed EventKind = "resumed"
	// Nominated: the leader was asked to hand over to this replica, because it
	// runs a revision that never led.
	Nominated EventKind = "nominated"
	// Finished: the election has ended.
	Finished EventKind = "finished"
)

// Event is one thing that happened. Only the fields its kind needs are set.
type Event struct {
	Kind   EventKind
	At     time.Time // wall clock, for people
	Epoch  int64
	Term   string
	Holder string
	Reason string
	// Asked is the id of a request of somebody, and By who made it.
	Asked, By string
	// Op and Class describe a request; Took is from before its send to after
	// its answer.
	Op    string
	Class cas.Class
	Took  time.Duration
	Err   error
	// Left is the time until something happens by itself: the kill of work that
	// was told to end, the first claim of a lease that was observed, or the end
	// of a hold.
	Left time.Duration
	// Lease and Absent describe what was observed.
	Lease  Lease
	Absent bool
}
