// Package canary is built-in work to put behind `sf2loki-ha run`: it writes
// numbered records, remembers how far it came, and says at every start what its
// predecessor left behind. It makes a failover visible, and a gap or an overlap
// countable.
//
// # Guarantee
//
// At least once: a record is written (and pushed, if there is an endpoint) before
// its number is committed, so whenever the process dies, its successor begins at
// or before the first record that may be missing. Records around a takeover can
// occur twice; none is left out. Nothing more can be promised without a
// transaction over the output and the checkpoint.
//
// How many can occur twice is bounded and known. Two keys of the checkpoint
// document, always written together:
//
//	canary:position  {"n": P, …}              records 1 to P have been delivered
//	canary:intent    {"from": P+1, "to": H}   no record above H has been written
//
// A record above H is not written before a commit has raised H. That costs no
// request: every commit of a position raises H as well. So at most H-P records
// can occur twice, and the canary pauses when it cannot commit for longer than
// Options.Ahead. A clean stop sets H to the last record written, so that the
// successor knows that nothing will be repeated; before it writes its first
// record it raises H again.
//
// # What the "resumed" line knows
//
// The verdict says what these two keys prove, and no more:
//
//	first        there is no predecessor
//	clean        H = P: nothing missing, nothing repeated
//	duplicates   records P+1 to H may occur twice, at most H-P of them; if the position
//	             was set back by hand, below the intent, the first of them certainly do
//	gap          the position is beyond its own intent: somebody moved it. At least
//	             P-H records were never written, at most P-from+1 are missing
//	unknown      there is a position and no intent
//	untracked    no position is kept at all
//
// It cannot see a document that was restored as a whole to an older state: its
// two keys agree. Who reads the output can: numbers repeat far beyond H-P. Nor
// can it know which of the records P+1 to H were in fact written.
//
// # The term
//
// Behind `run` with an object-store document, epoch and term id come from the
// environment, and every commit needs exactly that pair in the document. The
// canary has no lease to ask, so its term never says that it is over: the guard
// kills the process at the deadline, and the fence refuses its commits after a
// takeover. A record pushed by a thawed canary in between is a duplicate, as the
// non-guarantees of the README say.
//
// A position file instead of a document is local and not fenced.
package canary
