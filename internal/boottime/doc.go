// Package boottime reads the clock that leadership is measured on.
//
// An [Instant] is CLOCK_BOOTTIME in nanoseconds on Linux: it ticks while the
// machine is suspended (CLOCK_MONOTONIC stands still there, golang/go #24595)
// and nobody can step it. It means the same in every process of one machine,
// which is why the supervisor can hand an Instant to its guard. It means
// nothing on another machine and is never written into a shared document.
//
// On systems without CLOCK_BOOTTIME an Instant counts from process start and
// is the larger of monotonic and wall-clock time elapsed; it does not compare
// across processes there.
//
// Not guaranteed: a hypervisor that stops the guest's clocks stops this one.
package boottime
