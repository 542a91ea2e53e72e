package canary

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"time"

	"github.com/sf2loki/sf2loki-ha/cas"
	"github.com/sf2loki/sf2loki-ha/checkpoint"
)

// Environment variables that `run` sets for its child.
const (
	EnvEpoch = "SF2LOKI_HA_EPOCH"
	EnvTerm  = "SF2LOKI_HA_TERM"
)

// Defaults of Options.
const (
	DefaultInterval       = time.Second
	DefaultCommitInterval = time.Second
	DefaultFlushTimeout   = 3 * time.Second
)

// Options is what a canary needs. Zero values mean the defaults.
type Options struct {
	// Interval is the time between two records. Default 1 s.
	Interval time.Duration
	// CommitInterval is the least time between two commits of the position: GCS
	// accepts one write of an object in a second. Default 1 s.
	CommitInterval time.Duration
	// Ahead is how long records are written although no commit succeeds, and so
	// bounds how many can occur twice after a crash. Default ten commit
	// intervals.
	Ahead time.Duration
	// FlushTimeout bounds the last commit after a requested stop. Default 3 s.
	FlushTimeout time.Duration

	// Checkpoint is the fenced document for the position, or nil. It needs a
	// Term.
	Checkpoint cas.Register
	// Socket is the path of the socket through which `run` keeps the document for
	// this process, instead of Checkpoint, or "". It needs a Term.
	Socket string
	// Term is the term this process works in, or nil; see TermFromEnv.
	Term checkpoint.Term
	// Lease and TTL name the lease, for a document that the supervisor has not
	// sealed. Behind `run` with a document they are not used.
	Lease string
	TTL   time.Duration
	// MinWriteInterval is the least time between two writes of the document: 1 s
	// on GCS. Default 0.
	MinWriteInterval time.Duration
	// PositionFile keeps the position in a local file, if there is no Checkpoint.
	PositionFile string

	// PushURL is a Loki-compatible endpoint, or "". Without a path,
	// /loki/api/v1/push is added. User and password in it are sent as basic
	// authentication and appear nowhere else.
	PushURL string
	// Identity names this replica in the records and as a stream label.
	Identity string
	// Out gets one JSON object a line. Required.
	Out io.Writer

	// transport replaces the network in tests.
	transport http.RoundTripper
}

func (o Options) withDefaults() Options {
	for _, d := range []struct {
		value *time.Duration
		def   time.Duration
	}{
		{&o.Interval, DefaultInterval}, {&o.CommitInterval, DefaultCommitInterval}, {&o.FlushTimeout, DefaultFlushTimeout},
	} {
		if *d.value == 0 {
			*d.value = d.def
		}
	}
	if o.Ahead == 0 {
		o.Ahead = 10 * o.CommitInterval
	}
	return o
}

func (o Options) validate() error {
	switch {
	case o.Out == nil:
		return errors.New("no output")
	case o.Interval < 0 || o.CommitInterval < 0 || o.Ahead < 0 || o.FlushTimeout < 0 || o.MinWriteInterval < 0:
		return errors.New("a duration is negative")
	case o.Checkpoint != nil && o.PositionFile != "":
		return errors.New("a checkpoint document and a position file: use one of them")
	case (o.Checkpoint != nil || o.Socket != "") && o.Term == nil:
		return fmt.Errorf("a checkpoint document needs a term: start the canary with `sf2loki-ha run`, which sets %s and %s", EnvEpoch, EnvTerm)
	}
	return nil
}

// ahead is how many records may be written beyond the committed position: at
// least two, so that one slow commit does not stop a slow canary.
func (o Options) ahead() int64 {
	return max(2, int64((o.Ahead+o.Interval-1)/o.Interval))
}

// envTerm is the term of the supervisor that started this process.
type envTerm struct {
	epoch int64
	id    string
}

func (t *envTerm) Epoch() int64 { return t.epoch }
func (t *envTerm) ID() string   { return t.id }

// CheckFence is always nil: this process has no lease to ask. The guard ends it
// at the deadline of its term, and the store's condition refuses what comes
// after a takeover.
func (t *envTerm) CheckFence() error { return nil }

// TermFromEnv reads the term that `run` put into the environment. Without the
// variables there is no term and no error.
func TermFromEnv(getenv func(string) string) (checkpoint.Term, error) {
	epoch, id := getenv(EnvEpoch), getenv(EnvTerm)
	if epoch == "" && id == "" {
		return nil, nil
	}
	n, err := strconv.ParseInt(epoch, 10, 64)
	if err != nil || n < 1 || n > checkpoint.MaxEpoch {
		return nil, fmt.Errorf("%s=%q is not an epoch (1 to %d)", EnvEpoch, epoch, checkpoint.MaxEpoch)
	}
	if id == "" {
		return nil, fmt.Errorf("%s is set and %s is not", EnvEpoch, EnvTerm)
	}
	return &envTerm{epoch: n, id: id}, nil
}
