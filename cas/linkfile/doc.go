// Package linkfile keeps an object in numbered files of a shared directory, one
// file a version. It is made for a lease that replicas on several machines share
// through NFS, and works on every POSIX file system with hard links.
//
// # What it guarantees
//
// Create and Replace are compare-and-swap between all processes that see the
// directory, wherever they run, as far as link(2) is atomic there: it is the one
// call that NFS promises to be. A write goes into a private file that is synced
// and then linked to "<path>.<n>", n being the number of the version it replaces
// plus one, in decimal digits without leading zeros. Of any number of writers one
// gets the name. There is no lock, so nothing can be left locked and nothing is
// broken by age; no clock and no lock daemon take part.
//
// A link that was answered with an error, EEXIST included, is settled by the
// link count of the private file, because an NFS server applies a request and
// may then lose the answer: 2 means that it landed. A link that landed counts
// only if the version it replaces is still there afterwards, and no higher one
// is. That matters because old versions are removed, all but the last 64: a
// writer that was frozen for more than 64 writes finds its name free again. It
// then takes its own name back and answers Ambiguous. Names are removed in
// ascending order, so whoever finds the version before its own can be sure that
// its own number was never used; and number 1 is never free again, so that an
// object is created once.
//
// A process that is killed between any two system calls leaves a directory in
// which every other one can read and write.
//
// # The file at path itself
//
// "<path>" is a copy of the last write, put there by rename after the write has
// landed, for people and for sf2loki's own coordinator, whose format a lease
// record begins with. It may lag, and it may fail: a write does not fail with it.
// It decides something in two cases only:
//
//   - There is no numbered file. Then it is the object, with a version of its own,
//     as sf2loki left it; the first Replace of that version makes number 1.
//   - It holds what [Options].Foreign says this program did not write. Then
//     another program uses the path, right now or since our last write. Load
//     returns that record, so that its changes are seen as changes of the object,
//     and a Replace of any other version is Conflict.
//
// # What it does not guarantee
//
// Versions are told apart by number and a hash of the content: callers put
// something fresh into every write.
//
// A read may be as old as the attribute cache of the mount lets it be (a
// directory is opened, not only looked up, which makes an NFS client ask the
// server, unless it is mounted nocto). A write is decided by the server. A
// directory that is not mounted looks like one in which the object does not
// exist. Removing some of the numbered files by hand, rather than all of them with
// all replicas stopped, can take a version back.
//
// A mixed pair, one replica with this package and one with sf2loki's own file
// lease, is noticed, not arbitrated: the other program writes without a
// condition.
package linkfile
