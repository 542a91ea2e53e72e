// Package cas is the only door to a bucket: one named object that can be read,
// created if it does not exist, and replaced if it has not changed.
//
// # What it guarantees
//
// A [Register] is a compare-and-swap register. Of any number of concurrent
// [Register.Create] calls on one absent object, at most one succeeds; of any
// number of concurrent [Register.Replace] calls on one version, at most one
// succeeds. A successful write is visible to every later Load, from any
// process. Every write sends exactly one condition. There is no unconditional
// write in this package, and no way to delete what a Register holds: the one
// delete is [Scratch.Remove], whose reach ends at names below "<object>.probe/",
// where the probe writes.
//
// Every error that a backend returns is an [*Error] with a [Class], so that a
// caller decides by meaning and never by status code. An error of class
// [Ambiguous] or [Contended] from a write means that the write may have been
// applied, or may yet be: the caller has to find out by reading. No backend
// retries a write on its own, because a hidden second attempt turns "your
// first attempt was applied" into "precondition failed".
//
// # What it does not guarantee
//
// The register is as good as the store behind it. A store that ignores
// conditions, or checks them in a race, breaks the first guarantee and nothing
// in this package can repair that; [Probe] looks for it. A version identifies a
// write only if the bytes of two writes differ: on S3 the version is the ETag, a
// hash of the content, so that writing the same bytes twice yields the same
// version. Callers put something fresh into every write.
//
// Backends: [github.com/sf2loki/sf2loki-ha/cas/mem],
// [github.com/sf2loki/sf2loki-ha/cas/file],
// [github.com/sf2loki/sf2loki-ha/cas/linkfile],
// [github.com/sf2loki/sf2loki-ha/cas/s3] and
// [github.com/sf2loki/sf2loki-ha/cas/gcs]; all of them pass
// [github.com/sf2loki/sf2loki-ha/cas/castest].
package cas
