package faultproxy

import (
	"encoding/json"

	"github.com/sf2loki/sf2loki-ha/checkpoint"
	"github.com/sf2loki/sf2loki-ha/coordinator"
	"github.com/sf2loki/sf2loki-ha/internal/canary"
)

// Document is what a lease record or a checkpoint document says of itself.
type Document struct {
	// Kind is "lease" or "checkpoint".
	Kind    string `json:"kind"`
	WriteID string `json:"write_id,omitempty"`
	// Epoch and Term are the pair of the record, or of the seal.
	Epoch int64  `json:"epoch"`
	Term  string `json:"term,omitempty"`
	// State is the record's.
	State coordinator.State `json:"state,omitempty"`
	// Keys is the number of checkpoints.
	Keys int `json:"keys,omitempty"`
	// Position is the canary's, or nil.
	Position *Position `json:"position,omitempty"`
}

// Position is the last record that a canary committed, and in which term.
type Position struct {
	N     int64  `json:"n"`
	Epoch int64  `json:"epoch"`
	Term  string `json:"term"`
}

// describe returns nil for everything else.
func describe(body []byte) *Document {
	var fields map[string]json.RawMessage
	if json.Unmarshal(body, &fields) != nil {
		return nil
	}
	if fields[checkpoint.FenceKey] != nil || fields[checkpoint.EpochKey] != nil {
		return describeCheckpoints(body)
	}
	if fields["holder"] == nil || fields["epoch"] == nil {
		return nil
	}
	r, err := coordinator.ParseRecord(body)
	if err != nil {
		return nil
	}
	return &Document{Kind: "lease", WriteID: r.WriteID, Epoch: r.Epoch, Term: r.Term, State: r.State}
}

func describeCheckpoints(body []byte) *Document {
	doc, err := checkpoint.ParseDocument(body)
	if err != nil {
		return nil
	}
	fence, err := doc.Fence()
	if err != nil {
		return nil
	}
	d := &Document{Kind: "checkpoint", Epoch: fence.Epoch, Term: fence.Term}
	var private struct {
		WriteID string `json:"write_id"`
	}
	text, _ := doc.Get(checkpoint.FenceKey)
	_ = json.Unmarshal([]byte(text), &private)
	d.WriteID = private.WriteID
	for _, key := range doc.Keys() {
		if !checkpoint.Reserved(key) {
			d.Keys++
		}
	}
	if text, ok := doc.Get(canary.KeyPosition); ok {
		_ = json.Unmarshal([]byte(text), &d.Position)
	}
	return d
}
