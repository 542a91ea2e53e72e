package main

import (
	"os"

	"github.com/spf13/cobra"

	"github.com/sf2loki/sf2loki-ha/internal/budgetcmd"
	"github.com/sf2loki/sf2loki-ha/internal/config"
)

func newConfig() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "config",
		Short: "Say what a configuration means",
		Args:  noArguments,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.SuggestionsMinimumDistance = 2
	cmd.AddCommand(newConfigBudget())
	return cmd
}

func newConfigBudget() *cobra.Command {
	var file, profile string
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "budget [--config FILE] [--profile NAME]",
		Short: "Print failover bound, outage tolerated, stop instants and monthly cost",
		Long: `Print what the durations of the lease promise, computed by the formulas of the
election: the failover bound and its parts, the longest outage of the store that
the work survives, when it is stopped and killed, how far the clocks' rates may
differ, the requests per hour and their price. Nothing is sent to the store.

A profile (fast, default, calm) takes the place of ttl, renew and poll interval
of a lease in a bucket. Without a lease in the configuration a profile is shown
for both clouds; without a profile there has to be a whole configuration, from
--config or the environment. See docs/timing.md.`,
		Example: `  sf2loki-ha config budget --config config.yaml
  sf2loki-ha config budget --profile fast
  sf2loki-ha config budget --config config.yaml --profile calm --json`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			cfg, err := config.Load(file, os.Environ())
			if err != nil {
				return err
			}
			plans, err := budgetcmd.Plans(cfg, profile)
			if err != nil {
				return &usageError{err}
			}
			if asJSON {
				return budgetcmd.PrintJSON(cmd.OutOrStdout(), plans)
			}
			return budgetcmd.Print(cmd.OutOrStdout(), plans)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&file, "config", "", "configuration file (YAML); without it the environment is the configuration")
	flags.StringVar(&profile, "profile", "", "durations to take instead of the configured ones: fast, default or calm")
	flags.BoolVar(&asJSON, "json", false, "print one JSON object")
	return cmd
}
