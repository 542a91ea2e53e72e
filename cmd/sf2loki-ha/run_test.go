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
		stops, others []os.Signal
		handed        []syscall.Signal
	}{
		"TERM":               {[]os.Signal{syscall.SIGTERM}, nil, nil},
		"TERM twice":         {[]os.Signal{syscall.SIGTERM, syscall.SIGTERM}, nil, []syscall.Signal{syscall.SIGTERM}},
		"INT, then TERM":     {[]os.Signal{os.Interrupt, syscall.SIGTERM}, nil, []syscall.Signal{syscall.SIGTERM}},
		"HUP stops nothing":  {nil, []os.Signal{syscall.SIGHUP, syscall.SIGUSR1}, []syscall.Signal{syscall.SIGHUP, syscall.SIGUSR1}},
		"USR2 during a stop": {[]os.Signal{syscall.SIGTERM}, []os.Signal{syscall.SIGUSR2}, []syscall.Signal{syscall.SIGUSR2}},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			var handed []syscall.Signal
			relay(ctx, filled(c.stops), filled(c.others), cancel, func(s syscall.Signal) { handed = append(handed, s) })
			if !slices.Equal(handed, c.handed) || (ctx.Err() != nil) != (len(c.stops) > 0) {
				t.Errorf("stopped %v, handed on %v", ctx.Err() != nil, handed)
			}
		})
	}
}

// filled is a channel with these signals that is closed after them.
func filled(signals []os.Signal) <-chan os.Signal {
	c := make(chan os.Signal, len(signals))
	for _, s := range signals {
		c <- s
	}
	close(c)
	return c
}
