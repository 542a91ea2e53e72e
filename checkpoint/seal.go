package checkpoint

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/sf2loki/sf2loki-ha/cas"
)

// Term is a term of leadership: the pair (epoch, term id).
type Term interface {
	// Epoch is the fencing token, 1 to MaxEpoch.
	Epoch() int64
	// ID is random per acquisition.
	ID() string
	// CheckFence returns nil while the holder may still act. It is asked before
	// every attempt to write.
	CheckFence() error
}

// Seal claims the document for term and returns the session of that term. It
// always writes, even over its own pair: the new version is what kills the
// versions that others have loaded, so it is called before every start of the
// work.
//
// A seal wins over a lower epoch and over its own pair. Errors: [FencedError]
// for a higher epoch or an equal one of another term; [LeaseError] for a document
// of another lease; an error of class cas.Corrupt for a document that cannot be
// read; [VanishedError] if the document was deleted meanwhile; what
// term.CheckFence returned. A document that definitely does not exist is
// created. Lost answers and concurrent writes are retried until ctx ends.
func (s *Store) Seal(ctx context.Context, term Term) (*Session, error) {
	if err := checkTerm(term); err != nil {
		return nil, fmt.Errorf("seal: %w", err)
	}
	st, err := s.seal(ctx, term)
	if err != nil {
		return nil, fmt.Errorf("seal for epoch %d: %w", term.Epoch(), err)
	}
	return newSession(s, term, st), nil
}

func (s *Store) seal(ctx context.Context, term Term) (state, error) {
	sent := make(map[string]bool)
	existed := false
	r := s.rounds()
	for {
		if err := r.next(ctx); err != nil {
			return state{}, err
		}
		// 1. Read, and last of all: the seal is one conditional write on a state
		// read just before it, and nothing known from earlier is used.
		if err := s.pace(ctx); err != nil {
			return state{}, r.giveUp(err)
		}
		seen, err := s.load(ctx)
		absent := errors.Is(err, cas.NotFound)
		switch {
		case absent && existed:
			return state{}, &VanishedError{Object: s.Describe()}
		case absent:
			seen = state{doc: &Document{}}
		case err != nil && r.retry(err):
			continue
		case err != nil:
			return state{}, err
		}
		existed = !absent
		// 2. A write of this call whose answer was lost has landed.
		if sent[seen.fence.writeID] {
			s.settled(ctx, "seal", seen.fence)
			return seen, nil
		}
		// 3. Judge.
		next, err := s.judge(seen, term)
		if err != nil {
			return state{}, err
		}
		d, err := s.draft(seen.doc.Clone(), next)
		if err != nil {
			return state{}, err
		}
		// 4. Write on exactly what was judged, if the term still stands.
		if err := term.CheckFence(); err != nil {
			return state{}, r.giveUp(err)
		}
		sent[d.fence.writeID] = true
		written, err := s.write(ctx, d, seen.version)
		if err == nil {
			if absent {
				s.created(ctx, next)
			}
			return written, nil
		}
		// 5. Anything but a definite refusal is a question: read again.
		r.open = r.open || !cas.ClassOf(err).Definite()
		if !r.retry(err) {
			return state{}, err
		}
	}
}

// created tells that there was no document. With epoch 1 that is a first start;
// later it means that somebody has deleted the checkpoints.
func (s *Store) created(ctx context.Context, fence Fence) {
	level := slog.LevelInfo
	if fence.Epoch > 1 {
		level = slog.LevelWarn
	}
	s.log.LogAttrs(ctx, level, "checkpoint document did not exist and was created empty",
		slog.String("object", s.Describe()), slog.Int64("epoch", fence.Epoch))
}

// judge decides whether term may seal what was read and returns the fence to
// write. Every doubt is a refusal: a seal that wrongly wins loses records, one
// that wrongly fails costs time.
func (s *Store) judge(seen state, term Term) (Fence, error) {
	f := seen.fence
	next := Fence{Epoch: term.Epoch(), Term: term.ID(), Lease: s.lease, TTL: s.ttl, Found: true}
	switch {
	case f.Epoch == term.Epoch() && f.Term == term.ID():
		// Our own pair, from the supervisor of this term or from an earlier start
		// of the work. What it says about the lease stays.
		if f.Lease != "" {
			next.Lease = f.Lease
		}
		if next.TTL == 0 {
			next.TTL = f.TTL
		}
		return next, nil
	case f.Lease != "" && f.Lease != s.lease:
		return Fence{}, &LeaseError{Object: s.Describe(), Lease: f.Lease, Own: s.lease}
	case f.Epoch >= term.Epoch():
		return Fence{}, fenced(s.Describe(), f, term)
	}
	return next, nil
}

// Join returns a session on a document that this very term has sealed already:
// a child process joins the term of its supervisor. It reads once and writes
// nothing. Another pair is a [FencedError] if it is not lower, else the error
// matches ErrNotSealed, as it does for a document that does not exist.
func (s *Store) Join(ctx context.Context, term Term) (*Session, error) {
	if err := checkTerm(term); err != nil {
		return nil, fmt.Errorf("join: %w", err)
	}
	st, err := s.join(ctx, term)
	if err != nil {
		return nil, fmt.Errorf("join epoch %d: %w", term.Epoch(), err)
	}
	return newSession(s, term, st), nil
}

func (s *Store) join(ctx context.Context, term Term) (state, error) {
	r := s.rounds()
	for {
		if err := r.next(ctx); err != nil {
			return state{}, err
		}
		st, err := s.load(ctx)
		switch {
		case errors.Is(err, cas.NotFound):
			return state{}, fmt.Errorf("%s does not exist: %w", s.Describe(), ErrNotSealed)
		case err != nil && r.retry(err):
			continue
		case err != nil:
			return state{}, err
		case st.fence.Epoch == term.Epoch() && st.fence.Term == term.ID():
			return st, nil
		case st.fence.Epoch < term.Epoch():
			return state{}, fmt.Errorf("%s carries epoch %d: %w", s.Describe(), st.fence.Epoch, ErrNotSealed)
		}
		return state{}, fenced(s.Describe(), st.fence, term)
	}
}

func fenced(object string, f Fence, term Term) error {
	return &FencedError{Object: object, Epoch: f.Epoch, Term: f.Term, Lease: f.Lease, OwnEpoch: term.Epoch(), OwnTerm: term.ID()}
}

func checkTerm(term Term) error {
	switch epoch := term.Epoch(); {
	case epoch < 1 || epoch > MaxEpoch:
		return fmt.Errorf("epoch %d is outside 1 to %d", epoch, MaxEpoch)
	case term.ID() == "":
		return errors.New("the term has no id")
	}
	return nil
}
