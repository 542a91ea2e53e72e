package linkfile

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sf2loki/sf2loki-ha/cas"
	"github.com/sf2loki/sf2loki-ha/cas/internal/posix"
	"github.com/sf2loki/sf2loki-ha/internal/boottime"
	"github.com/sf2loki/sf2loki-ha/internal/bounded"
)

// Options adapt a register to what it keeps. The zero value is right for an
// object that no other program knows.
type Options struct {
	// MaxReadAge is how long ago a version may have been read, or written, by
	// this register for Replace to trust it. Replace of an older one reads the
	// directory first and is Conflict without a write if the version is not the
	// last any more. 0: it always reads first. A lease wants half its ttl: then
	// an ordinary renewal costs no extra read, and a process that wakes from a
	// freeze does not get as far as a name that has become free again.
	MaxReadAge time.Duration
	// Foreign tells whether the content of the file at path was written by
	// another program. nil: the file is not looked at while there are numbered
	// ones.
	Foreign func(data []byte) bool
	// Changing, if not nil, is called when foreign content has changed since it
	// was last seen: the other program is running. It is called once, and again
	// after the file was seen without foreign content in between. It may be
	// called from any goroutine.
	Changing func(error)
}

// Bucket is a directory; a key is a path below it.
type Bucket struct {
	dir    string
	opts   Options
	closed atomic.Bool
}

// Open returns the bucket whose objects live below dir. It touches no file: the
// directory is made by the first write, with mode 0700.
func Open(dir string, opts Options) *Bucket { return &Bucket{dir: dir, opts: opts} }

// Register returns the object of that name: dir/name and the files beside it. A
// name that leaves the directory, or that this package gives to the files of
// another object, gives a register whose calls are Denied.
func (b *Bucket) Register(name string) cas.Register { return b.register(name) }

func (b *Bucket) register(name string) *register {
	path, err := posix.Below(b.dir, name)
	if err == nil && strings.HasSuffix(name, tempSuffix) {
		err = errors.New("names that end in " + tempSuffix + " are used for unfinished writes")
	}
	if _, isSlot := number(filepath.Ext(name)); err == nil && isSlot {
		err = errors.New("names that end in a number are used for versions")
	}
	r := newRegister(path, b.opts, real{}, &b.closed)
	r.invalid = err
	return r
}

// Close makes the registers of this bucket fail. There is nothing to release.
func (b *Bucket) Close() error {
	b.closed.Store(true)
	return nil
}

// New returns the register of one path. Beside the file it uses path+".<n>" for
// versions and path+".<16 hexadecimal digits>.tmp" for unfinished writes.
func New(path string, opts Options) cas.Register {
	return newRegister(path, opts, real{}, new(atomic.Bool))
}

type register struct {
	path    string
	opts    Options
	sys     system
	now     func() boottime.Instant
	keep    int64 // how many versions stay
	invalid error
	closed  *atomic.Bool

	mu    sync.Mutex
	known sighting // the version this register read or wrote last
	alien alien    // foreign content it has seen
}

// sighting is when this process knew a version to be the last.
type sighting struct {
	version cas.Version
	at      boottime.Instant
}

func newRegister(path string, opts Options, sys system, closed *atomic.Bool) *register {
	return &register{path: path, opts: opts, sys: sys, now: boottime.Now, keep: keep, closed: closed}
}

func (r *register) Describe() string { return r.path }

func (r *register) Load(ctx context.Context) (cas.Value, error) {
	if err := r.usable("load"); err != nil {
		return cas.Value{}, err
	}
	v, err := bounded.Call(ctx, r.load)
	return v, r.failed("load", err)
}

func (r *register) Create(ctx context.Context, data []byte) (cas.Version, error) {
	return r.write(ctx, "create", data, r.create)
}

func (r *register) Replace(ctx context.Context, data []byte, old cas.Version) (cas.Version, error) {
	return r.write(ctx, "replace", data, func(ctx context.Context, data []byte) (*commit, error) {
		return r.replace(ctx, data, old)
	})
}

// write gives the write a goroutine, because a call into a file system cannot be
// interrupted and a dying server does not answer. The data is copied: an
// abandoned write may still read it. What is done after the write has landed does
// not delay its answer beyond the end of the context.
func (r *register) write(ctx context.Context, op string, data []byte, do func(context.Context, []byte) (*commit, error)) (cas.Version, error) {
	if err := r.usable(op); err != nil {
		return "", err
	}
	data = append([]byte(nil), data...)
	type answer struct {
		version cas.Version
		err     error
	}
	decided := make(chan answer, 1)
	_, err := bounded.Call(ctx, func(ctx context.Context) (struct{}, error) {
		c, err := do(ctx, data)
		if err != nil {
			decided <- answer{err: err}
			return struct{}{}, nil
		}
		decided <- answer{version: c.version.text()}
		r.tidy(c)
		return struct{}{}, nil
	})
	select {
	case a := <-decided:
		return a.version, r.failed(op, a.err)
	default:
		return "", r.failed(op, err)
	}
}

func (r *register) usable(op string) error {
	if r.invalid != nil {
		return &cas.Error{Class: cas.Denied, Op: op, Object: r.path, Err: r.invalid, Hint: "choose another name"}
	}
	if r.closed.Load() {
		return r.failed(op, errors.New("bucket is closed"))
	}
	return nil
}
