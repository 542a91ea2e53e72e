// Package probe runs the store probe of package cas for a replica: before its
// first candidacy, again until there is a verdict, and hourly from then on.
//
// # What it guarantees
//
// [Runner.Admit] is an error until a probe has passed, so that nothing is claimed
// on a store that was not seen to honour conditions. A probe without a verdict
// (denied, unreachable, throttled) is said once and tried again with growing
// pauses of at most half a minute; it never ends the process, and it takes
// nothing back: what a store has shown once it has shown. A definite fault of the
// store ends [Runner.Run] with an error that names it, and nothing is admitted
// any more.
//
// A replica that leads is not probed. A probe that ends while this replica leads
// does not take its term: the fault is said, the term goes on under its own
// rules, and no further one is claimed.
//
// # What it does not guarantee
//
// That the store is sound: see package cas.
package probe
