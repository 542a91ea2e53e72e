package guard

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/sf2loki/sf2loki-ha/internal/boottime"
)

// Version is the version of the protocol. Both ends run the same executable
// (/proc/self/exe), so another version means that something is wrong.
const Version = 1

// The descriptors of the pipes in the guard process: the first two entries of
// exec.Cmd.ExtraFiles.
const (
	ControlFD = 3 // supervisor -> guard: [Order]
	StatusFD  = 4 // guard -> supervisor: [Report]
)

// maxMessage bounds one encoded message. It is at most PIPE_BUF, so that a
// write to a pipe is never split.
const maxMessage = 4096

// maxText bounds the text of an error inside a message.
const maxText = 512

// Orders.
const (
	// OrderDeadline carries Seq and At: kill at this instant. The first one
	// starts the child.
	OrderDeadline = "deadline"
	// OrderSignal carries Signal, which goes to the child's process group.
	OrderSignal = "signal"
	// OrderKill kills the tree at once.
	OrderKill = "kill"
)

// Order is a message from the supervisor to the guard.
type Order struct {
	Version int    `json:"v"`
	Type    string `json:"type"`
	// Seq numbers the deadlines, strictly increasing from 1.
	Seq    uint64           `json:"seq,omitempty"`
	At     boottime.Instant `json:"at,omitempty"`
	Signal int              `json:"signal,omitempty"`
}

// Reports, in the order in which they can occur.
const (
	// ReportAck: the deadline Seq is in force.
	ReportAck = "ack"
	// ReportStarted: the child runs as process PID.
	ReportStarted = "started"
	// ReportStartFailed: there is no child; Error says why.
	ReportStartFailed = "startfailed"
	// ReportFiring: the guard has begun to kill for Reason and accepts no
	// order any more.
	ReportFiring = "firing"
	// ReportExited: the child ended with exit code Code, or by Signal.
	ReportExited = "exited"
	// ReportGone: no process of the tree is left. Always the last report.
	ReportGone = "gone"
)

// Reason says why the guard ended the tree.
type Reason string

const (
	ReasonExited      Reason = "exited"      // the child ended by itself
	ReasonDeadline    Reason = "deadline"    // the instant came
	ReasonEOF         Reason = "eof"         // the supervisor is gone, or sent garbage
	ReasonKill        Reason = "kill"        // the supervisor ordered it
	ReasonStartFailed Reason = "startfailed" // there was nothing to run
)

// Report is a message from the guard to the supervisor.
type Report struct {
	Version int    `json:"v"`
	Type    string `json:"type"`
	Seq     uint64 `json:"seq,omitempty"`
	PID     int    `json:"pid,omitempty"`
	Code    int    `json:"code,omitempty"`
	Signal  int    `json:"signal,omitempty"`
	Reason  Reason `json:"reason,omitempty"`
	Error   string `json:"error,omitempty"`
}

// Encode returns o as one line. It sets the version.
func (o Order) Encode() ([]byte, error) {
	o.Version = Version
	if err := o.check(); err != nil {
		return nil, fmt.Errorf("guard: encode order: %w", err)
	}
	return encode(o)
}

// Encode returns r as one line. It sets the version and cuts a long text.
func (r Report) Encode() ([]byte, error) {
	r.Version = Version
	if len(r.Error) > maxText {
		r.Error = r.Error[:maxText]
	}
	if err := r.check(); err != nil {
		return nil, fmt.Errorf("guard: encode report: %w", err)
	}
	return encode(r)
}

func encode(message any) ([]byte, error) {
	line, err := json.Marshal(message)
	if err != nil {
		return nil, fmt.Errorf("guard: encode: %w", err)
	}
	return append(line, '\n'), nil
}

func (o Order) check() error {
	if o.Version != Version {
		return fmt.Errorf("protocol version %d, want %d", o.Version, Version)
	}
	switch o.Type {
	case OrderDeadline:
		if o.Seq == 0 {
			return errors.New("deadline without a number")
		}
	case OrderSignal:
		if o.Signal < 1 || o.Signal > 64 {
			return fmt.Errorf("signal %d does not exist", o.Signal)
		}
	case OrderKill:
	default:
		return fmt.Errorf("unknown order %.20q", o.Type)
	}
	return nil
}

func (r Report) check() error {
	if r.Version != Version {
		return fmt.Errorf("protocol version %d, want %d", r.Version, Version)
	}
	switch r.Type {
	case ReportAck, ReportStarted, ReportStartFailed, ReportFiring, ReportExited, ReportGone:
		return nil
	default:
		return fmt.Errorf("unknown report %.20q", r.Type)
	}
}

// ErrGarbage is wrapped by the errors of a decoder that met something which is
// not a message. The stream cannot be trusted any more: whoever reads it takes
// it for ended.
var ErrGarbage = errors.New("not a message of the guard protocol")

// A Decoder cuts a byte stream into messages, however the bytes arrive. T is
// [Order] or [Report]. The zero value is ready to use.
type Decoder[T checked] struct {
	buf []byte
	err error
}

type checked interface{ check() error }

// Feed adds bytes and returns the messages that are complete now. Messages
// before the garbage are returned together with the error. After an error
// every call returns that error and no message.
func (d *Decoder[T]) Feed(data []byte) ([]T, error) {
	if d.err != nil {
		return nil, d.err
	}
	d.buf = append(d.buf, data...)
	var out []T
	for {
		end := bytes.IndexByte(d.buf, '\n')
		if end < 0 && len(d.buf) < maxMessage {
			return out, nil
		}
		if end < 0 || end >= maxMessage {
			d.err = fmt.Errorf("guard: decode: message longer than %d bytes: %w", maxMessage, ErrGarbage)
			return out, d.err
		}
		message, err := decode[T](d.buf[:end])
		if err != nil {
			d.err = err
			return out, d.err
		}
		d.buf = d.buf[end+1:]
		out = append(out, message)
	}
}

// decode is strict: an unknown field may carry a meaning that this version
// would miss, and missing one is the unsafe side.
func decode[T checked](line []byte) (T, error) {
	var message T
	dec := json.NewDecoder(bytes.NewReader(line))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&message); err != nil {
		return message, fmt.Errorf("guard: decode: %w: %w", ErrGarbage, err)
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return message, fmt.Errorf("guard: decode: bytes after the message: %w", ErrGarbage)
	}
	if err := message.check(); err != nil {
		return message, fmt.Errorf("guard: decode: %w: %w", ErrGarbage, err)
	}
	return message, nil
}
