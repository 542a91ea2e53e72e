package canary

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/sf2loki/sf2loki-ha/checkpoint"
	"github.com/sf2loki/sf2loki-ha/internal/boottime"
)

// Events of the output, one JSON object a line.
const (
	// EventRecord: a numbered record.
	EventRecord = "record"
	// EventResumed: the start, with the Report.
	EventResumed = "resumed"
	// EventPaused: no record is written until a commit succeeds.
	EventPaused = "paused"
	// EventCommitFailed, EventPushFailed, EventLoadFailed: it will be tried again.
	EventCommitFailed = "commit_failed"
	EventPushFailed   = "push_failed"
	EventLoadFailed   = "load_failed"
	// EventFenced: another term has sealed the document; the process ends.
	EventFenced = "fenced"
	// EventStopped: the last line after a requested stop.
	EventStopped = "stopped"
)

// Line is one line of the output. Fields that an event does not have are
// absent.
type Line struct {
	Event string `json:"event"`
	// N is the number of a record; in the line of a stop the last one delivered.
	N int64 `json:"n,omitempty"`
	// At is the wall clock, for people and for Loki.
	At time.Time `json:"at"`
	// BootNS is CLOCK_BOOTTIME in nanoseconds, taken when the record was decided
	// on and before it was written: the instant of the act. It compares between
	// processes of one machine.
	BootNS   int64  `json:"boot_ns"`
	Epoch    int64  `json:"epoch"`
	Term     string `json:"term"`
	Identity string `json:"identity"`
	PID      int    `json:"pid"`

	*Report
	// Committed is the last record whose number is safe in the document; Flushed
	// says that it is the last one delivered.
	Committed int64  `json:"committed,omitempty"`
	Flushed   *bool  `json:"flushed,omitempty"`
	Error     string `json:"error,omitempty"`
}

// output writes lines with the fields that all of them have.
type output struct {
	w        io.Writer
	epoch    int64
	term     string
	identity string
	pid      int
}

func newOutput(w io.Writer, identity string, term checkpoint.Term) *output {
	o := &output{w: w, identity: identity, pid: os.Getpid()}
	if term != nil {
		o.epoch, o.term = term.Epoch(), term.ID()
	}
	return o
}

// write completes the line, stamps it and writes it with one call. It returns
// the text without the newline.
func (o *output) write(l Line) ([]byte, time.Time, error) {
	l.Epoch, l.Term, l.Identity, l.PID = o.epoch, o.term, o.identity, o.pid
	// Monotonic first: the line says when the decision was made, and everything
	// that takes time comes after it.
	l.BootNS = int64(boottime.Now())
	l.At = time.Now().UTC()
	text, err := json.Marshal(l)
	if err != nil {
		return nil, l.At, fmt.Errorf("canary output: %w", err)
	}
	if _, err := o.w.Write(append(text, '\n')); err != nil {
		return nil, l.At, fmt.Errorf("canary output: %w", err)
	}
	return text, l.At, nil
}
