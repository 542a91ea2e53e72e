// Package budgetcmd is the verb "config budget": what a configuration, or a
// profile, promises in time and costs in requests.
//
// # What it guarantees
//
// Every figure is computed by [coordinator.Config.Budget], by the formulas of the
// election itself, and by the prices in this package; docs/timing.md shows the
// same figures and a test compares the two. Bounds are worst cases with requests
// of up to coordinator.RoundTrip. Nothing is sent to a store.
//
// # What it does not guarantee
//
// That a store is as fast as that, that a price is still what it was when it was
// read, or that a bill has no other items: the work's own requests, storage,
// traffic and encryption keys are not in it. A replica finds out at its start what
// its platform grants for a stop (docs/platforms.md); this verb, which may run
// anywhere, knows only what is configured.
package budgetcmd
