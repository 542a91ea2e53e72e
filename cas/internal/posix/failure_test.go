package posix

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"
	"testing"

	"github.com/sf2loki/sf2loki-ha/cas"
)

// As root, which is how containers and CI often run, permissions do not bite;
// the mapping is therefore checked on the errors themselves.
func TestErrnoBecomesAClass(t *testing.T) {
	path := func(errno error) error { return &os.PathError{Op: "open", Path: "/p", Err: errno} }
	for _, tt := range []struct {
		op   string
		err  error
		want cas.Class
	}{
		{"load", path(syscall.ENOENT), cas.NotFound},
		{"create", path(syscall.ENOENT), cas.Ambiguous},
		{"replace", path(syscall.ENOENT), cas.Ambiguous},
		{"load", path(syscall.EACCES), cas.Denied},
		{"create", path(syscall.EACCES), cas.Denied},
		{"replace", path(syscall.EPERM), cas.Denied},
		{"create", path(syscall.EROFS), cas.Denied},
		{"load", path(syscall.ENOTDIR), cas.NoBucket},
		{"create", path(syscall.ENOTDIR), cas.NoBucket},
		{"load", path(syscall.EIO), cas.Ambiguous},
		{"create", path(syscall.ENOSPC), cas.Ambiguous},
		{"create", path(syscall.EDQUOT), cas.Ambiguous},
		{"load", path(syscall.ESTALE), cas.Ambiguous},
		{"load", path(syscall.EMFILE), cas.Ambiguous},
		{"load", path(syscall.ENAMETOOLONG), cas.Ambiguous},
		{"load", io.ErrUnexpectedEOF, cas.Ambiguous},
		{"load", ErrTooLarge, cas.Corrupt},
		{"load", ErrIrregular, cas.Corrupt},
		{"replace", cas.Conflict, cas.Conflict},
		{"replace", fmt.Errorf("sync directory: %w", path(syscall.EIO)), cas.Ambiguous},
		{"load", context.Canceled, cas.Ambiguous},
		{"replace", context.DeadlineExceeded, cas.Ambiguous},
	} {
		e := Failure(tt.op, "/p", tt.err)
		if e.Class != tt.want {
			t.Errorf("%s: %v is %q, want %q", tt.op, tt.err, e.Class, tt.want)
		}
		if e.Class == cas.Denied && e.Hint == "" {
			t.Errorf("%s: %v has no hint", tt.op, tt.err)
		}
		if e.Op != tt.op || e.Object != "/p" {
			t.Errorf("op %q, object %q", e.Op, e.Object)
		}
		if tt.want != cas.Conflict && !errors.Is(e, tt.err) {
			t.Errorf("%v lost its cause", e)
		}
	}
}
