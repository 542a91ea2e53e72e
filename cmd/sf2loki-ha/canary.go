package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/sf2loki/sf2loki-ha/internal/canary"
	"github.com/sf2loki/sf2loki-ha/internal/config"
	"github.com/sf2loki/sf2loki-ha/internal/replica"
	"github.com/sf2loki/sf2loki-ha/internal/socketapi"
	"github.com/sf2loki/sf2loki-ha/internal/supervise"
)

// canaryFlags are what the verb takes; the rest comes from the configuration
// that "run" hands over in the environment.
type canaryFlags struct {
	file, push, position string
	interval             time.Duration
}

func newCanary() *cobra.Command {
	var f canaryFlags
	cmd := &cobra.Command{
		Use:   "canary",
		Short: "Built-in work: write numbered records and report what the predecessor left",
		Long: `Write numbered records to standard output, one JSON object a line, remember the
position in the checkpoint document, and report at the start whether records
are missing or may occur twice. Put it behind "run" to see a failover.`,
		Example: `  sf2loki-ha run --config config.yaml -- sf2loki-ha canary
  sf2loki-ha canary --interval 100ms --position-file /tmp/position.json`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error { return runCanary(cmd.OutOrStdout(), f) },
	}
	cmd.Flags().StringVar(&f.file, "config", "", "configuration file with state.*; default: the one of the surrounding run ("+supervise.EnvConfig+")")
	cmd.Flags().DurationVar(&f.interval, "interval", canary.DefaultInterval, "time between two records")
	cmd.Flags().StringVar(&f.push, "push-url", "", "Loki-compatible endpoint to push each record to")
	cmd.Flags().StringVar(&f.position, "position-file", "", "keep the position in this local file if there is no checkpoint document")
	return cmd
}

// noArguments refuses positional arguments as a usage error.
func noArguments(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	text := fmt.Sprintf("unknown command %q for %q", args[0], cmd.CommandPath())
	if near := cmd.SuggestionsFor(args[0]); len(near) > 0 {
		text += fmt.Sprintf("; did you mean %q?", near[0])
	}
	return &usageError{errors.New(text)}
}

func runCanary(out io.Writer, f canaryFlags) (err error) {
	if f.interval <= 0 {
		return &usageError{fmt.Errorf("--interval %v: must be greater than 0", f.interval)}
	}
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer cancel()
	term, err := canary.TermFromEnv(os.Getenv)
	if err != nil {
		return &usageError{err}
	}
	o := canary.Options{Interval: f.interval, Term: term, PushURL: f.push, PositionFile: f.position, Out: out}
	o.Identity, _ = os.Hostname()
	file := cmp.Or(f.file, os.Getenv(supervise.EnvConfig))
	// Behind "run" the environment alone may be the whole configuration.
	if file != "" || term != nil {
		cfg, err := config.Load(file, os.Environ())
		if err != nil {
			return err
		}
		o.Identity = cmp.Or(cfg.HolderID(), o.Identity)
		if socket := os.Getenv(socketapi.EnvSocket); term != nil && socket != "" {
			o.Socket, o.PositionFile = socket, ""
			o.CommitInterval = max(canary.DefaultCommitInterval, replica.StateWriteInterval(cfg.State))
		} else if term != nil {
			reg, closer, err := replica.OpenState(ctx, cfg.State)
			if err != nil {
				return &usageError{err}
			}
			defer func() { err = errors.Join(err, closer.Close()) }()
			if reg != nil {
				o.PositionFile = "" // the document is shared with the other replica, a file is not
			}
			o.Checkpoint, o.MinWriteInterval = reg, replica.StateWriteInterval(cfg.State)
			o.CommitInterval = max(canary.DefaultCommitInterval, o.MinWriteInterval)
		}
	}
	return canary.Main(ctx, o)
}
