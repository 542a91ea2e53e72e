// Package wire holds what the two HTTP backends of cas share: the parsed
// endpoint, the HTTP client, the bounded call, and causes without credentials.
//
// # What it guarantees
//
// [Call] returns when its context ends, whatever the called function does, and
// tells that function to stop. [Client] gives each request a connection that is
// thrown away when the request does not finish, and follows no redirect, so one
// call is one request to the host that was configured. [Cause] and [Scrub] leave
// no userinfo, path or query of a URL in a text.
//
// # What it does not guarantee
//
// A function abandoned by Call may run on until its library notices the end of
// the context; what it writes meanwhile may still land. That is what the class
// cas.Ambiguous means. Secrets that are not part of an http or https URL are not
// found by Scrub: a library that prints its keys in plain text defeats it.
package wire
