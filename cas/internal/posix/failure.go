package posix

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"

	"github.com/sf2loki/sf2loki-ha/cas"
)

// What is wrong with a path without an errno of its own.
var (
	// ErrIrregular: a link, a directory or a device in place of the file.
	ErrIrregular = errors.New("not a regular file")
	// ErrTooLarge: a file that is larger than cas.MaxSize.
	ErrTooLarge = fmt.Errorf("larger than %d bytes", cas.MaxSize)

	errNoDir = errors.New("not a directory")
)

// Failure gives an error of the file system its class. path is the object; the
// file that the error is about is named by the error itself.
func Failure(op, path string, err error) *cas.Error {
	e := &cas.Error{Class: cas.Ambiguous, Op: op, Object: path, Err: err}
	switch {
	case errors.Is(err, cas.Conflict):
		e.Class, e.Err = cas.Conflict, nil

	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		e.Class = cas.Ambiguous

	case errors.Is(err, ErrTooLarge), errors.Is(err, ErrIrregular):
		e.Class = cas.Corrupt
		e.Hint = "move what is there out of the way, or configure another path"

	// ENOTDIR says that the key does not exist, but it cannot come into being
	// either: the configuration is wrong. Not claimable is the safe side.
	case errors.Is(err, syscall.ENOTDIR), errors.Is(err, errNoDir):
		e.Class = cas.NoBucket
		e.Hint = "a directory of the path is a file; correct the path"

	// A read found no such name: absent. A write that finds none has lost its
	// directory on the way; what became of it is for a read to tell.
	case errors.Is(err, fs.ErrNotExist) && op == "load":
		e.Class = cas.NotFound

	case errors.Is(err, fs.ErrPermission): // EACCES and EPERM
		e.Class = cas.Denied
		e.Hint = fmt.Sprintf("let uid %d, which this process runs as, read and write the files (chown, chmod 600) and their directory (chmod 700)", os.Geteuid())

	case errors.Is(err, syscall.EROFS):
		e.Class = cas.Denied
		e.Hint = "the file system is mounted read-only; mount it writable"
	}
	return e
}
