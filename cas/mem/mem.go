package mem

import (
	"bytes"
	"context"
	"errors"
	"strconv"
	"sync"
	"sync/atomic"

	"github.com/sf2loki/sf2loki-ha/cas"
)

// Store is the objects. Buckets opened from it are separate clients of it.
type Store struct {
	mu      sync.Mutex
	writes  uint64
	objects map[string]cas.Value
}

// New returns an empty store.
func New() *Store { return &Store{objects: map[string]cas.Value{}} }

// Open returns another client of the store. Closing it does not touch the
// objects or other clients.
func (s *Store) Open() *Bucket { return &Bucket{store: s} }

// Remove deletes any object, as a person with a console would: the delete that no
// register has. Removing an absent object does nothing.
func (s *Store) Remove(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.objects, name)
}

// Bucket is one client of a Store.
type Bucket struct {
	store  *Store
	closed atomic.Bool
}

// Register returns the object of that name.
func (b *Bucket) Register(name string) cas.Register { return &register{b, name} }

// Scratch implements cas.ScratchBucket.
func (b *Bucket) Scratch(object string) cas.Scratch {
	return cas.NewScratch(b, object, func(ctx context.Context, name string) error {
		r := &register{b, name}
		return r.at(ctx, "remove", func(cas.Value, bool) error {
			delete(b.store.objects, name)
			return nil
		})
	})
}

// Close makes the registers of this bucket fail.
func (b *Bucket) Close() error {
	b.closed.Store(true)
	return nil
}

var _ cas.ScratchBucket = (*Bucket)(nil)

type register struct {
	bucket *Bucket
	name   string
}

func (r *register) Describe() string { return "mem://" + r.name }

func (r *register) Load(ctx context.Context) (v cas.Value, err error) {
	err = r.at(ctx, "load", func(now cas.Value, exists bool) error {
		switch {
		case !exists:
			return cas.NotFound
		case len(now.Data) > cas.MaxSize:
			v = cas.Value{Version: now.Version}
			return cas.Corrupt
		}
		v = cas.Value{Data: bytes.Clone(now.Data), Version: now.Version}
		return nil
	})
	return v, err
}

func (r *register) Create(ctx context.Context, data []byte) (v cas.Version, err error) {
	err = r.at(ctx, "create", func(_ cas.Value, exists bool) error {
		if exists {
			return cas.Conflict
		}
		v = r.put(data)
		return nil
	})
	return v, err
}

func (r *register) Replace(ctx context.Context, data []byte, old cas.Version) (v cas.Version, err error) {
	err = r.at(ctx, "replace", func(now cas.Value, exists bool) error {
		if !exists || now.Version != old {
			return cas.Conflict
		}
		v = r.put(data)
		return nil
	})
	return v, err
}

// at runs f at one instant of the store.
func (r *register) at(ctx context.Context, op string, f func(now cas.Value, exists bool) error) error {
	fail := func(class cas.Class, cause error) error {
		return &cas.Error{Class: class, Op: op, Object: r.Describe(), Err: cause}
	}
	s := r.bucket.store
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := ctx.Err(); err != nil {
		return fail(cas.Ambiguous, err)
	}
	if r.bucket.closed.Load() {
		return fail(cas.Ambiguous, errors.New("bucket is closed"))
	}
	now, exists := s.objects[r.name]
	if err := f(now, exists); err != nil {
		return fail(cas.ClassOf(err), nil)
	}
	return nil
}

func (r *register) put(data []byte) cas.Version {
	s := r.bucket.store
	s.writes++
	v := cas.Version(strconv.FormatUint(s.writes, 10))
	s.objects[r.name] = cas.Value{Data: bytes.Clone(data), Version: v}
	return v
}
