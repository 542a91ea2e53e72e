package checkpoint

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"
)

const (
	// EpochKey is the reserved key of the epoch that sealed the document, in
	// decimal. sf2loki's file store uses the same key.
	EpochKey = "__fence_epoch__"
	// FenceKey is the reserved key of the rest of the fence, a JSON text.
	FenceKey = "__fence__"
	// MaxEpoch is the largest epoch, 2^53-1. Beyond it a document is corrupt.
	MaxEpoch = int64(1)<<53 - 1
)

// maxTTL caps the ttl read from a document: a damaged one must not keep a pair
// leaderless for hours.
const maxTTL = 10 * time.Minute

// Reserved reports whether key belongs to the fence. Sessions refuse to write
// such keys.
func Reserved(key string) bool { return key == EpochKey || key == FenceKey }

// Fence says which term sealed a document.
type Fence struct {
	// Epoch is the epoch of the last seal; 0 in a document never sealed.
	Epoch int64
	// Term is the term id of the last seal, or "" where sf2loki's own file store
	// wrote the epoch, which knows no term ids.
	Term string
	// Lease is the identity of the lease under which the term was held, or "".
	Lease string
	// TTL is the ttl of that lease, at most 10 minutes; 0 if unknown. A lease
	// that has been deleted counts as held for at least this long.
	TTL time.Duration
	// Found is false if the document definitely does not exist; everything else
	// is zero then.
	Found bool

	writeID string
}

// fenceText is the JSON form of FenceKey.
type fenceText struct {
	Term    string `json:"term"`
	Lease   string `json:"lease"`
	TTL     int64  `json:"ttl_ms"`
	WriteID string `json:"write_id"`
}

// Fence reads the reserved keys. An error means that they are damaged. It is
// never read as "not sealed": that would let a lower epoch in.
func (d *Document) Fence() (Fence, error) {
	f := Fence{Found: true}
	epoch, sealed := d.Get(EpochKey)
	text, named := d.Get(FenceKey)
	switch {
	case !sealed && !named:
		return f, nil
	case !sealed:
		return Fence{}, fmt.Errorf("key %q is there and %q is missing", FenceKey, EpochKey)
	}
	var err error
	if f.Epoch, err = parseEpoch(epoch); err != nil {
		return Fence{}, fmt.Errorf("key %q: %w", EpochKey, err)
	}
	if !named {
		return f, nil
	}
	var w fenceText
	if err := json.Unmarshal([]byte(text), &w); err != nil {
		return Fence{}, fmt.Errorf("key %q: %w", FenceKey, err)
	}
	if w.Term == "" {
		return Fence{}, fmt.Errorf("key %q: no term id", FenceKey)
	}
	f.Term, f.Lease, f.TTL, f.writeID = w.Term, w.Lease, w.ttl(), w.WriteID
	return f, nil
}

func (w fenceText) ttl() time.Duration {
	switch {
	case w.TTL > maxTTL.Milliseconds():
		return maxTTL
	case w.TTL > 0:
		return time.Duration(w.TTL) * time.Millisecond
	}
	return 0
}

// seal stamps the fence into the document.
func (d *Document) seal(f Fence) {
	var text bytes.Buffer
	enc := json.NewEncoder(&text)
	enc.SetEscapeHTML(false)
	// Strings and a number: encoding cannot fail.
	_ = enc.Encode(fenceText{Term: f.Term, Lease: f.Lease, TTL: f.TTL.Milliseconds(), WriteID: f.writeID})
	d.Set(EpochKey, strconv.FormatInt(f.Epoch, 10))
	d.Set(FenceKey, string(bytes.TrimSpace(text.Bytes())))
}

// parseEpoch accepts decimal digits only: a sign, a space or a fraction means
// that somebody edited the document by hand, and a guess could be too low.
func parseEpoch(text string) (int64, error) {
	for i := range len(text) {
		if text[i] < '0' || text[i] > '9' {
			return 0, fmt.Errorf("%.40q is not a decimal number", text)
		}
	}
	if text == "" {
		return 0, errors.New("is empty")
	}
	epoch, err := strconv.ParseInt(text, 10, 64)
	if err != nil || epoch > MaxEpoch {
		return 0, fmt.Errorf("%.40q is larger than %d", text, MaxEpoch)
	}
	return epoch, nil
}
