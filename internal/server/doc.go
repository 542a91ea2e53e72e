// Package server is the HTTP server for health checks and metrics.
//
// # Paths
//
//   - /healthz and /health answer 200 "ok" while the process works, leader or
//     not, store reachable or not: they are what may restart a replica. They
//     fail only if the Stuck hook says that the election loop no longer turns,
//     which nothing but a restart repairs.
//   - /readyz and /ready answer 200 "ready" while this replica leads and its
//     work runs, else 503 with the reason, "standby" or "not ready". They are
//     for routing and for people: a standby is 503 for ever by design, so nothing
//     may restart a replica because of them.
//   - /metrics is the handler that was passed in.
//   - Everything else is 404. Paths are compared exactly, as sf2loki does: no
//     redirects, no cleaning, and a health path with a query is another path.
//     The names without z exist because Cloud Run keeps some paths that end in
//     z for itself.
//
// Every answer is computed when it is asked for, from what the hooks say then.
//
// # Limits
//
// Plain HTTP without authentication: nothing in the answers is secret, and the
// port is not meant to be public. Clients that are slow to send or to read are
// cut off; the number of connections is not limited. Hooks must return at once
// and must not do I/O: a store that hangs must not make a replica look dead.
package server
