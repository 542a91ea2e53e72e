package linkfile

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"github.com/sf2loki/sf2loki-ha/cas"
	"github.com/sf2loki/sf2loki-ha/cas/internal/posix"
)

// Why a write that may have landed does not count.
var (
	errRecycled   = errors.New("the version it replaces is gone: this process was stopped for longer than old versions are kept, or files were removed")
	errSuperseded = errors.New("a later version is there already")
	errNoLinks    = errors.New("the file system makes no hard links")
)

// unsure marks an error after which a write may have landed, whatever errno is
// below it: "permission denied" for the sync of a directory does not undo a link.
type unsure struct{ error }

func (u unsure) Unwrap() error { return u.error }

// foreignError says that another program writes the file at path. It is a
// Conflict, because the version to be replaced is not the state of the object.
type foreignError struct{ path string }

func (e foreignError) Error() string {
	return fmt.Sprintf("%s was written by another program: an sf2loki that runs with coordinate.type file_lease of its own", e.path)
}

const foreignHint = "mixed pairs are not supported: give sf2loki coordinate.type noop and let sf2loki-ha run it on every machine"

// failed gives an error its class. The order is part of the contract: what may
// have landed is Ambiguous before anything else is asked.
func (r *register) failed(op string, err error) error {
	if err == nil {
		return nil
	}
	var u unsure
	var f foreignError
	e := posix.Failure(op, r.path, err)
	switch {
	case errors.As(err, &u):
		e.Class, e.Hint, e.Err = cas.Ambiguous, "", u.error
	case errors.As(err, &f):
		e.Class = cas.Conflict
	case errors.Is(err, errNoLinks):
		e.Class = cas.Unsupported
		e.Hint = fmt.Sprintf("put the lease on a file system with hard links instead of the one of %s, or use s3_lease or gcs_lease", filepath.Dir(r.path))
	case e.Class == cas.Denied:
		e.Hint += "; until then nobody will ever lead"
	}
	if errors.As(err, &f) {
		e.Hint = foreignHint
	}
	return e
}

// linkless tells whether a refused link means that there are none here. EPERM is
// what link(2) says then; a directory one may not write gives EACCES.
func linkless(err error) bool {
	var l *os.LinkError
	if !errors.As(err, &l) || l.Op != "link" {
		return false
	}
	for _, errno := range []error{syscall.EPERM, syscall.EOPNOTSUPP, syscall.ENOTSUP, syscall.ENOSYS, syscall.EMLINK} {
		if errors.Is(l.Err, errno) {
			return true
		}
	}
	return false
}

// harmless tells whether an error about the file at path shows that it is not
// another program's lease: it does not exist, or is nothing one could be in.
func harmless(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, posix.ErrIrregular) || errors.Is(err, posix.ErrTooLarge)
}
