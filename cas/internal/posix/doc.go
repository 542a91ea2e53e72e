// Package posix is what the two file backends of cas share: what an errno means,
// reading a file as one state, and directories that survive a power cut.
//
// It guarantees that nothing but a regular file is ever read, that a symbolic
// link is not followed in the last element of a path, and that no call waits for
// the other end of a pipe. It does not guarantee that a call returns: a file
// system that does not answer blocks it, and callers give it a goroutine.
package posix
