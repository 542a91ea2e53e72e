// Package faultproxy is an HTTP proxy for tests: it stands between replicas and
// a store, loses, delays, reorders, repeats and refuses what passes, and keeps a
// record of all of it.
//
// # Guarantee
//
// A request that no fault hits reaches the store as it was sent: method, target,
// Host, headers and body, so that signed requests stay valid. Faults are per
// replica, which has a door (an address) of its own, and per direction. They are
// scripted (a [Rule]: from the nth request of a kind, so many, so long), or random
// (a [Random]: what happens to the nth request of a kind at a door is a function
// of the seed). What a fault says happens: a lost request never reaches the store,
// a lost answer belongs to a request that did, and a caller that goes away does
// not call its request back.
//
// Every [Exchange] has its instants on the clock of internal/boottime, which is
// the clock of the canaries' acts, what the store answered, whether a write was
// applied, and what the caller was told. That is enough to judge a history by the
// store's own answers; see e2e/history.
//
// # What it does not guarantee
//
// It is a proxy and not a network: a connection can always be opened, what is lost
// is lost by the request, and bodies are kept in memory. It speaks HTTP/1.1
// without TLS, on 127.0.0.1. Decisions are reproducible, times are not.
package faultproxy
