// Package replica assembles one process of a pair from a configuration: store
// clients, election, checkpoint document, supervisor, health server.
//
// It guarantees the order of design: acquire, seal, start the work, ready; and
// back: not ready, stop the work, release. Every client it opened is closed on
// every way out. What is wrong with the surroundings before the election begins
// (a command that does not exist, an address in use) is a [SetupError]; what is
// wrong with the store is not: the replica stays a standby and recovers alone.
// The exception is a store that the probe before candidacy caught at ignoring
// conditions (package internal/probe): that is a SetupError too.
//
// It decides nothing about leadership; package coordinator does.
package replica
