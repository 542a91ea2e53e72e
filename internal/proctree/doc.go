// Package proctree finds the processes that descend from a process, and kills
// them. It is used by the guard on its own descendants and by the supervisor
// on the descendants of a guard that died.
//
// # What it guarantees
//
// A process that [Round] signals was a descendant of the given root when the
// process table was read: its identity is checked again, by pid and start
// time, before the signal, so that a recycled pid is not hit. A process group
// is killed by one system call that no member can escape by forking.
//
// # What it does not guarantee
//
// The process table is not read at one instant: a process whose parent died
// meanwhile may be missing from one reading. One call therefore proves
// nothing; callers repeat until the kernel itself says that no child is left
// (wait4: ECHILD). Processes hidden from this user (another user id together
// with /proc mounted hidepid) and processes that this user may not signal are
// outside the reach of the package.
//
// Linux only; on other systems the package is empty.
package proctree
