package k8slease

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"sync/atomic"
	"time"

	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/rest"

	"github.com/sf2loki/sf2loki-ha/cas"
	"github.com/sf2loki/sf2loki-ha/coordinator"
	"github.com/sf2loki/sf2loki-ha/internal/bounded"
)

// maxPause is the longest wait before a contested update is tried again.
const maxPause = 200 * time.Millisecond

var (
	errClosed  = errors.New("store is closed")
	errAltered = errors.New("the API server answered with another lease than the one it was sent")
)

// Store is one Lease. It implements [coordinator.LeaseStore] and is safe for
// concurrent use.
type Store struct {
	namespace, name string
	timeout         time.Duration
	api             rest.Interface
	http            *http.Client
	closed          atomic.Bool
}

var _ coordinator.LeaseStore = (*Store)(nil)

// Describe returns k8s://namespace/name.
func (s *Store) Describe() string { return "k8s://" + s.namespace + "/" + s.name }

// Close closes idle connections and makes further calls fail.
func (s *Store) Close() error {
	s.closed.Store(true)
	utilnet.CloseIdleConnectionsFor(s.http.Transport)
	return nil
}

// Read implements coordinator.LeaseStore. It never reports a corrupt lease: the
// spec always says something, and that is a foreign lease which has to go stale.
func (s *Store) Read(ctx context.Context) (coordinator.Lease, error) {
	return call(ctx, s, "read", func(ctx context.Context) (coordinator.Lease, error) {
		o, err := s.get(ctx, "read")
		if err != nil {
			return coordinator.Lease{}, err
		}
		return o.lease(), nil
	})
}

// Create implements coordinator.LeaseStore: one request, which Kubernetes
// refuses if there is a Lease of that name.
func (s *Store) Create(ctx context.Context, r coordinator.Record) (cas.Version, error) {
	body, err := newObject(s.namespace, s.name).with(r)
	if err != nil {
		return "", fmt.Errorf("create %s: %w", s.Describe(), err)
	}
	return call(ctx, s, "create", func(ctx context.Context) (cas.Version, error) {
		a := s.send(ctx, http.MethodPost, body)
		if !a.success() {
			return "", s.failure(ctx, "create", a)
		}
		return s.landed("create", a, r)
	})
}

// Replace implements coordinator.LeaseStore.
func (s *Store) Replace(ctx context.Context, r coordinator.Record, old cas.Version) (cas.Version, error) {
	return call(ctx, s, "replace", func(ctx context.Context) (cas.Version, error) { return s.replace(ctx, r, old) })
}

func (s *Store) replace(ctx context.Context, r coordinator.Record, old cas.Version) (cas.Version, error) {
	const op = "replace"
	// contested: an update of this call was answered 409.
	for contested := 0; ; contested++ {
		// 1. The state to change. Everything the answer says about the lease is
		// true at this moment; the resourceVersion keeps it true until the update.
		o, err := s.get(ctx, op)
		if err != nil {
			return "", unread(err, contested > 0)
		}
		if o.version() != old {
			// 2. Not the state the caller knows. It may be the one this call wrote:
			// a proxy that repeats a request turns its success into a 409, and the
			// write id tells. An earlier call's write is the caller's to recognise.
			if contested > 0 && o.ours() && o.record.WriteID == r.WriteID {
				return o.version(), nil
			}
			return "", s.conflict(op, o)
		}
		// 3. Still that state: change it.
		body, err := o.with(r)
		if err != nil {
			return "", fmt.Errorf("%s %s: %w", op, s.Describe(), err)
		}
		a := s.send(ctx, http.MethodPut, body)
		switch {
		case a.success():
			return s.landed(op, a, r)
		case a.code != http.StatusConflict:
			// Also no answer at all: the update may have landed, or may yet. It is
			// never sent again from here, so that no later answer of this call can
			// be mistaken for its own.
			return "", s.failure(ctx, op, a)
		}
		// 4. The object changed between 1 and 3, perhaps only a label of it: ask
		// again, at once the first time.
		if err := pause(ctx, contested); err != nil {
			return "", s.failure(ctx, op, answer{err: err})
		}
	}
}

// unread is what a failed read means inside a replace. Before any update it is
// what it is; a lease that vanished is a conflict. After one, a definite refusal
// to *read* must not pass for a definite refusal of the update.
func unread(err error, updated bool) error {
	var e *cas.Error
	if errors.As(err, &e) && updated && e.Class != cas.Conflict {
		e.Class = cas.Ambiguous
	}
	return err
}

// get reads the object once.
func (s *Store) get(ctx context.Context, op string) (*object, error) {
	a := s.send(ctx, http.MethodGet, nil)
	if !a.success() {
		return nil, s.failure(ctx, op, a)
	}
	o, err := parseObject(a.body, s.name)
	if err != nil {
		return nil, &cas.Error{Class: cas.Ambiguous, Op: op, Object: s.Describe(), Status: a.code, Err: err, Hint: hintStrange}
	}
	o.date = a.date
	return o, nil
}

// landed takes the version from the answer to a write that succeeded. An answer
// that does not show the write is none: the caller reads.
func (s *Store) landed(op string, a answer, r coordinator.Record) (cas.Version, error) {
	e := &cas.Error{Class: cas.Ambiguous, Op: op, Object: s.Describe(), Status: a.code}
	o, err := parseObject(a.body, s.name)
	switch {
	case err != nil:
		e.Err, e.Hint = err, hintStrange
		return "", e
	case r.WriteID != "" && (!o.ours() || o.record.WriteID != r.WriteID):
		e.Err, e.Hint = errAltered, hintAltered
		return "", e
	}
	return o.version(), nil
}

func (s *Store) conflict(op string, o *object) error {
	l := o.lease()
	return &cas.Error{Class: cas.Conflict, Op: op, Object: s.Describe(),
		Err: fmt.Errorf("the lease is now held by %q at epoch %d", l.Record.Holder, l.Record.Epoch)}
}

// pause waits before another round: not at all, then 10 ms doubling, jittered.
// It is there for a server that answers 409 whatever it is sent.
func pause(ctx context.Context, n int) error {
	if n == 0 {
		return ctx.Err()
	}
	d := min(5*time.Millisecond<<min(n, 10), maxPause)
	t := time.NewTimer(d/2 + rand.N(d/2))
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// call bounds f and gives its error a class.
func call[T any](ctx context.Context, s *Store, op string, f func(context.Context) (T, error)) (T, error) {
	var zero T
	if s.closed.Load() {
		return zero, s.failure(ctx, op, answer{err: errClosed})
	}
	ctx, stop := context.WithTimeout(ctx, s.timeout)
	defer stop()
	v, err := bounded.Call(ctx, f)
	if err == nil {
		return v, nil
	}
	var e *cas.Error
	if !errors.As(err, &e) {
		err = s.failure(ctx, op, answer{err: err})
	}
	return zero, err
}
