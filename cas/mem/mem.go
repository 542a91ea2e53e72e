package mem

import (
	"bytes"
	"context"
	"errors"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sf2loki/sf2loki-ha/cas"
)

// Store is the objects. Buckets opened from it are separate clients of it.
type Store struct {
	mu      sync.Mutex
	writes  uint64
	objects map[string]state
}

// state is one object.
type state struct {
	data    []byte
	version cas.Version
	written time.Time
}

// clock is the store's. It is wall time only: inside and outside of a synctest
// bubble the monotonic clocks have nothing to do with each other.
func clock() time.Time { return time.Now().Round(0) }

// New returns an empty store.
func New() *Store { return &Store{objects: map[string]state{}} }

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
		return r.at(ctx, "remove", func(state, bool) error {
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
	err = r.at(ctx, "load", func(now state, exists bool) error {
		if !exists {
			return cas.NotFound
		}
		v = cas.Value{Version: now.version, Age: cas.AgeOf(clock(), now.written)}
		if len(now.data) > cas.MaxSize {
			return cas.Corrupt
		}
		v.Data = bytes.Clone(now.data)
		return nil
	})
	return v, err
}

func (r *register) Create(ctx context.Context, data []byte) (v cas.Version, err error) {
	err = r.at(ctx, "create", func(_ state, exists bool) error {
		if exists {
			return cas.Conflict
		}
		v = r.put(data)
		return nil
	})
	return v, err
}

func (r *register) Replace(ctx context.Context, data []byte, old cas.Version) (v cas.Version, err error) {
	err = r.at(ctx, "replace", func(now state, exists bool) error {
		if !exists || now.version != old {
			return cas.Conflict
		}
		v = r.put(data)
		return nil
	})
	return v, err
}

// at runs f at one instant of the store.
func (r *register) at(ctx context.Context, op string, f func(now state, exists bool) error) error {
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
	s.objects[r.name] = state{data: bytes.Clone(data), version: v, written: clock()}
	return v
}
