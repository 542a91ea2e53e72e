// Package wire holds what the two HTTP backends of cas share: the parsed
// endpoint, the HTTP client, the age of an object, and causes without credentials.
//
// # What it guarantees
//
// [Client] gives each request a connection that is
// thrown away when the request does not finish, and follows no redirect, so one
// call is one request to the host that was configured. [Cause] and [Scrub] leave
// no userinfo, path or query of a URL in a text.
//
// # What it does not guarantee
//
// A request abandoned at the end of its context (internal/bounded) may still
// land. That is what the class cas.Ambiguous means. Secrets that are not part of an http or https URL are not
// found by Scrub: a library that prints its keys in plain text defeats it.
package wire
