// Package k8slease keeps the lease of an election in a Kubernetes Lease object
// (coordination.k8s.io/v1).
//
//	store, err := k8slease.Open(ctx, k8slease.Config{Namespace: "logs", Name: "sf2loki-leader"})
//	e, err := coordinator.New(store, coordinator.Config{Identity: "pod-1"})
//
// # What it guarantees
//
// The object is a true Lease: kubectl shows the holder and since when, and what
// others put on it (labels, annotations, owner references, fields of the spec
// that this code does not know) survives every write, because a write changes
// what was read and sends it back whole. What has no place in the spec is the
// coordinator's record, as JSON in one annotation, [Annotation].
//
// A version names a state of the lease, not of the object. For a record of ours
// it is the write id, as long as the spec still says what was written with it;
// for anybody else's lease it is a hash of the spec and of our annotation; the
// object's uid is part of both, because a lease that was deleted and made again
// is another one. So a label or annotation that somebody writes every second
// neither costs a leader its term nor makes a dead leader look alive, while
// whoever takes the lease with other software is noticed at once.
//
// Each Replace reads, compares the version, and updates on the resourceVersion
// it has just read. A 409 to that update is a question, since it may be
// somebody's label: the lease is read again, inside the same call, until the
// version has changed (Conflict) or the update is through. An update whose
// answer is lost is Ambiguous at once: the election then asks, with its own
// patience. Nothing is retried by the client library, and no rate limiter of
// its delays a renewal.
//
// [Store.Requests] is the request object of the pair, an annotation beside the
// record. Its version is of its own: a request neither costs a leader its term nor
// is it lost to a renewal.
//
// A call ends with its context, whatever a credential plugin or a dead
// connection does. HTTP/2 is off: there a connection outlives the request that
// timed out on it, and after a silent network change every attempt up to the
// deadline would be sent into the same dead one.
//
// Only a Status object of Kubernetes that says the lease itself does not exist
// is absence.
//
// # What it does not guarantee
//
// Other software that acts under the same Lease is noticed, not coordinated
// with: sf2loki's own k8s_lease throws the annotation away and compares wall
// time differently. Leases are not deleted by this package, and one that was
// deleted loses its epoch; a checkpoint document keeps it (coordinator.WithFence).
// Versions compare states that were read: an API server that answers reads from
// anything but a quorum could show an old one, which costs a round, since the
// update is conditional.
package k8slease
