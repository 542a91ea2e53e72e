package main

import (
	"context"
	"os"
	"slices"
	"syscall"
	"testing"
)

func TestTheFirstRequestToStopStopsAndAllElseIsHandedOn(t *testing.T) {
	for name, c := range map[string]struct {
		signals []os.Signal
		stopped bool
		handed  []syscall.Signal
	}{
		"TERM":               {[]os.Signal{syscall.SIGTERM}, true, nil},
		"TERM twice":         {[]os.Signal{syscall.SIGTERM, syscall.SIGTERM}, true, []syscall.Signal{syscall.SIGTERM}},
		"INT, then TERM":     {[]os.Signal{os.Interrupt, syscall.SIGTERM}, true, []syscall.Signal{syscall.SIGTERM}},
		"HUP stops nothing":  {[]os.Signal{syscall.SIGHUP, syscall.SIGUSR1}, false, []syscall.Signal{syscall.SIGHUP, syscall.SIGUSR1}},
		"USR2 during a stop": {[]os.Signal{syscall.SIGTERM, syscall.SIGUSR2}, true, []syscall.Signal{syscall.SIGUSR2}},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			signals := make(chan os.Signal, len(c.signals))
			for _, s := range c.signals {
				signals <- s
			}
			close(signals)
			var handed []syscall.Signal
			relay(ctx, signals, cancel, func(s syscall.Signal) { handed = append(handed, s) })
			if !slices.Equal(handed, c.handed) || (ctx.Err() != nil) != c.stopped {
				t.Errorf("stopped %v, handed on %v", ctx.Err() != nil, handed)
			}
		})
	}
}
