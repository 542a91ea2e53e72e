package main

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"os/signal"
	"sync/atomic"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/sf2loki/sf2loki-ha/internal/config"
	"github.com/sf2loki/sf2loki-ha/internal/replica"
	"github.com/sf2loki/sf2loki-ha/internal/telemetry"
)

func newRun() *cobra.Command {
	var file string
	cmd := &cobra.Command{
		Use:   "run [--config FILE] [-- COMMAND ARG...]",
		Short: "Compete for the lease and run the command only while leading",
		Long: `Compete for the lease and run the command only while this replica leads.

The command is started after the checkpoint document has been sealed for the
new term, and it is dead before another replica can take over: a guard process
kills its whole tree at the deadline even if this process is frozen or killed.
Without a command, terms are held and shown; that is the reference coordinator.

SIGTERM or SIGINT stops the command, releases the lease and exits with 0. A
second one cuts the time that the command has left to workload.stop_grace, a
third one to nothing. SIGHUP, SIGUSR1 and SIGUSR2 are passed to the command.`,
		Example: `  sf2loki-ha run --config config.yaml -- sf2loki-ha canary
  sf2loki-ha run --config config.yaml -- my-shipper --flag value`,
		Args: func(cmd *cobra.Command, args []string) error {
			if n := cmd.ArgsLenAtDash(); n > 0 || (n < 0 && len(args) > 0) {
				return &usageError{errors.New(`put "--" in front of the command, as in: sf2loki-ha run --config FILE -- COMMAND`)}
			}
			return nil
		},
		RunE: func(_ *cobra.Command, args []string) error { return run(file, args) },
	}
	cmd.Flags().StringVar(&file, "config", "", "configuration file (YAML); without it the environment is the configuration")
	return cmd
}

func run(file string, command []string) error {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	var started atomic.Pointer[replica.Replica]
	go relay(ctx, stops(), others(), cancel, func(sig syscall.Signal) {
		if r := started.Load(); r != nil {
			r.Signal(sig)
		}
	})
	// A log that nobody reads any more must not end a leader. A handler and not
	// "ignore", which the command would inherit.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	cfg, err := config.Load(file, os.Environ())
	if err != nil {
		return err
	}
	log, err := telemetry.NewLogger(os.Stderr, cfg.Service.LogFormat, cfg.Service.LogLevel)
	if err != nil {
		return &usageError{err}
	}
	slog.SetDefault(log)
	if len(command) == 0 {
		command = cfg.Workload.Command
	}
	v, _ := build()
	r, err := replica.New(ctx, replica.Options{Config: cfg, ConfigFile: file, Command: command, Version: v, Log: log})
	if err != nil {
		return err
	}
	started.Store(r)
	return r.Run(ctx)
}

// stops receives the requests to stop, in a channel of their own: whatever else
// comes in any number must not crowd one out.
func stops() <-chan os.Signal {
	c := make(chan os.Signal, 4)
	signal.Notify(c, os.Interrupt, syscall.SIGTERM)
	return c
}

// others receives what is for the command. A SIGHUP that is ignored (nohup) stays
// ignored.
func others() <-chan os.Signal {
	c := make(chan os.Signal, 8)
	signal.Notify(c, syscall.SIGUSR1, syscall.SIGUSR2)
	if !signal.Ignored(syscall.SIGHUP) {
		signal.Notify(c, syscall.SIGHUP)
	}
	return c
}

// relay takes the first request to stop, whenever it comes, and hands every other
// signal on. It ends with its channels.
func relay(ctx context.Context, stops, others <-chan os.Signal, stop func(), hand func(syscall.Signal)) {
	for stops != nil || others != nil {
		var s os.Signal
		var ok bool
		select {
		case s, ok = <-stops:
			if !ok {
				stops = nil
				continue
			}
			if ctx.Err() == nil {
				stop()
				continue
			}
		case s, ok = <-others:
			if !ok {
				others = nil
				continue
			}
		}
		if sig, ok := s.(syscall.Signal); ok {
			hand(sig)
		}
	}
}
