package file

import (
	"context"
	"errors"
	"math/rand/v2"
	"os"
	"syscall"
	"time"
)

// The lock is tried at once and then at growing intervals: a blocking flock
// cannot be given up when the context ends.
const (
	firstWait = time.Millisecond
	mostWait  = 20 * time.Millisecond
)

// lock takes the exclusive flock on path, which it creates, and returns how to
// drop it. Closing the descriptor drops it too, so a process that dies leaves
// none behind.
func lock(ctx context.Context, path string) (unlock func(), err error) {
	wait := firstWait
	for {
		f, err := tryLock(path)
		if err != nil {
			return nil, err
		}
		if f != nil {
			return func() { _ = f.Close() }, nil
		}
		// Jitter, or writers that met once would meet again at each attempt.
		timer := time.NewTimer(wait/2 + rand.N(wait))
		select {
		case <-ctx.Done():
			timer.Stop()
			return nil, ctx.Err()
		case <-timer.C:
		}
		wait = min(2*wait, mostWait)
	}
}

// tryLock returns the locked file, or nil if the lock is taken just now.
func tryLock(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|syscall.O_NOFOLLOW, 0o600)
	if err != nil {
		return nil, err
	}
	for {
		err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if !errors.Is(err, syscall.EINTR) {
			break
		}
	}
	if err != nil {
		f.Close()
		if errors.Is(err, syscall.EWOULDBLOCK) {
			return nil, nil
		}
		return nil, &os.PathError{Op: "flock", Path: path, Err: err}
	}
	// Somebody may have removed the lock file between open and flock. Then ours is
	// a lock on a file without a name, and the next writer would make a new one
	// and hold it at the same time.
	mine, err := f.Stat()
	if err == nil {
		var named os.FileInfo
		if named, err = os.Lstat(path); err == nil && os.SameFile(mine, named) {
			return f, nil
		}
	}
	f.Close()
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	return nil, nil
}
