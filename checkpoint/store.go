package checkpoint

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	mathrand "math/rand/v2"
	"sync"
	"time"

	"github.com/sf2loki/sf2loki-ha/cas"
)

// Store is one checkpoint document. It is safe for concurrent use and keeps no
// content: what a former term loaded cannot leak into the next.
type Store struct {
	reg         cas.Register
	lease       string
	ttl         time.Duration
	callTimeout time.Duration
	minInterval time.Duration
	attempts    int
	log         *slog.Logger
	observe     Observer
	clock       Clock
	jitter      func() float64
	newID       func() string

	mu        sync.Mutex
	lastWrite time.Time
}

// Observer is told about the unusual: functions that are nil are not called.
// They are called from the goroutine of the request and must return at once.
type Observer struct {
	// Ambiguous: a write got no definite answer.
	Ambiguous func()
	// Settled: a read showed that such a write had landed.
	Settled func()
	// Merged: a commit found the document changed under its own pair.
	Merged func()
}

// Option changes a Store.
type Option func(*Store)

// WithLease names the lease whose terms seal the document, and its ttl, which
// is stored so that an observer who finds the lease deleted still knows how
// long to wait. Default: no name and no ttl.
func WithLease(identity string, ttl time.Duration) Option {
	return func(s *Store) { s.lease, s.ttl = identity, ttl }
}

// WithMinWriteInterval keeps d between the end of one write and the start of
// the next one: 1 s on GCS, which answers faster writes of one object with 429.
// Default 0.
func WithMinWriteInterval(d time.Duration) Option {
	return func(s *Store) { s.minInterval = d }
}

// WithCallTimeout bounds one request. Default 10 s, long enough for a document
// of 1 MiB on a slow line. The context of a call bounds all its requests.
func WithCallTimeout(d time.Duration) Option {
	return func(s *Store) { s.callTimeout = d }
}

// WithMaxAttempts bounds the rounds of one call that meets lost answers or
// changed documents. Default 10, about 8 s of waiting.
func WithMaxAttempts(n int) Option {
	return func(s *Store) { s.attempts = n }
}

// WithLogger logs what a caller cannot see in a result: a settled write, a
// merge, a created document. Default: nothing.
func WithLogger(log *slog.Logger) Option {
	return func(s *Store) { s.log = log }
}

// WithObserver counts the same events.
func WithObserver(o Observer) Option {
	return func(s *Store) { s.observe = o }
}

// WithClock replaces the clock that paces writes and retries.
func WithClock(c Clock) Option { return func(s *Store) { s.clock = c } }

// WithRandom replaces the source of write ids and jitter, for simulators that
// replay. An id is never repeated, not by another process either: lost answers are
// settled by them. jitter is uniform in [0, 1).
func WithRandom(id func() string, jitter func() float64) Option {
	return func(s *Store) { s.newID, s.jitter = id, jitter }
}

// Open returns the document in reg. It sends no request. The register stays the
// caller's, who closes its bucket after the last session.
func Open(reg cas.Register, opts ...Option) *Store {
	s := &Store{reg: reg, callTimeout: 10 * time.Second, attempts: 10, log: slog.New(slog.DiscardHandler),
		clock: SystemClock{}, newID: rand.Text, jitter: mathrand.Float64}
	for _, opt := range opts {
		opt(s)
	}
	return s
}

// Describe names the document for people, without credentials.
func (s *Store) Describe() string { return s.reg.Describe() }

// Fence reads the fence, fresh and with one request: the epoch floor of an
// election. A document that definitely does not exist is a Fence with Found
// false and no error. After any error the floor is unknown, and who does not
// know it must not acquire.
func (s *Store) Fence(ctx context.Context) (Fence, error) {
	st, err := s.load(ctx)
	if errors.Is(err, cas.NotFound) {
		return Fence{}, nil
	}
	return st.fence, err
}

// Floor is Fence in the form that an election asks for: coordinator.WithFence
// takes a Store. The Fence type is not part of it, so that neither package
// depends on the other. A document of another lease is a [LeaseError]: a term
// could not seal it, so that acquiring would only be releasing again, for ever.
func (s *Store) Floor(ctx context.Context) (epoch int64, term string, ttl time.Duration, found bool, err error) {
	f, err := s.Fence(ctx)
	if err == nil && f.Lease != "" && f.Lease != s.lease {
		return 0, "", 0, false, &LeaseError{Object: s.Describe(), Lease: f.Lease, Own: s.lease}
	}
	return f.Epoch, f.Term, f.TTL, f.Found, err
}

// state is the document as one read or one write of ours left it. The document
// is not changed any more.
type state struct {
	doc     *Document
	fence   Fence
	version cas.Version
}

// load reads and checks the document.
func (s *Store) load(ctx context.Context) (state, error) {
	ctx, cancel := context.WithTimeout(ctx, s.callTimeout)
	defer cancel()
	value, err := s.reg.Load(ctx)
	if err != nil {
		return state{}, err
	}
	doc, err := ParseDocument(value.Data)
	if err != nil {
		return state{}, corrupt("load", s.reg.Describe(), hintDamaged, err)
	}
	fence, err := doc.Fence()
	if err != nil {
		return state{}, corrupt("load", s.reg.Describe(), hintFence, err)
	}
	return state{doc: doc, fence: fence, version: value.Version}, nil
}

// draft is a document ready to be written.
type draft struct {
	doc   *Document
	fence Fence
	data  []byte
}

// draft stamps fence, with a fresh write id, into doc. The id makes the bytes
// unique: on S3 equal bytes would have an equal version.
func (s *Store) draft(doc *Document, fence Fence) (draft, error) {
	fence.writeID = s.newID()
	doc.seal(fence)
	data := doc.Encode()
	if len(data) > cas.MaxSize {
		return draft{}, fmt.Errorf("%s: %d bytes, at most %d can be read back: %w", s.Describe(), len(data), cas.MaxSize, ErrTooLarge)
	}
	return draft{doc: doc, fence: fence, data: data}, nil
}

// write writes d on the condition that the version still is old, or that there
// is no object if old is empty.
func (s *Store) write(ctx context.Context, d draft, old cas.Version) (state, error) {
	ctx, cancel := context.WithTimeout(ctx, s.callTimeout)
	defer cancel()
	var version cas.Version
	var err error
	if old == "" {
		version, err = s.reg.Create(ctx, d.data)
	} else {
		version, err = s.reg.Replace(ctx, d.data, old)
	}
	if err == nil && version == "" {
		// Without a version the next condition would be "there is no object".
		err = &cas.Error{Class: cas.Ambiguous, Op: "write", Object: s.reg.Describe(), Err: errors.New("success without a version")}
	}
	// Counted from the end: the store's own clock for its limit started no later.
	s.mu.Lock()
	s.lastWrite = s.clock.Now()
	s.mu.Unlock()
	if err != nil {
		if !cas.ClassOf(err).Definite() {
			call(s.observe.Ambiguous)
		}
		return state{}, err
	}
	return state{doc: d.doc, fence: d.fence, version: version}, nil
}

// pace waits until the store accepts another write of this object.
func (s *Store) pace(ctx context.Context) error {
	for {
		s.mu.Lock()
		wait := s.lastWrite.Add(s.minInterval).Sub(s.clock.Now())
		s.mu.Unlock()
		if s.minInterval == 0 || wait <= 0 {
			return context.Cause(ctx)
		}
		if err := s.clock.Sleep(ctx, wait); err != nil {
			return err
		}
	}
}

// settled tells that a read showed a write of ours whose answer was lost.
func (s *Store) settled(ctx context.Context, op string, fence Fence) {
	call(s.observe.Settled)
	s.log.LogAttrs(ctx, slog.LevelWarn, "checkpoint write settled: it had landed, its answer was lost",
		slog.String("op", op), slog.String("object", s.reg.Describe()), slog.Int64("epoch", fence.Epoch))
}

// merged tells that somebody else wrote under the session's own pair.
func (s *Store) merged(ctx context.Context, fence Fence) {
	call(s.observe.Merged)
	s.log.LogAttrs(ctx, slog.LevelInfo, "checkpoint document changed under its own term, merging",
		slog.String("object", s.reg.Describe()), slog.Int64("epoch", fence.Epoch))
}

func call(f func()) {
	if f != nil {
		f()
	}
}
