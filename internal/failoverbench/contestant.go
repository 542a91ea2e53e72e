package failoverbench

import (
	"context"
	"time"

	"github.com/sf2loki/sf2loki-ha/coordinator"
)

// Milestone is something that a replica reaches.
type Milestone int

// The milestones of a takeover, in their order.
const (
	Acquired Milestone = iota // the acquisition is confirmed
	Sealed                    // the checkpoint document is sealed, for those that have one
	Started                   // the work may act
	milestones
)

// Site is where a replica runs.
type Site struct {
	Place Place
	// Lease names the object; what else a contestant keeps has names that begin
	// with it.
	Lease string
	// Clock is ours, for tests on fake time; nil: the system's.
	Clock coordinator.Clock
}

// About says who was measured.
type About struct {
	// Name is short, Settings are its durations, Store is where its pairs keep
	// their leases.
	Name, Settings, Store string
	// Ours is judged by the goal.
	Ours bool
	// TTL is how long a lease lasts, Bound the published longest time from the last
	// renewal to the acquisition, 0 if nobody publishes one.
	TTL, Bound time.Duration
}

// Contestant is a way to elect a leader, on a store and with its settings.
type Contestant struct {
	About
	Place Place

	// start runs a replica until its context ends. tell is called at each milestone.
	start func(ctx context.Context, site Site, id string, link *Link, tell func(Milestone)) (done <-chan struct{}, err error)
}
