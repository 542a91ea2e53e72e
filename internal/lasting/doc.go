// Package lasting decides which reports of a fault that lasts are worth a line
// in the log: the first of each kind, and each kind again after five minutes; and
// it knows when the fault is over, which one good answer between two bad ones
// does not mean.
//
// It writes nothing and reads no clock. It is not safe for concurrent use.
package lasting
