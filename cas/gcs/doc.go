// Package gcs keeps each object in a bucket of Google Cloud Storage, through its
// JSON API.
//
// # What it guarantees
//
// One call is one request, but for the two below, and so is a removal in the
// scratch area of the probe, the only delete there is. A write is a multipart upload that contains the whole
// document, with exactly one condition, ifGenerationMatch=0 for Create and
// ifGenerationMatch=<version> for Replace. A version that is no generation (empty
// or 0, which the client library would leave out) is a Conflict and is not sent.
// The library's retries are off, and a transport below it refuses a second
// request of the same attempt, whatever the library would do: start a resumable
// session, reopen a cut download. Redirects are not followed.
//
// The verdict of a write comes from the writer's Close; it succeeded if Close did
// and the answer named a generation. The CRC32C travels with the document, so the
// service refuses a write that was damaged on the way instead of storing it. A
// Load takes body and generation from one answer.
//
// The age is Date minus Last-Modified of that answer, where it has both. The
// service's own downloads have no Last-Modified, so Load says 0 there. A register
// from [Bucket.Aged] then asks for the object's metadata, once for each generation,
// in a second request whose failure only leaves the age 0.
//
// Calls return when their context ends, also where the library would wait (a
// token exchange, the close of an upload).
//
// Absence has to be read from the text of a 404, because the service gives one
// reason, notFound, for a missing object and a missing bucket. "No such object" is
// absence. "The specified bucket does not exist" is NoBucket. The bare "Not
// Found", which emulators answer for both, is settled by one more request, a
// listing of at most one name. Anything else is Ambiguous: it may come from
// something that is not the service, and absence can be claimed. Other errors are
// classified by reason first and status second; the table is docs/errors.md.
//
// Credentials are looked for by the first call that needs them; Open sends
// nothing. No error or description contains a token, userinfo or the query of a
// URL.
//
// # What it does not guarantee
//
// More than about one write a second to one object: the service answers 429, which
// is Contended.
//
// A store behind endpoint_url is trusted to implement the JSON API; the XML API
// and S3-style access to Google's service ignore the conditions of package s3.
// Requests to endpoint_url and to an emulator carry no credentials unless a
// service file is configured.
package gcs
