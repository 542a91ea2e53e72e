// Command sf2loki-ha runs a single-writer program only while this replica
// leads. See README.md; "sf2loki-ha help" lists the verbs.
package main

import (
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/sf2loki/sf2loki-ha/internal/config"
	"github.com/sf2loki/sf2loki-ha/internal/guard"
	"github.com/sf2loki/sf2loki-ha/internal/replica"
)

// Exit codes, as sf2loki's: docs/exit-codes.md.
const (
	exitOK    = 0
	exitError = 1 // something failed while running
	exitUsage = 2 // configuration, wiring or command line: a restart does not help
)

func main() {
	// The guard is this binary again. It comes before everything else: it must
	// start in milliseconds and needs no flags.
	if len(os.Args) > 1 && os.Args[1] == "guard" {
		os.Exit(guard.Main(os.Args[2:]))
	}
	os.Exit(execute(os.Args[1:]))
}

// execute runs one verb and returns its exit code.
func execute(args []string) int {
	root := newRoot()
	root.SetArgs(args)
	return finish(root)
}

func finish(root *cobra.Command) int {
	err := root.Execute()
	if err == nil {
		return exitOK
	}
	fmt.Fprintf(root.ErrOrStderr(), "sf2loki-ha: %v\n", err)
	var (
		bad   *config.Error
		setup *replica.SetupError
		usage *usageError
	)
	if errors.As(err, &bad) || errors.As(err, &setup) || errors.As(err, &usage) {
		return exitUsage
	}
	return exitError
}

// usageError is a command line that cannot be run.
type usageError struct{ err error }

func (e *usageError) Error() string {
	return e.err.Error() + "\nTry: sf2loki-ha help, or a command with --help"
}
func (e *usageError) Unwrap() error { return e.err }

func newRoot() *cobra.Command {
	root := &cobra.Command{
		Use:           "sf2loki-ha",
		Short:         "High availability for a single-writer program, with nothing but a bucket",
		Version:       versionText(),
		SilenceUsage:  true,
		SilenceErrors: true,
		Args:          noArguments,
		RunE:          func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.SetVersionTemplate("{{.Version}}\n")
	root.SuggestionsMinimumDistance = 2
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return &usageError{err} })
	root.AddCommand(newRun(), newCanary(), newLease(), newState(), newConfig(), newVersion())
	return root
}
