// Package castest is the conformance suite of package cas: what every backend
// does, as a test that every backend runs.
//
//	func TestConformance(t *testing.T) {
//		castest.Run(t, func(t *testing.T) cas.Bucket { … })
//	}
//
// # What it shows
//
// That the register is a compare-and-swap register, also when many clients write
// at once from separately opened buckets; that a version never comes with data
// older than it; that absence, conflict and the end of a context are told apart;
// and that errors can be acted on. Each check is a subtest named after the
// behaviour. [Exact] is apart, because not every sound store passes it.
//
// # What it does not show
//
// A store that breaks its promises rarely is caught rarely: a green run is
// evidence about this store on this day, no proof. Lost answers, cut bodies and
// exact status codes are the business of each backend's wire tests, because a
// well-behaved store does not produce them.
//
// # What it needs
//
// A store that it may fill: a register has no delete, so some hundred small
// objects and one of 16 MiB stay behind, under keys that start with "castest/"
// and a random part, so that runs do not meet each other. The suite writes one
// object faster than once a second and treats a rate limit as a failure, so it
// is for servers on loopback, not for Google's service.
package castest
