package history

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"time"

	"github.com/sf2loki/sf2loki-ha/e2e/cluster"
	"github.com/sf2loki/sf2loki-ha/e2e/faultproxy"
	"github.com/sf2loki/sf2loki-ha/internal/boottime"
)

// History is all that was seen of one run.
type History struct {
	Run       Run
	Exchanges []faultproxy.Exchange
	Acts      []cluster.Act
	Events    []Event
}

// Run says what was run.
type Run struct {
	Backend string `json:"backend"`
	Seed    uint64 `json:"seed"`
	// Lease and Checkpoints are the keys of the two objects.
	Lease       string        `json:"lease"`
	Checkpoints string        `json:"checkpoints"`
	TTL         time.Duration `json:"ttl"`
	// Torn: a load from this store may show newer data than its version.
	Torn bool `json:"torn,omitempty"`
}

// What a test does to a replica.
const (
	Start  = "start"
	Kill   = "kill"
	Freeze = "freeze"
	Thaw   = "thaw"
	Cut    = "cut"
)

// Event is something that a test did.
type Event struct {
	At      boottime.Instant `json:"at"`
	Replica string           `json:"replica"`
	What    string           `json:"what"`
	// Whole: a freeze, or its end, of every process of the replica.
	Whole bool `json:"whole,omitempty"`
	// Lag is how late this machine woke a sleeping thread after a thaw.
	Lag    time.Duration `json:"lag,omitempty"`
	Detail string        `json:"detail,omitempty"`
}

// line is one line of a file.
type line struct {
	Run      *Run                 `json:"run,omitempty"`
	Exchange *faultproxy.Exchange `json:"exchange,omitempty"`
	Event    *Event               `json:"event,omitempty"`
	Act      *cluster.Act         `json:"act,omitempty"`
	Replica  string               `json:"replica,omitempty"` // of the act
}

// Write writes the history, one JSON object a line.
func (h *History) Write(w io.Writer) error {
	out := bufio.NewWriter(w)
	enc := json.NewEncoder(out)
	lines := []line{{Run: &h.Run}}
	for i := range h.Events {
		lines = append(lines, line{Event: &h.Events[i]})
	}
	for i := range h.Exchanges {
		lines = append(lines, line{Exchange: &h.Exchanges[i]})
	}
	for i := range h.Acts {
		lines = append(lines, line{Act: &h.Acts[i], Replica: h.Acts[i].Replica})
	}
	for _, l := range lines {
		if err := enc.Encode(l); err != nil {
			return fmt.Errorf("write history: %w", err)
		}
	}
	if err := out.Flush(); err != nil {
		return fmt.Errorf("write history: %w", err)
	}
	return nil
}

// Read reads what Write wrote.
func Read(r io.Reader) (*History, error) {
	h, dec := &History{}, json.NewDecoder(r)
	for {
		var l line
		switch err := dec.Decode(&l); {
		case err == io.EOF:
			return h, nil
		case err != nil:
			return nil, fmt.Errorf("read history: %w", err)
		case l.Run != nil:
			h.Run = *l.Run
		case l.Event != nil:
			h.Events = append(h.Events, *l.Event)
		case l.Exchange != nil:
			h.Exchanges = append(h.Exchanges, *l.Exchange)
		case l.Act != nil:
			l.Act.Replica = l.Replica
			h.Acts = append(h.Acts, *l.Act)
		}
	}
}
