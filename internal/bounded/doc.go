// Package bounded gives a call a deadline that holds even if the called library
// ignores its context.
//
// It does not stop what was called: the context given to it ends, and its
// goroutine stays until it returns.
package bounded
