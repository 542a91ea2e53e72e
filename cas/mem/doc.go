// Package mem is a store in memory: the smallest exact implementation of
// package cas, for tests and for programs that need no other process.
//
// # What it guarantees
//
// Every operation takes effect at one instant, under one mutex, so the registers
// of all buckets of one [Store] are linearizable. Versions come from one counter
// and are never used twice. The age of a value is what has passed since its write,
// to the nanosecond, also on the fake time of testing/synctest. Data is copied on
// the way in and on the way out. A
// call whose context has ended does nothing and says Ambiguous, as a real store
// would leave it.
//
// # What it does not guarantee
//
// Nothing outlives the process and nothing is shared between processes. Calls
// take no time and never fail half way; tests that want lost or late answers
// wrap a register.
package mem
