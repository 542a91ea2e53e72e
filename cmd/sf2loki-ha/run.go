package main

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"os/signal"
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
	signals := make(chan os.Signal, 8)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGUSR1, syscall.SIGUSR2)
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
	go relay(ctx, signals, cancel, r.Signal)
	return r.Run(ctx)
}

// relay takes the first SIGTERM or SIGINT as the request to stop, and hands every
// other signal on.
func relay(ctx context.Context, signals <-chan os.Signal, stop func(), hand func(syscall.Signal)) {
	for s := range signals {
		sig, ok := s.(syscall.Signal)
		switch {
		case !ok:
		case ctx.Err() == nil && (sig == syscall.SIGTERM || sig == syscall.SIGINT):
			stop()
		default:
			hand(sig)
		}
	}
}
