package file

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"

	"github.com/sf2loki/sf2loki-ha/cas"
	"github.com/sf2loki/sf2loki-ha/cas/internal/posix"
	"github.com/sf2loki/sf2loki-ha/internal/bounded"
)

// Suffixes of the files beside an object. No key may end in one of them.
const (
	lockSuffix = ".lock"
	tempSuffix = ".tmp"
)

// Bucket is a directory; a key is a path below it.
type Bucket struct {
	dir    string
	closed atomic.Bool
}

// Open returns the bucket whose objects live below dir. It touches no file: the
// directory is made by the first write.
func Open(dir string) *Bucket { return &Bucket{dir: dir} }

// Register returns the object of that name: the file dir/name. A name that
// leaves the directory, or ends in a suffix this package uses itself, gives a
// register whose calls are Denied.
func (b *Bucket) Register(name string) cas.Register { return b.register(name) }

func (b *Bucket) register(name string) *register {
	r := &register{path: filepath.Join(b.dir, filepath.FromSlash(name)), closed: &b.closed}
	if !filepath.IsLocal(filepath.FromSlash(name)) || strings.HasSuffix(name, "/") {
		r.invalid = errors.New("the name must be a path below the directory")
		r.path = b.dir + string(filepath.Separator) + name
	} else if strings.HasSuffix(name, lockSuffix) || strings.HasSuffix(name, tempSuffix) {
		r.invalid = errors.New("names that end in " + lockSuffix + " or " + tempSuffix + " are used for locks and unfinished writes")
	}
	return r
}

var _ cas.ScratchBucket = (*Bucket)(nil)

// Scratch implements cas.ScratchBucket: a directory beside the object. The
// directory itself stays: removing it could pull it away under another probe.
func (b *Bucket) Scratch(object string) cas.Scratch {
	return cas.NewScratch(b, object, func(ctx context.Context, name string) error {
		r := b.register(name)
		_, err := run(ctx, r, "remove", func(context.Context) (struct{}, error) {
			return struct{}{}, remove(r.path)
		})
		return err
	})
}

// remove deletes the file and what belongs to it.
func remove(path string) error {
	for _, p := range []string{path, path + tempSuffix, path + lockSuffix} {
		if err := os.Remove(p); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// Close makes the registers of this bucket fail. There is nothing to release.
func (b *Bucket) Close() error {
	b.closed.Store(true)
	return nil
}

// New returns the register of one path. Beside the file it uses path+".lock" and
// path+".tmp".
func New(path string) cas.Register { return &register{path: path, closed: new(atomic.Bool)} }

type register struct {
	path    string
	invalid error
	closed  *atomic.Bool
}

func (r *register) Describe() string { return r.path }

func (r *register) Load(ctx context.Context) (cas.Value, error) {
	return run(ctx, r, "load", func(context.Context) (cas.Value, error) {
		return read(r.path)
	})
}

func (r *register) Create(ctx context.Context, data []byte) (cas.Version, error) {
	return run(ctx, r, "create", func(ctx context.Context) (cas.Version, error) {
		return swap(ctx, r.path, data, "")
	}, &data)
}

func (r *register) Replace(ctx context.Context, data []byte, old cas.Version) (cas.Version, error) {
	return run(ctx, r, "replace", func(ctx context.Context) (cas.Version, error) {
		if old == "" { // swap takes that for "must not exist"
			return "", cas.Conflict
		}
		return swap(ctx, r.path, data, old)
	}, &data)
}

// run gives f a goroutine, because a call into a file system cannot be
// interrupted and a dying disk does not answer. The data to be written is copied:
// an abandoned write may still read it.
func run[T any](ctx context.Context, r *register, op string, f func(context.Context) (T, error), data ...*[]byte) (T, error) {
	var zero T
	fail := func(err error) error { return posix.Failure(op, r.path, err) }
	if r.invalid != nil {
		return zero, &cas.Error{Class: cas.Denied, Op: op, Object: r.path, Err: r.invalid, Hint: "choose another name"}
	}
	if r.closed.Load() {
		return zero, fail(errors.New("bucket is closed"))
	}
	for _, d := range data {
		*d = append([]byte(nil), *d...)
	}
	v, err := bounded.Call(ctx, f)
	if err != nil {
		return v, fail(err)
	}
	return v, nil
}
