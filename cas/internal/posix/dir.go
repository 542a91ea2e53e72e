package posix

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// Below returns the path of the object of that name in dir. A name that leaves
// the directory is an error, beside a path that is good for messages only.
func Below(dir, name string) (string, error) {
	if !filepath.IsLocal(filepath.FromSlash(name)) || strings.HasSuffix(name, "/") {
		return dir + string(filepath.Separator) + name, errors.New("the name must be a path below the directory")
	}
	return filepath.Join(dir, filepath.FromSlash(name)), nil
}

// MakeDir makes dir and its parents, private to the user, and syncs the parent of
// each one made: a file that is on the disk in a directory that is not would be
// lost with it.
func MakeDir(dir string) error {
	info, err := os.Stat(dir)
	switch {
	case err == nil && info.IsDir():
		return nil
	case err == nil:
		return fmt.Errorf("%s: %w", dir, errNoDir)
	case !errors.Is(err, fs.ErrNotExist):
		return err
	}
	parent := filepath.Dir(dir)
	if parent != dir {
		if err := MakeDir(parent); err != nil {
			return err
		}
	}
	if err := os.Mkdir(dir, 0o700); err != nil {
		if info, serr := os.Stat(dir); serr == nil && info.IsDir() {
			return nil // another process was faster
		}
		return err
	}
	return SyncDir(parent)
}

// SyncDir puts the names in dir on the disk.
func SyncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	return d.Sync()
}
