package coordinator

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"
	"unicode/utf8"
)

// MaxHold is the longest hold. A longer one counts as this long: a hold that
// was forgotten must not keep a pair without a leader for ever.
const MaxHold = 7 * 24 * time.Hour

const (
	// maxRequest is the largest request document read; a full one is below 1 KiB.
	maxRequest = 64 << 10
	// maxPart is the largest part obeyed: what is obeyed goes into the record.
	maxPart = 4 << 10
)

// Request is the request document: what people, and a replica of a new
// revision, ask of the replicas of a lease. Each part stands by itself; whoever
// changes one leaves the others as they are. The zero value asks for nothing.
//
// Read the parts, and change them with WithHold, WithStepDown and WithHandover:
// fields that this code does not know survive, in every part it does not touch.
type Request struct {
	// Hold, if not nil, asks that nobody leads.
	Hold *Hold
	// StepDown, if not nil, asks one term to end.
	StepDown *StepDown
	// Handover, if not nil, asks one term to end in favour of one replica.
	Handover *Handover

	fields map[string]json.RawMessage
}

// Hold asks the leader to release, and everybody not to claim, until the hold is
// taken out of the document or its time is over.
type Hold struct {
	ID     string
	Reason string
	By     string // who asked, for people
	// For is how long the hold lasts, counted from the instant at which the
	// document was written: more than 0, at most MaxHold.
	For time.Duration
}

// Target names what a step-down is about: one term, or every term of one
// process. Nobody else ever obeys it.
type Target struct {
	Epoch       int64  `json:"epoch,omitempty"`
	Term        string `json:"term,omitempty"`
	Incarnation string `json:"incarnation,omitempty"`
}

// StepDown asks a leader to hand over, once.
type StepDown struct {
	ID     string
	Reason string
	By     string // who asked, for people
	Target Target
}

// Handover asks a leader of an old revision to hand over, once, to the replica
// that wrote it.
type Handover struct {
	ID string
	// Incarnation and Revision are those of the replica that is ready.
	Incarnation string
	Revision    string
	// Target is the term that is asked to end.
	Target Target
}

// The names of the parts in the document.
const (
	partHold     = "hold"
	partStepDown = "step_down"
	partHandover = "handover"
)

// wirePart is the JSON form of every part; each uses the fields it has.
type wirePart struct {
	ID          string  `json:"id"`
	Reason      string  `json:"reason,omitempty"`
	By          string  `json:"by,omitempty"`
	ForMillis   int64   `json:"for_ms,omitempty"`
	Incarnation string  `json:"incarnation,omitempty"`
	Revision    string  `json:"revision,omitempty"`
	Target      *Target `json:"target,omitempty"`
}

// ParseRequest decodes a request document. An error says what in it asks for
// nothing because it cannot be understood: the whole document, or single parts,
// while the Request has those that can. Ignoring what is damaged is the safe
// side: a document that people wrote by hand must not stop a pair.
func ParseRequest(data []byte) (Request, error) {
	switch {
	case len(data) > maxRequest:
		return Request{}, fmt.Errorf("%d bytes, more than the %d a request document can have", len(data), maxRequest)
	case !utf8.Valid(data):
		return Request{}, errors.New("not UTF-8")
	}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(data, &fields); err != nil {
		return Request{}, fmt.Errorf("not a JSON object: %w", err)
	}
	if fields == nil {
		return Request{}, errors.New("not a JSON object: null")
	}
	r := Request{fields: fields}
	var problems []error
	for _, part := range []struct {
		name string
		take func(wirePart) error
	}{{partHold, r.takeHold}, {partStepDown, r.takeStepDown}, {partHandover, r.takeHandover}} {
		raw, ok := fields[part.name]
		if !ok || string(raw) == "null" {
			continue
		}
		var w wirePart
		err := readable(json.Unmarshal(raw, &w))
		if len(raw) > maxPart {
			err = fmt.Errorf("has %d bytes, more than %d", len(raw), maxPart)
		}
		if err == nil && w.ID == "" {
			err = errors.New("has no id")
		}
		if err == nil {
			err = part.take(w)
		}
		if err != nil {
			problems = append(problems, fmt.Errorf("field %q: %w", part.name, err))
		}
	}
	return r, errors.Join(problems...)
}

// readable words the error of a decoder for the person who wrote the document.
func readable(err error) error {
	var kind *json.UnmarshalTypeError
	if errors.As(err, &kind) {
		want := map[string]string{"int64": "a number", "string": "a text"}[kind.Type.String()]
		if want == "" {
			want = "an object"
		}
		return fmt.Errorf("%s must be %s, not a %s", cmp.Or(kind.Field, "it"), want, kind.Value)
	}
	return err
}

func (r *Request) takeHold(w wirePart) error {
	if w.ForMillis <= 0 {
		return fmt.Errorf("for_ms is %d; give the length of the hold in milliseconds", w.ForMillis)
	}
	h := Hold{ID: w.ID, Reason: w.Reason, By: w.By, For: MaxHold}
	if w.ForMillis < MaxHold.Milliseconds() {
		h.For = time.Duration(w.ForMillis) * time.Millisecond
	}
	r.Hold = &h
	return nil
}

func (r *Request) takeStepDown(w wirePart) error {
	t := w.target()
	if t.Incarnation == "" && (t.Term == "" || t.Epoch == 0) {
		return errors.New("names no target; give target.epoch and target.term, or target.incarnation")
	}
	r.StepDown = &StepDown{ID: w.ID, Reason: w.Reason, By: w.By, Target: t}
	return nil
}

func (r *Request) takeHandover(w wirePart) error {
	t := w.target()
	if t.Term == "" || t.Epoch == 0 || w.Incarnation == "" || w.Revision == "" {
		return errors.New("needs incarnation, revision, target.epoch and target.term")
	}
	r.Handover = &Handover{ID: w.ID, Incarnation: w.Incarnation, Revision: w.Revision, Target: t}
	return nil
}

func (w wirePart) target() Target {
	if w.Target == nil {
		return Target{}
	}
	return *w.Target
}

// WithHold returns the request with another hold; nil takes the hold out.
func (r Request) WithHold(h *Hold) Request {
	r.Hold = h
	if h == nil {
		return r.with(partHold, nil)
	}
	return r.with(partHold, &wirePart{ID: h.ID, Reason: h.Reason, By: h.By, ForMillis: h.For.Milliseconds()})
}

// WithStepDown returns the request with another step-down; nil takes it out.
func (r Request) WithStepDown(s *StepDown) Request {
	r.StepDown = s
	if s == nil {
		return r.with(partStepDown, nil)
	}
	return r.with(partStepDown, &wirePart{ID: s.ID, Reason: s.Reason, By: s.By, Target: &s.Target})
}

// WithHandover returns the request with another handover; nil takes it out.
func (r Request) WithHandover(h *Handover) Request {
	r.Handover = h
	if h == nil {
		return r.with(partHandover, nil)
	}
	return r.with(partHandover, &wirePart{ID: h.ID, Incarnation: h.Incarnation, Revision: h.Revision, Target: &h.Target})
}

// Aged returns the request for a document that is written now on top of one
// that was written that long ago: the time of a hold counts from the writing,
// so what has passed of it is taken off. A hold that is over goes.
func (r Request) Aged(age time.Duration) Request {
	if r.Hold == nil {
		return r
	}
	h := *r.Hold
	if h.For -= age; h.For <= 0 {
		return r.WithHold(nil)
	}
	return r.WithHold(&h)
}

func (r Request) with(name string, part *wirePart) Request {
	r.fields = maps.Clone(r.fields)
	if part == nil {
		delete(r.fields, name)
		return r
	}
	if r.fields == nil {
		r.fields = map[string]json.RawMessage{}
	}
	// A struct of strings and numbers always encodes.
	r.fields[name], _ = json.Marshal(part)
	return r
}

// Marshal encodes the document. It is never empty: a request that asks for
// nothing is an object without parts. The last field is a digest of the rest, by
// which [WrittenByHand] tells what a program wrote from what a person did.
func (r Request) Marshal() []byte {
	b := bytes.NewBufferString(`{"version":1`)
	for _, name := range slices.Sorted(maps.Keys(r.fields)) {
		if name == "version" || name == digestField {
			continue
		}
		key, _ := json.Marshal(name) // a string always encodes
		b.WriteByte(',')
		b.Write(key)
		b.WriteByte(':')
		b.Write(r.fields[name])
	}
	return append(b.Bytes(), digest(b.Bytes())...)
}

const digestField = "digest"

// digest is the end of a document that begins like this.
func digest(head []byte) string {
	sum := sha256.Sum256(head)
	return `,"` + digestField + `":"` + hex.EncodeToString(sum[:8]) + `"}`
}

// WrittenByHand reports whether a document was written, or changed, by something
// other than Marshal. In a directory the file that people see is a copy for them;
// what they put there instead counts.
func WrittenByHand(data []byte) bool {
	end := len(digest(nil))
	return len(data) < end || string(data[len(data)-end:]) != digest(data[:len(data)-end])
}

// names reports whether the target is this term of this process.
func (t Target) names(epoch int64, term, incarnation string) bool {
	if t.Incarnation != "" && t.Incarnation != incarnation {
		return false
	}
	if t.Term != "" || t.Epoch != 0 {
		return t.Term == term && t.Epoch == epoch
	}
	return t.Incarnation != ""
}
