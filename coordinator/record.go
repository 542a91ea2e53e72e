package coordinator

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"sort"
	"strings"
	"time"
	"unicode/utf8"
)

// MaxEpoch is the largest epoch: 2^53-1, the largest integer every JSON reader
// keeps exact. A record beyond it is corrupt.
const MaxEpoch = int64(1)<<53 - 1

// RecordVersion is the version of the record's format that this code writes.
const RecordVersion = 1

const (
	// maxRecord is the largest record read: a full one is about 4 KiB.
	maxRecord = 256 << 10
	// maxHistory is how many past terms a record keeps.
	maxHistory = 16
)

// State says whether a record claims leadership.
type State string

// The states. A state this code does not know counts as held: waiting is the
// safe side.
const (
	Held     State = "held"
	Released State = "released"
)

// Record is the lease document. Holder, ExpiresAt and Epoch are what sf2loki's
// own file lease has; the rest is ours. Unknown fields survive a rewrite.
type Record struct {
	// Holder is the identity of the replica, for people.
	Holder string
	// ExpiresAt is the wall-clock end of the lease, for people. No decision
	// reads it.
	ExpiresAt time.Time
	// Epoch is the fencing token. It never goes back.
	Epoch int64

	// Version is the format of this record; MinVersion, if not 0, the oldest
	// reader that may take this lease over.
	Version, MinVersion int
	// Lease is the name of the lease: a copied object is noticed by it.
	Lease string
	// Incarnation is random per process.
	Incarnation string
	// Term is random per acquisition; (Epoch, Term) is the pair that seals the
	// checkpoint document.
	Term string
	// WriteID is random per write attempt, so that no two writes have equal
	// bytes and a lost answer can be settled by reading.
	WriteID string
	// TTL and Renew are the holder's own durations, stored in milliseconds.
	TTL, Renew time.Duration
	// State is held or released.
	State State
	// Stopping announces a planned stop: standbys read faster.
	Stopping bool
	// AcquiredAt and RenewedAt are wall-clock times of the holder, for people.
	AcquiredAt, RenewedAt time.Time
	// Platform says where the holder runs, for people.
	Platform map[string]string
	// Revision identifies the holder's binary and configuration.
	Revision string
	// Work is the crash back-off that spans the replicas.
	Work Work
	// Obeyed is the id of the request that was obeyed last, so that whoever made
	// it can see that.
	Obeyed string
	// Successor is, in a tombstone, the incarnation this lease is handed over to:
	// others leave it the first try. Else "".
	Successor string
	// History is the last 16 terms, oldest first.
	History []PastTerm

	// extra keeps the fields of newer writers.
	extra map[string]json.RawMessage
}

// PastTerm is one entry of a record's history. Times are the holder's wall
// clock, for people.
type PastTerm struct {
	Epoch    int64     `json:"epoch"`
	Holder   string    `json:"holder"`
	Revision string    `json:"revision,omitempty"`
	From     time.Time `json:"from"`
	To       time.Time `json:"to"`
	Reason   string    `json:"reason"`
}

// wire is the JSON form; pointers tell "absent" from "zero".
type wire struct {
	Holder      string            `json:"holder"`
	ExpiresAt   string            `json:"expires_at"`
	Epoch       int64             `json:"epoch"`
	Version     int               `json:"version,omitempty"`
	MinVersion  int               `json:"min_version,omitempty"`
	Lease       string            `json:"lease,omitempty"`
	Incarnation string            `json:"incarnation,omitempty"`
	Term        string            `json:"term,omitempty"`
	WriteID     string            `json:"write_id,omitempty"`
	TTLMillis   int64             `json:"ttl_ms,omitempty"`
	RenewMillis int64             `json:"renew_ms,omitempty"`
	State       State             `json:"state,omitempty"`
	Stopping    bool              `json:"stopping,omitempty"`
	AcquiredAt  string            `json:"acquired_at,omitempty"`
	RenewedAt   string            `json:"renewed_at,omitempty"`
	Platform    map[string]string `json:"platform,omitempty"`
	Revision    string            `json:"revision,omitempty"`
	Work        *wireWork         `json:"work,omitempty"`
	Obeyed      string            `json:"obeyed,omitempty"`
	Successor   string            `json:"successor,omitempty"`
	History     []PastTerm        `json:"history,omitempty"`
}

var wireFields = []string{"holder", "expires_at", "epoch", "version", "min_version", "lease", "incarnation", "term", "write_id",
	"ttl_ms", "renew_ms", "state", "stopping", "acquired_at", "renewed_at", "platform", "revision", "work", "obeyed", "successor", "history"}

// Foreign reports whether the record was not written by this program: it has
// no incarnation, as the records of sf2loki's own coordinators.
func (r Record) Foreign() bool { return r.Incarnation == "" }

// Marshal encodes the record as one JSON object, our fields first. What would make
// it larger than a reader accepts is left out: the oldest of the history, then the
// fields of other writers. Nothing that decides is ever left out.
func (r Record) Marshal() ([]byte, error) {
	for {
		data, err := r.marshal()
		switch {
		case err != nil || len(data) <= maxRecord:
			return data, err
		case len(r.History) > 0:
			r.History = r.History[1:]
		case len(r.extra) > 0:
			r.extra = nil
		default:
			return nil, fmt.Errorf("encode lease record: %d bytes, at most %d can be read back", len(data), maxRecord)
		}
	}
}

func (r Record) marshal() ([]byte, error) {
	head, err := json.Marshal(wire{
		Holder: r.Holder, ExpiresAt: stamp(r.ExpiresAt), Epoch: r.Epoch, Version: r.Version, MinVersion: r.MinVersion,
		Lease: r.Lease, Incarnation: r.Incarnation, Term: r.Term, WriteID: r.WriteID,
		TTLMillis: r.TTL.Milliseconds(), RenewMillis: r.Renew.Milliseconds(), State: r.State, Stopping: r.Stopping,
		AcquiredAt: stamp(r.AcquiredAt), RenewedAt: stamp(r.RenewedAt), Platform: r.Platform, Revision: r.Revision,
		Work: r.Work.wire(), Obeyed: r.Obeyed, Successor: r.Successor, History: r.History,
	})
	if err != nil {
		return nil, fmt.Errorf("encode lease record: %w", err)
	}
	if len(r.extra) == 0 {
		return head, nil
	}
	names := make([]string, 0, len(r.extra))
	for name := range r.extra {
		names = append(names, name)
	}
	sort.Strings(names)
	b := bytes.NewBuffer(head[:len(head)-1])
	for _, name := range names {
		key, err := json.Marshal(name)
		if err != nil {
			return nil, fmt.Errorf("encode lease record: %w", err)
		}
		b.WriteByte(',')
		b.Write(key)
		b.WriteByte(':')
		b.Write(r.extra[name])
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}

// ParseRecord decodes a lease document. An error means that the bytes are not a
// lease record; it never depends on a time stamp, because no decision does.
func ParseRecord(data []byte) (Record, error) {
	switch {
	case len(data) > maxRecord:
		return Record{}, fmt.Errorf("%d bytes, more than the %d a lease record can have", len(data), maxRecord)
	case !utf8.Valid(data):
		return Record{}, errors.New("not UTF-8")
	}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(data, &fields); err != nil {
		return Record{}, fmt.Errorf("not a JSON object: %w", err)
	}
	if fields == nil {
		return Record{}, errors.New("not a JSON object: null")
	}
	var w wire
	for _, f := range []struct {
		name string
		into any
	}{
		{"holder", &w.Holder}, {"epoch", &w.Epoch}, {"version", &w.Version}, {"min_version", &w.MinVersion},
		{"lease", &w.Lease}, {"incarnation", &w.Incarnation}, {"term", &w.Term}, {"write_id", &w.WriteID},
		{"ttl_ms", &w.TTLMillis}, {"renew_ms", &w.RenewMillis}, {"state", &w.State}, {"stopping", &w.Stopping},
		{"platform", &w.Platform}, {"revision", &w.Revision}, {"obeyed", &w.Obeyed}, {"successor", &w.Successor},
	} {
		raw, ok := fields[f.name]
		if !ok {
			continue
		}
		if err := json.Unmarshal(raw, f.into); err != nil {
			return Record{}, fmt.Errorf("field %q: %w", f.name, err)
		}
	}
	if w.Epoch < 0 || w.Epoch > MaxEpoch {
		return Record{}, fmt.Errorf("field %q: %d is outside 0 to %d", "epoch", w.Epoch, MaxEpoch)
	}
	r := Record{
		Holder: w.Holder, Epoch: w.Epoch, Version: w.Version, MinVersion: w.MinVersion, Lease: w.Lease,
		Incarnation: w.Incarnation, Term: w.Term, WriteID: w.WriteID, TTL: millis(w.TTLMillis), Renew: millis(w.RenewMillis),
		State: w.State, Stopping: w.Stopping, Platform: w.Platform, Revision: w.Revision,
		Work: parseWork(fields["work"]), Obeyed: w.Obeyed, Successor: w.Successor,
		ExpiresAt: parseStamp(fields["expires_at"]), AcquiredAt: parseStamp(fields["acquired_at"]), RenewedAt: parseStamp(fields["renewed_at"]),
	}
	// The history is for people: a damaged one costs only itself.
	_ = json.Unmarshal(fields["history"], &r.History)
	for _, name := range wireFields {
		delete(fields, name)
	}
	if len(fields) > 0 {
		r.extra = fields
	}
	return r, nil
}

// millis converts a stored duration, capped at MaxTTL: a damaged record must
// not keep a pair leaderless for hours. Negative counts as absent.
func millis(ms int64) time.Duration {
	switch {
	case ms <= 0:
		return 0
	case ms > MaxTTL.Milliseconds():
		return MaxTTL
	}
	return time.Duration(ms) * time.Millisecond
}

func stamp(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format("2006-01-02T15:04:05.000000Z07:00")
}

// parseStamp reads a time as sf2loki writes it; a zone may be missing (UTC).
// What cannot be read is the zero time: no decision depends on it.
func parseStamp(raw json.RawMessage) time.Time {
	var text string
	if json.Unmarshal(raw, &text) != nil {
		return time.Time{}
	}
	for _, layout := range []string{time.RFC3339Nano, "2006-01-02T15:04:05.999999999"} {
		if t, err := time.Parse(layout, strings.TrimSpace(text)); err == nil {
			return t.UTC()
		}
	}
	return time.Time{}
}

// closeHistory returns the record's history with the term of r appended.
func (r Record) closeHistory(to time.Time, reason string) []PastTerm {
	if r.Epoch == 0 && r.Holder == "" {
		return r.History
	}
	past := append([]PastTerm(nil), r.History...)
	past = append(past, PastTerm{Epoch: r.Epoch, Holder: r.Holder, Revision: r.Revision, From: r.AcquiredAt, To: to, Reason: reason})
	if len(past) > maxHistory {
		past = past[len(past)-maxHistory:]
	}
	return past
}
