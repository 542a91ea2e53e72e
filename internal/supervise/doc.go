// Package supervise runs one command while this replica holds the lease, each
// run under a guard of its own (package guard).
//
// # What it guarantees
//
// [Supervisor.Run] returns only when no process of the command's tree is left:
// either the guard said so, on the kernel's word, or the guard failed and the
// supervisor killed and reaped the tree itself. The lease may be released after
// Run has returned, and not before.
//
// No command is started before its guard has acknowledged the instant at which
// it must be gone, and each renewal reaches the guard or ends the run. If the
// lease is lost the tree is killed at once, without grace; otherwise the command
// gets SIGTERM and the time that is left, at most.
//
// Who ended a run is recorded where it is decided ([Kind]) and not guessed from
// an exit code.
//
// # What it does not guarantee
//
// Timers of this package are for order and for the operator; what holds the
// deadline is the guard, since this process may be frozen. A process that the
// kernel cannot kill yet (an uninterruptible call) is waited for without limit:
// the lease then runs out instead of being released.
//
// After the death of a guard, a process that was handed to this process counts
// as part of the tree if it started later than the guard and belongs to another
// session than ours. In a container where this process is PID 1 that includes
// an orphan of "docker exec": it is killed, the safe side. Other children of
// this process must not be started with a session of their own.
//
// Running a command needs Linux.
package supervise
