// Package file keeps each object in one file of a local file system.
//
// # What it guarantees
//
// Between all processes of one machine, and all goroutines of each, Create and
// Replace are compare-and-swap: the current file is read, compared and replaced
// under an exclusive flock on "<path>.lock". The lock is held during that write
// only, never between calls, and the kernel drops it when its process dies, so
// there is no stale lock to clean up. A reader takes no lock: a new version is
// written beside the file, synced, and renamed over it, so a Load sees one whole
// write, and a write that returned is on the disk together with its name.
//
// The version is made of inode, modification time and a hash of the content. Two
// writes of different bytes therefore always differ. Files have mode 0600; the
// parent directories are made, with mode 0700, by the first write.
//
// Calls return when their context ends, also while another process holds the
// lock or the disk does not answer.
//
// # What it does not guarantee
//
// Anything between machines; package linkfile is for that. On NFS, SMB or a FUSE
// mount of a bucket flock may be local to each client, and rename may not be
// atomic. A directory that is not mounted looks like one in which the object does
// not exist. A person who edits the file in place takes no lock; the edit changes
// the version, so a writer notices, but an edit in the very moment of a write can
// be lost.
//
// A symbolic link, a directory or a device in place of the file is Corrupt: it
// exists, is not ours, and renaming over it would do something else than
// replacing it.
package file
