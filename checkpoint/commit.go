package checkpoint

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"unicode/utf8"

	"github.com/sf2loki/sf2loki-ha/cas"
)

// batch is the changes of all calls that share one write; nil deletes a key.
type batch struct {
	changes map[string]*string
	// done is closed when err and abandoned are final.
	done chan struct{}
	err  error
	// abandoned: the call that led the batch ran out of time, the others may
	// still have some.
	abandoned bool
}

// apply puts changes into the batch that the next write takes along, and sees
// to it that the write happens: of all callers that wait, one leads.
func (s *Session) apply(ctx context.Context, op string, changes map[string]*string) error {
	for k := range changes {
		switch {
		case Reserved(k):
			return fmt.Errorf("%s: key %q: %w", op, k, ErrReserved)
		case !utf8.ValidString(k):
			return fmt.Errorf("%s: key %.80q: %w", op, k, ErrNotText)
		}
	}
	for len(changes) > 0 {
		b, err := s.join(changes)
		if err != nil {
			return fmt.Errorf("%s: %w", op, err)
		}
		select {
		case <-b.done:
		case s.turn <- struct{}{}:
			err := s.takeTurn(ctx, b)
			<-s.turn
			if err != nil {
				return fmt.Errorf("%s: %w", op, err)
			}
		case <-ctx.Done():
			return fmt.Errorf("%s: %w while waiting for another commit, the values may have been written", op, context.Cause(ctx))
		}
		if b.abandoned && ctx.Err() == nil {
			// Who led gave up; this call has time left and tries by itself. The
			// values are still the last this caller wants, it has been waiting.
			continue
		}
		if b.err != nil {
			return fmt.Errorf("%s: %w", op, b.err)
		}
		return nil
	}
	return nil
}

// join adds changes to the waiting batch.
func (s *Session) join(changes map[string]*string) (*batch, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended != nil {
		return nil, s.ended
	}
	if s.waiting == nil {
		s.waiting = &batch{changes: make(map[string]*string, len(changes)), done: make(chan struct{})}
	}
	maps.Copy(s.waiting.changes, changes)
	return s.waiting, nil
}

// takeTurn writes b unless somebody has. It returns an error only if b is left
// for the others.
func (s *Session) takeTurn(ctx context.Context, b *batch) error {
	select {
	case <-b.done:
		return nil
	default:
	}
	// Wait first and take the batch then: who comes meanwhile shares the write.
	if err := s.store.pace(ctx); err != nil {
		return fmt.Errorf("%w, the values may yet be written with the next commit", err)
	}
	s.mu.Lock()
	if s.waiting == b {
		s.waiting = nil
	}
	s.mu.Unlock()
	s.lead(ctx, b)
	return nil
}

// lead writes b and tells those who wait for it. The caller holds the turn.
func (s *Session) lead(ctx context.Context, b *batch) {
	b.err = s.write(ctx, b.changes)
	b.abandoned = b.err != nil && ctx.Err() != nil
	close(b.done)
}

// write brings changes into the document. The caller holds the turn.
func (s *Session) write(ctx context.Context, changes map[string]*string) error {
	s.mu.Lock()
	base, fresh := s.state, s.fresh
	s.mu.Unlock()
	sent := make(map[string]bool)
	r := s.store.rounds()
	for {
		if err := r.next(ctx); err != nil {
			return err
		}
		if err := s.store.pace(ctx); err != nil {
			return r.giveUp(err)
		}
		// 1. After a lost condition or a lost answer: look, do not guess.
		if !fresh {
			seen, err := s.store.load(ctx)
			if err := s.judge(base.fence, seen, err); err != nil {
				return err
			}
			if err != nil && r.retry(err) {
				continue
			}
			if err != nil {
				return err
			}
			s.adopt(seen)
			if sent[seen.fence.writeID] {
				s.store.settled(ctx, "commit", seen.fence)
				return nil
			}
			if seen.version != base.version {
				s.store.merged(ctx, seen.fence)
			}
			base, fresh = seen, true
		}
		// 2. Merge. Deleting what is not there is done.
		next, changed := merge(base.doc, changes)
		if !changed {
			return nil
		}
		d, err := s.store.draft(next, base.fence)
		if err != nil {
			return err
		}
		// 3. The term, before each attempt: leadership may have ended while the
		// last one was under way.
		if err := s.term.CheckFence(); err != nil {
			return r.giveUp(err)
		}
		// 4. Write on exactly that version.
		sent[d.fence.writeID] = true
		written, err := s.store.write(ctx, d, base.version)
		if err == nil {
			s.adopt(written)
			return nil
		}
		// 5. A definite refusal other than a lost condition leaves the version
		// good; everything else is a question, and if this call cannot answer it
		// the next one has to.
		class := cas.ClassOf(err)
		if class == cas.Conflict || !class.Definite() {
			fresh = false
			s.mu.Lock()
			s.fresh = false
			s.mu.Unlock()
		}
		r.open = r.open || !class.Definite()
		if !r.retry(err) {
			return err
		}
	}
}

// judge compares what a read brought with the pair of the session. It returns
// an error, and ends the session, if the term is over or the document is not to
// be trusted; other errors of the read are the caller's.
func (s *Session) judge(own Fence, seen state, err error) error {
	switch {
	case errors.Is(err, cas.NotFound):
		err = &VanishedError{Object: s.store.Describe()}
	case errors.Is(err, cas.Corrupt):
	case err != nil:
		return nil
	case seen.fence.Epoch == own.Epoch && seen.fence.Term == own.Term:
		return nil
	case seen.fence.Epoch < own.Epoch:
		err = corrupt("commit", s.store.Describe(), hintBack,
			fmt.Errorf("its epoch went back from %d to %d", own.Epoch, seen.fence.Epoch))
	default:
		err = fenced(s.store.Describe(), seen.fence, s.term)
	}
	s.end(err)
	return err
}

// adopt makes st what the session knows.
func (s *Session) adopt(st state) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.state, s.fresh = st, true
}

// merge returns a copy of doc with the changes, and whether there are any: a
// value that is there already counts, because only the store's acceptance
// proves that the term still stands. New keys go last, in their own order.
func merge(doc *Document, changes map[string]*string) (*Document, bool) {
	next := doc.Clone()
	changed := false
	for _, k := range slices.Sorted(maps.Keys(changes)) {
		if v := changes[k]; v != nil {
			next.Set(k, *v)
			changed = true
		} else if next.Delete(k) {
			changed = true
		}
	}
	return next, changed
}
