// Package s3 keeps each object in a bucket of Amazon S3 or of a store that speaks
// its protocol.
//
// # What it guarantees
//
// One call is one request: a plain GetObject or PutObject, without retries,
// without following redirects, without multipart; in the scratch area of the
// probe, and only there, also a plain DeleteObject. A write carries exactly one
// condition: If-None-Match: * for Create, If-Match: <version> for Replace. A
// version that cannot be a condition (empty, or the wildcard) is a Conflict and
// is not sent, because the client would leave the header out or match anything.
// A write succeeded if the answer is 2xx and carries an ETag; 2xx without one is
// Ambiguous. A Load takes body and ETag from one answer and reads the body to its
// announced end; a shorter body is Ambiguous. The age is Date minus Last-Modified
// of that answer; this machine's clock has no part in it.
//
// The body goes out as it is, with Content-Length and the hash that the signature
// covers, and without the trailing checksum that many compatible stores refuse;
// a custom endpoint is addressed path style.
//
// Errors are classified by the service's code first and the status second; the
// table is docs/errors.md. What is not recognised is Ambiguous: the caller then
// reads, which is never wrong. In particular only the code NoSuchKey is absence.
// A 404 without it comes from something that may not be the store at all, and
// claiming a lease because a proxy lost its route would be the worst reading.
//
// Credentials come from the default chain of the AWS SDK when the first call
// needs them; Open sends nothing. No error or description contains credentials,
// userinfo or the query of a URL.
//
// # What it does not guarantee
//
// That the store honours conditions: some accept and ignore them, some race. The
// probe of package cas looks for that.
//
// Versions are ETags as the store sent them, byte for byte, quotes included, and
// are sent back like that. Some stores (reported: Ceph RGW, DigitalOcean Spaces,
// Hetzner) compare If-Match without the quotes and then never match: there the
// first Create works and every Replace is a Conflict. That is safe, since nothing
// is overwritten, but no lease can be renewed there. A proxy that weakens ETags
// (W/"…") has the same effect. The ETag of a plain object is a hash of its
// content: equal bytes have equal versions, hence fresh bytes in every write.
//
// Stores that answer a conditional write with 2xx and a body that begins like XML
// and is none are Ambiguous at every write.
package s3
