// Package sim plays histories: a few replicas, a bucket, a network, clocks, an
// operator and the work, on virtual time, all from one seed. It runs what the
// product runs: the election ([coordinator.Machine]) with its record and request
// documents as bytes, the checkpoint document ([checkpoint.Store], Seal and
// Session), and the guard's rule ([guard.Rule]). Only the sender of orders to the
// guard and the work itself are its own.
//
// # What a history is
//
// First a phase with faults: requests and answers that are lost, late, refused or
// replayed, partitions, outages, a store that limits writes, freezes of a
// supervisor, a guard or a whole machine, kills of each, clocks of different rate
// and wall clocks that step, restarts, step-downs, replicas with other durations,
// revisions or another lease on the same document, people who hold the lease, an
// operator who deletes, restores and damages it or the document, versions that come
// back with the bytes, permissions that are missing, deployments, and one of a newer
// program that is rolled back. Then the faults stop, and the pair has to recover
// within the bound that is published. A pair that has recovered rests, and makes no
// more requests than published; then one thing happens to it, and the published
// bounds hold without an allowance: epilogue.go.
//
// Every step of every process is judged, and so is everything that the bucket
// accepts and everything the work does, by what really happened and not by what
// processes believe: see judge_*.go. The invariants are those of the design, I1 to
// I7, and the rules of the protocol where a step alone can break them.
//
// # What it guarantees
//
// A seed is one history, on every machine and every run of one build: there are
// no threads, and all randomness comes from the seed. A seed does not survive a
// change of this package; what a seed has found is kept as a test of its own in
// the package that was wrong, and its seed in histories_test.go as long as it lasts.
//
// # What it does not guarantee
//
// That there is no bug: it samples. It has no threads, no system calls and no
// HTTP, so that races, the real process tree and real answers are the business of
// other layers (docs/testing.md). What an operator breaks on purpose is excused as
// narrowly as possible, and said where it is: excuses.go.
package sim
