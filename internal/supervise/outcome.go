package supervise

import (
	"errors"
	"fmt"
	"log/slog"
	"syscall"
	"time"
)

var (
	// ErrGuard: the guard could not be started, died, or did not answer in
	// time. The tree is gone nevertheless; the replica must step down.
	ErrGuard = errors.New("guard failed")
	// ErrStart: the command could not be started.
	ErrStart = errors.New("command could not be started")
)

// Kind says who ended a run. An exit code cannot tell: a command that was asked
// to stop may exit with 0 or 143, and one that was not asked may as well.
type Kind int

const (
	// ExitedItself: the command ended unasked, with whatever code.
	ExitedItself Kind = iota + 1
	// Stopped: the command was asked to stop; see Forced.
	Stopped
	// KilledOnLoss: the lease was lost, the tree was killed without grace.
	KilledOnLoss
	// KilledAtDeadline: the guard's instant came before the work had ended, or
	// before it could start.
	KilledAtDeadline
	// GuardFailed: see ErrGuard.
	GuardFailed
	// StartFailed: see ErrStart.
	StartFailed
)

// String returns the word used in logs and metric labels.
func (k Kind) String() string {
	switch k {
	case ExitedItself:
		return "exited"
	case Stopped:
		return "stopped"
	case KilledOnLoss:
		return "killed_on_loss"
	case KilledAtDeadline:
		return "killed_at_deadline"
	case GuardFailed:
		return "guard_failed"
	case StartFailed:
		return "start_failed"
	default:
		return fmt.Sprintf("kind(%d)", int(k))
	}
}

// Outcome is what became of a run. It is made anew for each run.
type Outcome struct {
	Kind Kind
	// PID is 0 if the command never ran.
	PID int
	// Exited tells that Code and Signal are known: how the command itself
	// ended, whatever became of its descendants.
	Exited bool
	Code   int
	Signal syscall.Signal // 0: it exited with Code
	// Forced: the command was asked to stop and had to be killed.
	Forced bool
	// Ran is the time from start to the end of the whole tree, Stopping the
	// part of it after the stop was decided. Both include suspends.
	Ran, Stopping time.Duration
}

// LogValue makes an outcome one group of fixed keys.
func (o Outcome) LogValue() slog.Value {
	attrs := []slog.Attr{slog.String("outcome", o.Kind.String())}
	if o.PID != 0 {
		attrs = append(attrs, slog.Int("pid", o.PID), slog.Duration("ran", o.Ran))
	}
	if o.Exited && o.Signal == 0 {
		attrs = append(attrs, slog.Int("exit_code", o.Code))
	}
	if o.Exited && o.Signal != 0 {
		attrs = append(attrs, slog.String("signal", o.Signal.String()))
	}
	if o.Stopping > 0 {
		attrs = append(attrs, slog.Duration("stopping", o.Stopping), slog.Bool("forced", o.Forced))
	}
	return slog.GroupValue(attrs...)
}
