// Package checkpoint keeps sf2loki's checkpoint document, a flat JSON object of
// strings, in a [cas.Register] and fences it: a leader that has been replaced
// cannot move it.
//
// # Claim
//
// A compare-and-swap alone is not a fence. A leader that was replaced while it
// slept still knows a valid version; if nobody wrote in between, its late commit
// succeeds, and then the legitimate leader's fails. So a takeover begins with a
// seal: [Store.Seal] writes the term of the new leader, the pair (epoch, term
// id), into the document. From that write on
//
//   - every version that an older leader knows is dead, because the document
//     has another one, and
//   - an older leader that reads again finds a pair that is not its own and gets
//     a [FencedError].
//
// A [Session.Commit] is accepted only while the document carries exactly the
// pair of its session. That is checked by the store's condition on the version
// that carried the pair, never by a flag in memory. Two terms may by accident
// carry one epoch (a deleted lease, two leases on one document); the term id
// tells them apart, and the first to seal wins.
//
// What that gives: no commit outside the sealed term, no checkpoint moved back
// by a stale leader, no silent start from nothing. A document that cannot be
// read is [cas.Corrupt] and is never treated as empty and never overwritten; a
// document that vanishes under a session is a [VanishedError] and is never
// recreated from memory.
//
// # Mechanism
//
// Two reserved keys in the document: [EpochKey], the epoch in decimal exactly
// as sf2loki's own file store keeps it, and [FenceKey], a JSON text with the
// term id, the lease identity, the ttl and a write id that is fresh in every
// write. All other keys belong to the user: unknown ones and their order
// survive, and the bytes are those that Python's json.dumps would write, so
// that sf2loki can read the document and people can diff it.
//
//  1. Seal and Commit ask the term (CheckFence) before every attempt, not once
//     per call: leadership can end between two attempts.
//  2. A conditional write without a definite answer is settled by reading: the
//     write id shows whether it landed. The same condition is never sent twice
//     without a read in between.
//  3. A commit that lost its condition reads again. Under its own pair it merges
//     its keys onto the fresh document and retries; a higher epoch or another
//     term is fenced; a lower epoch means that the document was restored from an
//     older copy, which is Corrupt: a person has to look, nothing is merged.
//  4. In steady state a commit is one conditional PUT and no GET. Commits that
//     arrive while another one is under way, or while [WithMinWriteInterval]
//     makes them wait, share the next write; the last value of a key wins.
//
// # Limits
//
//   - The fence protects against stale leaders that use a session, and against
//     sf2loki's own S3 and GCS stores, which write on the version they loaded:
//     a seal kills every version loaded before it. A stale process of that kind
//     that loads after the seal is accepted by the store; only the guard stops it.
//   - It does not protect against somebody who writes with the current pair in
//     hand, such as an operator's tool. Such writes survive: a commit merges.
//     [Store.Edit], [Store.RepairFence] and [Store.Adopt] are made for such tools:
//     they write on exactly the version of a [Snapshot], so that a seal in between
//     makes them a conflict.
//   - A document restored as a whole to an older state, fence included, between
//     two terms looks like the older state. The epoch of the lease still rises.
//   - [Store.Seal] creates a document that definitely does not exist. Whoever
//     deletes it has deleted the checkpoints; a warning is logged.
//   - Everything rests on a store that honours conditional writes.
package checkpoint
