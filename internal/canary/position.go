package canary

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/sf2loki/sf2loki-ha/checkpoint"
)

// Keys in the checkpoint document.
const (
	KeyPosition = "canary:position"
	KeyIntent   = "canary:intent"
)

// position says that the records 1 to N have been delivered, and by whom the
// last of them.
type position struct {
	N        int64     `json:"n"`
	At       time.Time `json:"at"`
	Epoch    int64     `json:"epoch"`
	Term     string    `json:"term"`
	Identity string    `json:"identity"`
}

// intent says that of the records From to To some may have been written, and
// none above To.
type intent struct {
	From int64 `json:"from"`
	To   int64 `json:"to"`
}

// progress is both, as they are stored together; nil is absent.
type progress struct {
	position *position
	intent   *intent
}

// values encodes p for a commit.
func (p progress) values() (map[string]string, error) {
	pos, err := json.Marshal(p.position)
	if err != nil {
		return nil, err
	}
	in, err := json.Marshal(p.intent)
	if err != nil {
		return nil, err
	}
	return map[string]string{KeyPosition: string(pos), KeyIntent: string(in)}, nil
}

// readProgress decodes what a predecessor left. One damaged key is bridged by
// the other; with both damaged there is nothing to start from, and a guess would
// be a gap or a flood.
func readProgress(get func(string) (string, bool)) (progress, error) {
	var p progress
	posErr := decode(get, KeyPosition, &p.position)
	inErr := decode(get, KeyIntent, &p.intent)
	switch {
	case posErr == nil && p.position != nil && p.position.N < 0:
		posErr = fmt.Errorf("key %s: record %d", KeyPosition, p.position.N)
	case inErr == nil && p.intent != nil && (p.intent.From < 1 || p.intent.To < p.intent.From-1):
		inErr = fmt.Errorf("key %s: records %d to %d", KeyIntent, p.intent.From, p.intent.To)
	}
	if posErr != nil {
		p.position = nil
	}
	if inErr != nil {
		p.intent = nil
	}
	if p.position == nil && p.intent == nil {
		if posErr == nil {
			posErr = inErr
		}
		if posErr != nil {
			return progress{}, fmt.Errorf("%w; correct it, or delete %s and %s to begin at record 1", posErr, KeyPosition, KeyIntent)
		}
	}
	return p, nil
}

func decode[T any](get func(string) (string, bool), key string, into **T) error {
	text, ok := get(key)
	if !ok {
		return nil
	}
	var v T
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		return fmt.Errorf("key %s: %w", key, err)
	}
	*into = &v
	return nil
}

// Verdict says what is known about the records around the start.
type Verdict string

// The verdicts; the package comment defines them.
const (
	First      Verdict = "first"
	Clean      Verdict = "clean"
	Duplicates Verdict = "duplicates"
	Gap        Verdict = "gap"
	Unknown    Verdict = "unknown"
	Untracked  Verdict = "untracked"
)

// Report is what a start found.
type Report struct {
	Verdict Verdict `json:"verdict"`
	// First is the number of the first record of this run.
	First int64 `json:"first"`
	// Position is the last record known to be delivered, Intent the last that
	// may have been written.
	Position int64 `json:"position"`
	Intent   int64 `json:"intent"`
	// RepeatedAtLeast and RepeatedAtMost count records that occur twice;
	// MissingAtLeast and MissingAtMost records that occur never.
	RepeatedAtLeast int64 `json:"repeated_at_least"`
	RepeatedAtMost  int64 `json:"repeated_at_most"`
	MissingAtLeast  int64 `json:"missing_at_least"`
	MissingAtMost   int64 `json:"missing_at_most"`
	// Predecessor is who committed the position; nil if nobody did.
	Predecessor *Predecessor `json:"predecessor,omitempty"`
}

// Predecessor is the writer of a position. SameTerm: it was an earlier process
// of this very term.
type Predecessor struct {
	At       time.Time `json:"at"`
	Epoch    int64     `json:"epoch"`
	Term     string    `json:"term"`
	Identity string    `json:"identity"`
	SameTerm bool      `json:"same_term"`
}

// report judges what a predecessor left.
func (p progress) report(term checkpoint.Term) Report {
	if p.position == nil && p.intent == nil {
		return Report{Verdict: First, First: 1}
	}
	var r Report
	if p.position != nil {
		pos := *p.position
		r.Position = pos.N
		r.Predecessor = &Predecessor{At: pos.At, Epoch: pos.Epoch, Term: pos.Term, Identity: pos.Identity,
			SameTerm: term != nil && pos.Epoch == term.Epoch() && pos.Term == term.ID()}
	} else {
		// Both were written together: what came before the intent was delivered.
		r.Position = p.intent.From - 1
	}
	r.First, r.Intent = r.Position+1, r.Position
	if p.intent == nil {
		r.Verdict = Unknown
		return r
	}
	r.Intent = p.intent.To
	switch delivered := p.intent.From - 1; {
	case r.Position > delivered:
		// Only a person moves a position beyond the one that its intent was
		// written with. What lies between may have been written or not; what lies
		// beyond the intent was not.
		r.Verdict = Gap
		r.MissingAtLeast = max(0, r.Position-p.intent.To)
		r.MissingAtMost = r.Position - delivered
		r.RepeatedAtMost = max(0, p.intent.To-r.Position)
	case p.intent.To > r.Position:
		r.Verdict = Duplicates
		r.RepeatedAtLeast = delivered - r.Position
		r.RepeatedAtMost = p.intent.To - r.Position
	default:
		r.Verdict = Clean
	}
	return r
}
