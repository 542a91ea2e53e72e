// Package socketapi gives the work of one term the fenced checkpoint document
// over a Unix socket, so that a program in any language can keep its progress
// without knowing about buckets, versions and epochs. docs/checkpoint-api.md is
// its reference.
//
// # What it guarantees
//
// One [Server] belongs to one term and has a path of its own. Every request
// carries the epoch that the work was started with; any other value is refused.
// A value is stored once the answer says so: it was accepted by the store under
// exactly this term. Once the term is over, or the document was sealed by
// another one, nothing is stored any more and the answer says which.
//
// # What it does not guarantee
//
// An answer without a definite outcome (503) leaves open whether the value was
// stored; putting it again is safe. The socket is for the user that runs this
// process, and for everybody who can become that user: there is no other
// authentication. Between the answer to "the term stands" and an act of the work
// any time may pass: only the document is fenced.
package socketapi
