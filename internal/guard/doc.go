// Package guard is the process between the supervisor and its work. It exists
// so that a supervisor which is frozen, dead or wrong cannot keep work alive
// beyond its lease.
//
// # What it guarantees
//
// One guard process runs one child for one term. It is given an instant of
// CLOCK_BOOTTIME before it forks, and it kills the child and everything that
// descends from it, at that instant or at once when its control pipe ends or
// carries something it does not understand. A later instant is accepted as long
// as it has not begun to kill, never afterwards. If the first instant has
// passed already, nothing is forked. It reports "gone" only when the kernel
// says that no descendant is left, not even one to reap.
//
// The child has its own process group, stdin from /dev/null, the guard's
// stdout and stderr, no other descriptor of ours, and no shell in between. If
// the guard dies, the kernel kills the child (parent death signal) and hands
// its descendants to the supervisor, which is a subreaper as well.
//
// # What it does not guarantee
//
// The kill begins within a few milliseconds of the instant, and within 200 ms
// of the end of a freeze that covered it; how long dying takes is up to the
// kernel (a process in an uninterruptible call dies when that call ends). If
// guard and supervisor are stopped while the child runs, or both are killed at
// one moment outside a PID namespace, nobody is left to act. A descendant that
// this user may not signal (a set-user-id program) is out of reach, and so is
// work that another service was asked to start.
//
// The guard needs Linux; elsewhere [Main] says so and starts nothing.
//
// docs/guard.md describes the protocol.
package guard
