// Package answers is one table of what S3, Google Cloud Storage and Kubernetes
// answer on the wire, and of what each answer means (design.md section 6).
//
// A row is a [Meaning], in whatever words a service says it. A column is a
// [Request] that one of the clients sends. A [Cell] is what that service says to
// that request with that meaning: the HTTP answers, or the reason why it never
// does. The class follows from the row; a cell that differs says why. No cell is
// empty: a test counts them.
//
// The clients' own tests run the columns of their service ([Run], [RunSilent]):
// each answer is given once by a scripted server, and the test asserts the class,
// how many requests were sent and with which condition, and that the next call is
// answered as if nothing had happened. The tests of this package put whole
// electors, with the real clients, in front of stores that answer like this, while
// they acquire, renew, release and stop.
//
// # What it does not guarantee
//
// The answers come from the services' documentation and from what was observed
// there by others; no test of this package asks a service. What the texts of
// messages say is made up, except where a client has to read them.
package answers
