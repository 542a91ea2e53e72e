package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/sf2loki/sf2loki-ha/coordinator"
	"github.com/sf2loki/sf2loki-ha/internal/config"
	"github.com/sf2loki/sf2loki-ha/internal/leasecmd"
)

// leaseFlags are what every verb of "lease" takes; each uses what it needs.
type leaseFlags struct {
	config      string
	force, json bool
	wait        time.Duration
}

func newLease() *cobra.Command {
	var f leaseFlags
	cmd := &cobra.Command{
		Use:   "lease",
		Short: "Show the lease; ask the pair for a hold or a step-down",
		Long: `Show the lease, and ask the replicas for something from wherever the bucket can
be reached: the request object beside the lease carries it. See docs/requests.md.`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.SuggestionsMinimumDistance = 2
	flags := cmd.PersistentFlags()
	flags.StringVar(&f.config, "config", "", "configuration file (YAML); without it the environment is the configuration")
	flags.DurationVar(&f.wait, "wait", time.Minute, "how long to wait until a request is obeyed; 0: not at all")
	flags.BoolVar(&f.force, "force", false, "overwrite a request object that cannot be understood")
	flags.BoolVar(&f.json, "json", false, "print one JSON object")
	cmd.AddCommand(newLeaseShow(&f), newLeaseHold(&f), newLeaseResume(&f), newLeaseStepDown(&f))
	return cmd
}

// run carries out one verb.
func (f *leaseFlags) run(cmd *cobra.Command, verb func(context.Context, *leasecmd.Command) error) (err error) {
	if f.wait < 0 {
		return &usageError{fmt.Errorf("--wait %v: must not be negative", f.wait)}
	}
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer cancel()
	cfg, err := config.Load(f.config, os.Environ())
	if err != nil {
		return err
	}
	c, closer, err := leasecmd.Open(ctx, cfg)
	if closer != nil {
		defer func() { err = errors.Join(err, closer.Close()) }()
	}
	if err != nil {
		return err
	}
	c.Wait, c.Force, c.JSON, c.Out = f.wait, f.force, f.json, cmd.OutOrStdout()
	return verb(ctx, c)
}

func newLeaseShow(f *leaseFlags) *cobra.Command {
	return &cobra.Command{
		Use: "show", Short: "Print who holds the lease, and whether there is a hold", Args: noArguments,
		Example: `  sf2loki-ha lease show --config config.yaml`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return f.run(cmd, func(ctx context.Context, c *leasecmd.Command) error { return c.Show(ctx) })
		},
	}
}

func newLeaseHold(f *leaseFlags) *cobra.Command {
	var length time.Duration
	var reason string
	cmd := &cobra.Command{
		Use: "hold --for 15m --reason TEXT", Short: "Stop the work: nobody leads until it is over or taken back", Args: noArguments,
		Example: `  sf2loki-ha lease hold --config config.yaml --for 15m --reason repair`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			switch {
			case length <= 0 || length > coordinator.MaxHold:
				return &usageError{fmt.Errorf("--for %v: give the length of the hold, at most %v", length, coordinator.MaxHold)}
			case reason == "":
				return &usageError{errors.New("--reason: say why, for whoever is on call")}
			}
			return f.run(cmd, func(ctx context.Context, c *leasecmd.Command) error { return c.Hold(ctx, length, reason) })
		},
	}
	cmd.Flags().DurationVar(&length, "for", 0, "how long, such as 15m")
	cmd.Flags().StringVar(&reason, "reason", "", "why, for people")
	return cmd
}

func newLeaseResume(f *leaseFlags) *cobra.Command {
	return &cobra.Command{
		Use: "resume", Short: "Take a hold back", Args: noArguments,
		Example: `  sf2loki-ha lease resume --config config.yaml`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return f.run(cmd, func(ctx context.Context, c *leasecmd.Command) error { return c.Resume(ctx) })
		},
	}
}

func newLeaseStepDown(f *leaseFlags) *cobra.Command {
	var reason string
	cmd := &cobra.Command{
		Use: "step-down [--reason TEXT]", Short: "Ask the leader to hand over to the other replica", Args: noArguments,
		Example: `  sf2loki-ha lease step-down --config config.yaml --reason move`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return f.run(cmd, func(ctx context.Context, c *leasecmd.Command) error { return c.StepDown(ctx, reason) })
		},
	}
	cmd.Flags().StringVar(&reason, "reason", "asked", "why, for people")
	return cmd
}
