package file

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/sf2loki/sf2loki-ha/cas"
	"github.com/sf2loki/sf2loki-ha/cas/internal/posix"
)

// swap replaces the file if its version is old, or creates it if old is empty
// and it does not exist.
func swap(ctx context.Context, path string, data []byte, old cas.Version) (cas.Version, error) {
	// 1. The directory. Only a create makes it: where there is none, there is no
	// version to replace either.
	if old == "" {
		if err := posix.MakeDir(filepath.Dir(path)); err != nil {
			return "", err
		}
	}

	// 2. The lock. From here on no other writer of this package is active.
	unlock, err := lock(ctx, path+lockSuffix)
	if errors.Is(err, fs.ErrNotExist) && old != "" {
		return "", cas.Conflict // no directory, no object
	}
	if err != nil {
		return "", err
	}
	defer unlock()

	// 3. The condition.
	now, err := read(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		now.Version = ""
	case errors.Is(err, posix.ErrIrregular):
		return "", cas.Conflict // something is there, and no version names it
	case err != nil && !errors.Is(err, posix.ErrTooLarge):
		return "", err
	}
	if now.Version != old {
		return "", cas.Conflict
	}

	// 4. The write. Nobody waits any more? Then leave the file alone: a write that
	// lands later than its caller gave up is allowed, but none is better.
	temp := path + tempSuffix
	v, err := writeTemp(temp, data)
	if err == nil {
		err = ctx.Err()
	}
	if err == nil {
		err = os.Rename(temp, path)
	}
	if err != nil {
		_ = os.Remove(temp)
		return "", err
	}

	// 5. The name. An error here leaves a write that readers see and a power cut
	// may undo: not confirmed, hence Ambiguous.
	if err := posix.SyncDir(filepath.Dir(path)); err != nil {
		return "", fmt.Errorf("sync directory: %w", err)
	}
	return v, nil
}

// writeTemp writes and syncs the new content and returns the version it will
// have: a rename keeps inode and modification time. The name is fixed, so a
// crash leaves at most one such file, and the next writer removes it.
func writeTemp(path string, data []byte) (_ cas.Version, err error) {
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", err
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return "", err
	}
	defer func() {
		if cerr := f.Close(); err == nil {
			err = cerr
		}
	}()
	if _, err := f.Write(data); err != nil {
		return "", err
	}
	if err := f.Sync(); err != nil {
		return "", err
	}
	info, err := f.Stat()
	if err != nil {
		return "", err
	}
	return version(info, posix.Sum(data)), nil
}
