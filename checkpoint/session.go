package checkpoint

import (
	"context"
	"fmt"
	"sync"
	"unicode/utf8"
)

// Session is the use of a document in one term. It is safe for concurrent use.
// A session that has been fenced, or whose document has vanished or turned out
// corrupt, stays so: every later call returns the same error.
type Session struct {
	store *Store
	term  Term
	// turn has one place: who holds it reads and writes the object.
	turn chan struct{}

	mu sync.Mutex
	// state is the document as the last answer showed it; fresh is false after
	// an answer that leaves open whether the store still has it.
	state state
	fresh bool
	// waiting is the batch that the next write takes along.
	waiting *batch
	// ended is set for good: fenced, vanished, corrupt or closed.
	ended error
}

func newSession(s *Store, term Term, st state) *Session {
	return &Session{store: s, term: term, turn: make(chan struct{}, 1), state: st, fresh: true}
}

// Get returns the value of key as of the seal and the commits of this session.
// It sends no request; in a session that has been fenced it returns what was
// known last.
func (s *Session) Get(key string) (string, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.state.doc.Get(key)
}

// Keys returns the user's keys in the order of the document.
func (s *Session) Keys() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	keys := make([]string, 0, s.state.doc.Len())
	for _, k := range s.state.doc.keys {
		if !Reserved(k) {
			keys = append(keys, k)
		}
	}
	return keys
}

// Commit stores values and returns once the store has accepted them under the
// pair of this session. No values, no request.
//
// Errors: [FencedError], [VanishedError], class cas.Corrupt: the term's work
// has to end. What term.CheckFence returned: nothing was sent after it. Any
// other error may be tried again; unless its class is definite, the values may
// have been stored.
func (s *Session) Commit(ctx context.Context, values map[string]string) error {
	changes := make(map[string]*string, len(values))
	for k, v := range values {
		if !utf8.ValidString(v) {
			return fmt.Errorf("commit: value of key %.80q: %w", k, ErrNotText)
		}
		changes[k] = &v
	}
	return s.apply(ctx, "commit", changes)
}

// Delete removes keys; the errors are those of Commit. If none of them is there
// it sends no write.
func (s *Session) Delete(ctx context.Context, keys ...string) error {
	changes := make(map[string]*string, len(keys))
	for _, k := range keys {
		changes[k] = nil
	}
	return s.apply(ctx, "delete", changes)
}

// Close waits for calls under way and refuses later ones with ErrClosed. It
// leaves the fence in the document, which outlives every stale leader. It
// returns an error only if ctx ends first; the session is closed even then.
func (s *Session) Close(ctx context.Context) error {
	s.end(ErrClosed)
	select {
	case s.turn <- struct{}{}:
	case <-ctx.Done():
		return fmt.Errorf("close session on %s: %w", s.store.Describe(), context.Cause(ctx))
	}
	defer func() { <-s.turn }()
	// Calls that waited for their turn are part of "under way".
	s.mu.Lock()
	b := s.waiting
	s.waiting = nil
	s.mu.Unlock()
	if b != nil {
		s.lead(ctx, b)
	}
	return nil
}

// end ends the session; the first reason stays.
func (s *Session) end(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended == nil {
		s.ended = err
	}
}
