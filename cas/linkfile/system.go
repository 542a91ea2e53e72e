package linkfile

import (
	"io"
	"io/fs"
	"os"
	"syscall"

	"github.com/sf2loki/sf2loki-ha/cas/internal/posix"
)

// system is every call this package makes into the file system. Tests put a file
// system there that loses answers and stops at any call.
type system interface {
	// list returns the names in a directory. It opens the directory, which makes
	// an NFS client ask the server whether its cache is up to date.
	list(dir string) ([]string, error)
	// read returns one state of a regular file, see posix.Read.
	read(path string) (posix.Content, error)
	// stat opens a regular file and describes it. Opening it makes an NFS client
	// ask the server; a stat of the name might be answered by a cache.
	stat(path string) (fs.FileInfo, error)
	// create makes a file that does not exist yet.
	create(path string) (file, error)
	link(old, new string) error
	rename(old, new string) error
	remove(path string) error
	makeDir(dir string) error
	syncDir(dir string) error
}

// file is one being written.
type file interface {
	io.Writer
	Sync() error
	Close() error
}

type real struct{}

func (real) list(dir string) ([]string, error) {
	d, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	defer d.Close()
	return d.Readdirnames(-1)
}

func (real) read(path string) (posix.Content, error) { return posix.Read(path) }

func (real) stat(path string) (fs.FileInfo, error) {
	f, info, err := posix.Open(path)
	if err != nil {
		return nil, err
	}
	return info, f.Close()
}

func (real) create(path string) (file, error) {
	return os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
}

func (real) link(old, new string) error   { return os.Link(old, new) }
func (real) rename(old, new string) error { return os.Rename(old, new) }
func (real) remove(path string) error     { return os.Remove(path) }
func (real) makeDir(dir string) error     { return posix.MakeDir(dir) }
func (real) syncDir(dir string) error     { return posix.SyncDir(dir) }

// links is how many names a file has, or 0 if the system does not say.
func links(info fs.FileInfo) uint64 {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return 0
	}
	return uint64(st.Nlink)
}
