// Package lasting decides which reports of a fault that lasts are worth a line
// in the log: the first, one of another kind, and one every five minutes; and it
// knows that there was something when the fault is over.
//
// It writes nothing and reads no clock. It is not safe for concurrent use.
package lasting
