package replica

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/sf2loki/sf2loki-ha/internal/config"
)

// With coordinate.type noop nothing arbitrates between two replicas. If the
// checkpoint document is a file, a flock does, on one machine: the process holds
// it as long as it lives, and the kernel drops it with the process.
//
// It is a file of its own. "<path>.lock" is taken by sf2loki itself for as long as
// it runs, and by package cas/file for the time of one write: a supervisor that
// held that one would lock out its own work.
const (
	instanceSuffix = ".instance.lock"
	upstreamSuffix = ".lock"
)

// InUseError says that another process uses a checkpoint file.
type InUseError struct {
	// Path is the checkpoint file, Lock the lock file that is held.
	Path, Lock string
}

func (e *InUseError) Error() string {
	who := "another sf2loki-ha"
	if e.Lock == e.Path+upstreamSuffix {
		who = "another program, such as sf2loki itself,"
	}
	return fmt.Sprintf("%s is in use: %s holds %s; two processes on one checkpoint file ship every record twice and undo each other's checkpoints: stop the other one first, or configure an election (coordinate.type)", e.Path, who, e.Lock)
}

// LockState keeps other processes off a checkpoint file until the returned lock is
// closed. It does not wait: a lock that is held is an [InUseError].
func LockState(path string) (io.Closer, error) {
	dir := filepath.Dir(path)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, unwritable(path, err)
	}
	name := path + instanceSuffix
	f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE|syscall.O_NOFOLLOW, 0o600)
	if err != nil {
		return nil, unwritable(path, err)
	}
	switch err := flock(f); {
	case errors.Is(err, syscall.EWOULDBLOCK):
		f.Close()
		return nil, &InUseError{Path: path, Lock: name}
	case err != nil:
		f.Close()
		return nil, fmt.Errorf("lock %s: %w; a checkpoint file without an election needs a file system with flock", name, err)
	}
	return f, nil
}

// writePatience is how long the lock that single writes take as well has to be
// held before somebody is said to hold it for good.
const writePatience = time.Second

// StateInUse returns an [InUseError] if a living process holds a checkpoint file:
// this program without an election, or sf2loki itself. It makes no file.
func StateInUse(ctx context.Context, path string) error {
	if held(path + instanceSuffix) {
		return &InUseError{Path: path, Lock: path + instanceSuffix}
	}
	until := time.Now().Add(writePatience)
	for held(path + upstreamSuffix) {
		if time.Now().After(until) {
			return &InUseError{Path: path, Lock: path + upstreamSuffix}
		}
		if err := wait(ctx, writePatience/20); err != nil {
			return err
		}
	}
	return nil
}

// held reports whether a process holds a lock file just now. Without a file, or
// with one that cannot be asked, nobody is seen.
func held(name string) bool {
	f, err := os.OpenFile(name, os.O_RDWR|syscall.O_NOFOLLOW, 0)
	if errors.Is(err, fs.ErrPermission) {
		f, err = os.OpenFile(name, os.O_RDONLY|syscall.O_NOFOLLOW, 0)
	}
	if err != nil {
		return false
	}
	defer f.Close()
	return errors.Is(flock(f), syscall.EWOULDBLOCK)
}

func flock(f *os.File) error {
	for {
		if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); !errors.Is(err, syscall.EINTR) {
			return err
		}
	}
}

// unwritable names directory and user: a state directory that belongs to another
// uid is the usual reason.
func unwritable(path string, err error) error {
	var detail *fs.PathError
	if errors.As(err, &detail) {
		err = detail.Err
	}
	return fmt.Errorf("checkpoint file %s: uid %d cannot write in the directory %s: %w; let that uid own the directory (chown, chmod 700), or correct state.file.path", path, os.Geteuid(), filepath.Dir(path), err)
}

// exclusive takes the lock of the checkpoint file where nothing else arbitrates.
// It is released with the clients.
func (r *Replica) exclusive(ctx context.Context) error {
	cfg := r.opts.Config
	if cfg.Coordinate.Type != config.TypeNoop || cfg.State.Store != config.StoreFile {
		return nil
	}
	if err := StateInUse(context.WithoutCancel(ctx), cfg.State.File.Path); err != nil {
		return &SetupError{err}
	}
	lock, err := LockState(cfg.State.File.Path)
	if err != nil {
		return &SetupError{err}
	}
	r.clients.open = append(r.clients.open, lock)
	return nil
}
