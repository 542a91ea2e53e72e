package supervise

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"syscall"
	"time"

	"github.com/sf2loki/sf2loki-ha/internal/boottime"
)

// Lease is what a run needs to know of its term. *coordinator.Term is one.
type Lease interface {
	// Epoch and ID name the term; the command sees them in its environment.
	Epoch() int64
	ID() string
	// KillAt is the instant by which the work must be gone.
	KillAt() boottime.Instant
	// Changed is closed when KillAt moved. It is called again for the next
	// move, before KillAt is read.
	Changed() <-chan struct{}
}

// Term is what keeping the command running for a whole term needs to know and
// tell. *coordinator.Term is one.
type Term interface {
	Lease
	// Failures is how often the command failed in a row, on all replicas.
	Failures() int
	// Failed notes one more failure, Settled that the command has run well for a
	// minute.
	Failed()
	Settled()
}

// Variables that the command finds in its environment.
const (
	EnvEpoch  = "SF2LOKI_HA_EPOCH"  // the epoch, decimal
	EnvTerm   = "SF2LOKI_HA_TERM"   // the term id
	EnvConfig = "SF2LOKI_HA_CONFIG" // path of our configuration file, given in Config.Env
)

// Config says what to run and how long things may take.
type Config struct {
	// Command is the program, looked up in PATH, and its arguments. There is no
	// shell in between.
	Command []string
	// Environ is what the command's environment begins with, in the form of
	// os.Environ. nil means this process's.
	Environ []string
	// Env is added to Environ and to EnvEpoch and EnvTerm, as KEY=VALUE; it wins
	// over both.
	Env []string
	// StopGrace is the time between SIGTERM and SIGKILL when the lease could
	// not be renewed. Never beyond KillAt. A requested stop has until KillAt.
	StopGrace time.Duration
	// KillMargin is the time from KillAt to the deadline of the lease. The
	// guard has half of it to answer before it is given up.
	KillMargin time.Duration
	// Stdout and Stderr are handed to the command unchanged; nil means ours.
	Stdout, Stderr *os.File
	// GuardCommand starts the guard; "--" and the command are appended. Default:
	// this executable with the verb "guard".
	GuardCommand []string
	// Signals are for the command while it runs: they go to its process group.
	// SIGTERM and SIGINT do not: what they mean is a stop, which is the context's
	// business. During a stop the first one cuts the time that is left to StopGrace,
	// the next one to nothing. What comes while nothing runs is dropped. Optional.
	Signals <-chan syscall.Signal
	// Logger gets one line per transition. Default: slog.Default.
	Logger *slog.Logger

	// Hooks, each optional, are called by the goroutine of Run and must not
	// block.

	// Started: the command runs.
	Started func(pid int)
	// Stopping: the work is about to be stopped for this cause. It is called
	// before any signal is sent, so that a replica is "not ready" first.
	Stopping func(cause error)
	// Ended: no process of the tree is left.
	Ended func(Outcome)
}

// Validate checks what can be checked without running anything. The error
// names every field that is wrong.
func (c Config) Validate() error {
	var errs []error
	if len(c.Command) == 0 || c.Command[0] == "" {
		errs = append(errs, errors.New("no command to run"))
	}
	if c.StopGrace <= 0 {
		errs = append(errs, fmt.Errorf("stop grace %v must be positive", c.StopGrace))
	}
	if c.KillMargin <= 0 {
		errs = append(errs, fmt.Errorf("kill margin %v must be positive", c.KillMargin))
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("supervise: config: %w", err)
	}
	return nil
}

// LookPath reports whether the command exists and is executable, so that a
// replica which could not work never becomes a candidate.
func LookPath(c Config) error {
	if len(c.Command) == 0 || c.Command[0] == "" {
		return errors.New("supervise: no command to run")
	}
	if _, err := exec.LookPath(c.Command[0]); err != nil {
		return fmt.Errorf("supervise: command: %w (give an absolute path or check PATH and the execute permission)", err)
	}
	return nil
}

func (c Config) withDefaults() Config {
	if c.Stdout == nil {
		c.Stdout = os.Stdout
	}
	if c.Stderr == nil {
		c.Stderr = os.Stderr
	}
	if len(c.GuardCommand) == 0 {
		// The file that is running, even if an upgrade has replaced it on disk:
		// both ends must speak the same protocol.
		c.GuardCommand = []string{"/proc/self/exe", "guard"}
	}
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	return c
}

// environment is what the command finds; of equal keys the last one counts.
func (c Config) environment(l Lease) []string {
	base := c.Environ
	if base == nil {
		base = os.Environ()
	}
	env := append(slices.Clone(base), EnvEpoch+"="+strconv.FormatInt(l.Epoch(), 10), EnvTerm+"="+l.ID())
	return append(env, c.Env...)
}
