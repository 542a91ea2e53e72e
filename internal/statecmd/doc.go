// Package statecmd is the verb "state": it shows, changes, copies and repairs
// the checkpoint document from outside of any term.
//
// # What it guarantees
//
// Each change is one conditional write, so that a command that is killed leaves
// the old document or the new one. The order is always: read the document and
// its version, then the lease, then write on that version. A replica that takes
// over after the lease was read seals the document first, which makes the write
// a conflict; so a command that succeeded was not overtaken.
//
// Nothing is written while somebody may lead. A lease that is held counts as
// live, whatever its time stamps say, unless the command itself has watched it
// stand unchanged for the ttl, as a standby does. During a hold the command waits
// until the lease is released. Flags.Force passes over that, and over nothing
// that would damage the document: the fence is changed by RepairFence and Adopt
// alone, and they never lower an epoch.
//
// [Judge] decides; it is pure. Everything else carries out.
//
// # What it does not guarantee
//
// With coordinate.type noop there is no lease. A checkpoint file is then guarded
// by the lock of the process that uses it (internal/replica); an object in a
// bucket by nothing, and the caller has to know that nothing runs. A forced write
// beside a leader may be undone by its next commit, and ends work that rewrites
// the document itself.
package statecmd
