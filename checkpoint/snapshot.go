package checkpoint

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"unicode/utf8"

	"github.com/sf2loki/sf2loki-ha/cas"
)

// Snapshot is the document as one read found it, for tools that act outside of
// any term. What is written on a snapshot is written on exactly the version that
// was read: whoever sealed or committed since makes the write a cas.Conflict.
type Snapshot struct {
	// Document is what was read, empty if there is no document. Do not change it;
	// [Store.Edit] hands out a copy.
	Document *Document
	// Fence is what the reserved keys say. With Damage it has what of them can
	// still be read, and Epoch is the highest epoch among it.
	Fence Fence
	// Found is false if the document definitely does not exist.
	Found bool
	// Damage says what is wrong with the reserved keys, or is nil. It is of class
	// cas.Corrupt. Only [Store.RepairFence] writes on such a snapshot.
	Damage error

	version cas.Version
}

// Snapshot reads the document. Lost answers are tried again. A document that
// cannot be read as one is an error of class cas.Corrupt; one of which only the
// reserved keys are damaged is not, see Snapshot.Damage.
func (s *Store) Snapshot(ctx context.Context) (Snapshot, error) {
	r := s.rounds()
	for {
		if err := r.next(ctx); err != nil {
			return Snapshot{}, err
		}
		value, err := s.value(ctx)
		switch {
		case errors.Is(err, cas.NotFound):
			return Snapshot{Document: &Document{}}, nil
		case err != nil && r.retry(err):
			continue
		case err != nil:
			return Snapshot{}, err
		}
		return s.inspect(value)
	}
}

// value is one bounded read.
func (s *Store) value(ctx context.Context) (cas.Value, error) {
	ctx, cancel := context.WithTimeout(ctx, s.callTimeout)
	defer cancel()
	return s.reg.Load(ctx)
}

// inspect makes a snapshot of what was read.
func (s *Store) inspect(value cas.Value) (Snapshot, error) {
	doc, err := ParseDocument(value.Data)
	if err != nil {
		// Perhaps only a reserved key is no string, as after an edit by hand.
		rest, fence, ok := salvage(value.Data)
		if !ok {
			return Snapshot{}, corrupt("load", s.reg.Describe(), hintDamaged, err)
		}
		return Snapshot{Document: rest, Fence: fence, Found: true, Damage: corrupt("load", s.reg.Describe(), hintFence, err), version: value.Version}, nil
	}
	snap := Snapshot{Document: doc, Found: true, version: value.Version}
	if snap.Fence, err = doc.Fence(); err != nil {
		snap.Fence = readable(doc)
		snap.Damage = corrupt("load", s.reg.Describe(), hintFence, err)
	}
	return snap, nil
}

// Edit lets change alter the user's keys of a copy of the document and writes the
// copy on the version of the snapshot. It reports whether anything was different;
// if not, nothing is sent. A document that did not exist is created.
//
// The fence stays as it is, with a fresh write id: a session of the sealing term
// loses its condition, reads, and merges its next commit onto what was written.
// So whoever edits has to know that no work is running, or its next commit brings
// back the values it holds.
//
// Errors: class cas.Conflict if the document changed since it was read, nothing
// was written then; ErrReserved, ErrNotText and ErrTooLarge, nothing was sent
// then; the Damage of the snapshot. Lost answers are settled by reading.
func (s *Store) Edit(ctx context.Context, on Snapshot, change func(*Document) error) (changed bool, err error) {
	next, changed, err := on.Edited(change)
	if !changed || err != nil {
		return false, err
	}
	return true, s.put(ctx, "edit", on.version, func() []byte {
		if _, sealed := next.Get(FenceKey); sealed {
			f := on.Fence
			f.writeID = s.newID()
			next.seal(f)
		}
		return next.Encode()
	})
}

// Edited is what [Store.Edit] would write, and whether anything is different. It
// sends nothing.
func (snap Snapshot) Edited(change func(*Document) error) (next *Document, changed bool, err error) {
	if snap.Damage != nil {
		return nil, false, snap.Damage
	}
	next = snap.Document.Clone()
	if err := change(next); err != nil {
		return nil, false, err
	}
	for _, key := range []string{EpochKey, FenceKey} {
		was, had := snap.Document.Get(key)
		if is, has := next.Get(key); is != was || has != had {
			return nil, false, fmt.Errorf("key %q: %w", key, ErrReserved)
		}
	}
	for _, key := range next.keys {
		if !utf8.ValidString(key) {
			return nil, false, fmt.Errorf("key %.80q: %w", key, ErrNotText)
		}
		if !utf8.ValidString(next.values[key]) {
			return nil, false, fmt.Errorf("value of key %.80q: %w", key, ErrNotText)
		}
	}
	data := next.Encode()
	if len(data) > cas.MaxSize {
		return nil, false, tooLarge(len(data))
	}
	return next, !bytes.Equal(data, snap.Document.Encode()), nil
}

func tooLarge(size int) error {
	return fmt.Errorf("%w: %d bytes, at most %d can be read back", ErrTooLarge, size, cas.MaxSize)
}

// put writes what encode returns on exactly the version on, or creates the
// object if on is empty. encode is called for each attempt.
func (s *Store) put(ctx context.Context, op string, on cas.Version, encode func() []byte) error {
	var sent [][]byte
	r := s.rounds()
	for {
		if err := r.next(ctx); err != nil {
			return err
		}
		// 1. After an attempt without an answer: look, do not guess.
		if r.open {
			landed, err := s.landed(ctx, op, on, sent)
			switch {
			case landed:
				return nil
			case errors.Is(err, errMoved):
				return err
			case err != nil && r.retry(err):
				continue
			case err != nil:
				return r.giveUp(err)
			}
		}
		// 2. The version is the one that was read, as far as anybody knows.
		if err := s.pace(ctx); err != nil {
			return r.giveUp(err)
		}
		data := encode()
		if len(data) > cas.MaxSize {
			return fmt.Errorf("%s: %w", s.Describe(), tooLarge(len(data)))
		}
		sent = append(sent, data)
		_, err := s.write(ctx, draft{data: data}, on)
		if err == nil {
			return nil
		}
		// 3. A lost condition is definite only while every attempt was answered.
		class := cas.ClassOf(err)
		if class == cas.Conflict && !r.open {
			return err
		}
		r.open = r.open || !class.Definite()
		if !r.retry(err) {
			return r.giveUp(err)
		}
	}
}

// landed reads what became of writes without an answer. No error and false mean
// that the object still is as it was before them.
func (s *Store) landed(ctx context.Context, op string, on cas.Version, sent [][]byte) (bool, error) {
	value, err := s.value(ctx)
	absent := errors.Is(err, cas.NotFound)
	if err != nil && !absent {
		return false, err
	}
	for _, data := range sent {
		if !absent && bytes.Equal(value.Data, data) {
			call(s.observe.Settled)
			return true, nil
		}
	}
	if !absent && value.Version == on || absent && on == "" {
		return false, nil
	}
	return false, &cas.Error{Class: cas.Ambiguous, Op: op, Object: s.Describe(), Err: errMoved,
		Hint: "look whether the change is there, and make it again if it is not"}
}

// errMoved: what became of a write cannot be found out any more.
var errMoved = errors.New("an attempt got no answer, and the document has been changed by somebody else since")
