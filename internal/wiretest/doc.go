// Package wiretest is a scripted HTTP server for tests: it gives exactly the
// answers it was told, one a request, also those that no real server gives when
// asked (a reset, half a body, an answer that comes too late, silence), and keeps
// what it was sent.
//
// # What it guarantees
//
// With [Start] answers are used in order, one for each attempt. An attempt is a request that
// arrived whole, or a connection for an answer that does not wait for a request.
// An attempt beyond the script is counted and answered 500, and fails the test:
// a hidden retry does not go unnoticed. With [StartFunc] each answer is made of its
// request, without end. The bytes of an answer are sent as written, nothing is
// added.
//
// # What it does not guarantee
//
// It is HTTP/1.1 without TLS on 127.0.0.1, one connection at a time in script
// order; concurrent requests get their answers in the order they arrive.
package wiretest
