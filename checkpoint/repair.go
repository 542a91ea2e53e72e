package checkpoint

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
)

// RepairFence writes a fence that can be read, of that epoch and of a term that
// nobody holds, onto a document whose reserved keys are damaged, or raises the
// epoch of one that is sound. Every session is fenced by it, and the next term of
// the election exceeds epoch.
//
// It never lowers an epoch: one below what can still be read is refused. Whether
// epoch is at least that of the lease is for the caller to know, who can read it.
// A lease identity and a ttl that can still be read stay. A document that does not
// exist has no fence to repair. Other errors are those of [Store.Edit].
func (s *Store) RepairFence(ctx context.Context, on Snapshot, epoch int64) (Fence, error) {
	switch {
	case !on.Found:
		return Fence{}, fmt.Errorf("%s does not exist: there is no fence to repair", s.Describe())
	case epoch < 1 || epoch > MaxEpoch:
		return Fence{}, fmt.Errorf("epoch %d is outside 1 to %d", epoch, MaxEpoch)
	case epoch < on.Fence.Epoch:
		return Fence{}, fmt.Errorf("epoch %d is lower than %d, which %s carries: an epoch never goes back", epoch, on.Fence.Epoch, s.Describe())
	}
	f := Fence{Epoch: epoch, Term: "repair-" + rand.Text(), Lease: on.Fence.Lease, TTL: max(on.Fence.TTL, s.ttl), Found: true}
	if f.Lease == "" {
		f.Lease = s.lease
	}
	return f, s.stamp(ctx, "repair", on, f)
}

// Adopt hands a document that another lease has sealed over to the lease of this
// store. The epoch stays, so that the next term exceeds it; the term is one that
// nobody holds, so that a session of the old lease that is left somewhere is
// fenced. Errors are those of [Store.Edit].
func (s *Store) Adopt(ctx context.Context, on Snapshot) (Fence, error) {
	if on.Damage != nil {
		return Fence{}, on.Damage
	}
	f := Fence{Epoch: on.Fence.Epoch, Term: "adopt-" + rand.Text(), Lease: s.lease, TTL: max(on.Fence.TTL, s.ttl), Found: true}
	return f, s.stamp(ctx, "adopt", on, f)
}

// stamp writes the document of a snapshot under another fence.
func (s *Store) stamp(ctx context.Context, op string, on Snapshot, f Fence) error {
	next := on.Document.Clone()
	return s.put(ctx, op, on.version, func() []byte {
		f.writeID = s.newID()
		next.seal(f)
		return next.Encode()
	})
}

// readable is what can still be read of damaged reserved keys.
func readable(d *Document) Fence {
	f := Fence{Found: true}
	if text, ok := d.Get(EpochKey); ok {
		f.Epoch, _ = parseEpoch(text)
	}
	if text, ok := d.Get(FenceKey); ok {
		f.learn(text)
	}
	return f
}

// learn takes the lease and its ttl from a text that may be damaged otherwise.
func (f *Fence) learn(text string) {
	var w fenceText
	if json.Unmarshal([]byte(text), &w) == nil {
		f.Lease, f.TTL = w.Lease, w.ttl()
	}
}

// salvage reads a document of which a reserved key is not a string or occurs
// twice. It returns the document without them, and what they say. Anything else
// that is wrong is not repaired by guessing.
func salvage(data []byte) (*Document, Fence, bool) {
	fence := Fence{Found: true}
	if !json.Valid(data) {
		return nil, fence, false
	}
	dec := json.NewDecoder(bytes.NewReader(data))
	if open, err := dec.Token(); err != nil || open != json.Delim('{') {
		return nil, fence, false
	}
	rest := []byte{'{'}
	for dec.More() {
		from := dec.InputOffset()
		key, err := dec.Token()
		if err != nil {
			return nil, fence, false
		}
		var value json.RawMessage
		if err := dec.Decode(&value); err != nil {
			return nil, fence, false
		}
		if name, ok := key.(string); ok && Reserved(name) {
			fence.take(name, value)
			continue
		}
		// The source text as it stands, so that what is wrong with it is found.
		if len(rest) > 1 {
			rest = append(rest, ',')
		}
		rest = append(rest, bytes.TrimLeft(data[from:dec.InputOffset()], ", \t\r\n")...)
	}
	doc, err := ParseDocument(append(rest, '}'))
	return doc, fence, err == nil
}

// take reads one reserved key in whatever form it has.
func (f *Fence) take(key string, value json.RawMessage) {
	text := string(value)
	if value[0] == '"' && json.Unmarshal(value, &text) != nil {
		return
	}
	if key == FenceKey {
		f.learn(text)
		return
	}
	if epoch, err := parseEpoch(text); err == nil {
		f.Epoch = max(f.Epoch, epoch)
	}
}
