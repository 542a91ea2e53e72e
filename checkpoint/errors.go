package checkpoint

import (
	"errors"
	"fmt"

	"github.com/sf2loki/sf2loki-ha/cas"
)

// Errors of a Session that are about the call and not about the document. The
// session stays usable after ErrReserved, ErrNotText and ErrTooLarge.
var (
	// ErrReserved: the key belongs to the fence.
	ErrReserved = errors.New("reserved key")
	// ErrNotText: a key or value is not valid UTF-8 and could not be read back.
	ErrNotText = errors.New("not UTF-8")
	// ErrTooLarge: the document would exceed cas.MaxSize and could not be read
	// back.
	ErrTooLarge = errors.New("document too large")
	// ErrClosed: the session was closed.
	ErrClosed = errors.New("session closed")
	// ErrNotSealed: Join found a document that this term has not sealed.
	ErrNotSealed = errors.New("not sealed by this term")
)

// FencedError says that another term has sealed the document: ours is over,
// whatever the lease says. Recognise it with errors.As.
type FencedError struct {
	// Object is the document.
	Object string
	// Epoch, Term and Lease are the fence in the document. A new term needs an
	// epoch above Epoch.
	Epoch int64
	Term  string
	Lease string
	// OwnEpoch and OwnTerm are the pair that was refused.
	OwnEpoch int64
	OwnTerm  string
}

func (e *FencedError) Error() string {
	if e.Epoch == e.OwnEpoch {
		return fmt.Sprintf("fenced: %s is sealed by another term of epoch %d (%s, ours is %s)", e.Object, e.Epoch, orNone(e.Term), e.OwnTerm)
	}
	return fmt.Sprintf("fenced: %s is sealed by epoch %d, ours is %d", e.Object, e.Epoch, e.OwnEpoch)
}

// FencedEpoch returns the epoch in the document, the floor for the next term.
func (e *FencedError) FencedEpoch() int64 { return e.Epoch }

// LeaseError says that the document belongs to another lease. Epochs of two
// leases do not compare, so neither a higher nor a lower one decides anything.
type LeaseError struct {
	// Object is the document, Lease the identity it carries, Own the one that
	// was refused.
	Object, Lease, Own string
}

func (e *LeaseError) Error() string {
	return fmt.Sprintf("%s belongs to the lease %s, this is %s; if the old pair is gone for good, hand the document over with \"sf2loki-ha state adopt\"; else give this pair a document of its own",
		e.Object, orNone(e.Lease), orNone(e.Own))
}

// Unwrap gives the error a class: the document exists and is not ours, which a
// person has to decide and no retry repairs.
func (e *LeaseError) Unwrap() error { return cas.Corrupt }

// VanishedError says that a document that was there is gone. It is not
// recreated from memory: that would hide who deleted it, and a restored older
// copy may be on its way.
type VanishedError struct {
	// Object is the document.
	Object string
}

func (e *VanishedError) Error() string {
	return fmt.Sprintf("%s has been deleted while in use; restore it, or let the next term start from an empty document", e.Object)
}

func orNone(s string) string {
	if s == "" {
		return "(none)"
	}
	return s
}

const (
	hintDamaged = "it was left untouched: restore an earlier version of the object, or move it aside to start from an empty document"
	hintFence   = "it was left untouched: write a sound fence with \"sf2loki-ha state repair-fence\" while nothing runs, or restore an earlier version of the object"
	hintBack    = "it was left untouched: an older copy has been restored while a leader was at work; compare it with what was delivered before the next term seals it"
)

// corrupt builds the error of a document that cannot be used.
func corrupt(op, object, hint string, err error) error {
	return &cas.Error{Class: cas.Corrupt, Op: op, Object: object, Hint: hint, Err: err}
}
