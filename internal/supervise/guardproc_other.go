//go:build !linux

package supervise

import (
	"errors"
	"log/slog"
	"runtime"
	"syscall"

	"github.com/sf2loki/sf2loki-ha/internal/guard"
)

type guardProcess struct{ reports chan guard.Report }

type exitStatus struct {
	code   int
	signal syscall.Signal
}

// startGuard says that there is no guard here. Everything else is never called.
func startGuard(Config, []string) (*guardProcess, error) {
	return nil, errors.New("running a command needs Linux (this is " + runtime.GOOS + ")")
}

func (*guardProcess) lost() error                             { return nil }
func (*guardProcess) send(guard.Order) error                  { return nil }
func (*guardProcess) finish(*slog.Logger)                     {}
func (*guardProcess) abandon(*slog.Logger) map[int]exitStatus { return nil }
func (*guardProcess) lastWords() []guard.Report               { return nil }
func (*guardProcess) close()                                  {}
