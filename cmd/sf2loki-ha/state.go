package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/sf2loki/sf2loki-ha/internal/config"
	"github.com/sf2loki/sf2loki-ha/internal/statecmd"
)

// stateFlags are what every verb of "state" takes; each uses what it needs.
type stateFlags struct {
	config      string
	force, wait bool
	dryRun      bool
	json        bool
}

func newState() *cobra.Command {
	var f stateFlags
	cmd := &cobra.Command{
		Use:   "state",
		Short: "Show, change, copy and repair the checkpoint document",
		Long: `Show, change, copy and repair the checkpoint document.

Every change is one conditional write: document first, then the lease, then the
write on the version that was read. While somebody leads it is refused; under a
hold it waits until the lease is released. See docs/state.md.`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.SuggestionsMinimumDistance = 2
	flags := cmd.PersistentFlags()
	flags.StringVar(&f.config, "config", "", "configuration file (YAML); without it the environment is the configuration")
	flags.BoolVar(&f.force, "force", false, "go on although a leader or another process may use the document")
	flags.BoolVar(&f.wait, "wait", false, "if the lease is held, watch it until it has stood unchanged for its ttl")
	flags.BoolVar(&f.dryRun, "dry-run", false, "do everything but write")
	flags.BoolVar(&f.json, "json", false, "print one JSON object")
	cmd.AddCommand(newStateShow(&f), newStateSet(&f), newStateDelete(&f), newStateExport(&f), newStateImport(&f),
		newStateCopy(&f), newStateRepair(&f), newStateAdopt(&f))
	return cmd
}

// run carries out one verb.
func (f *stateFlags) run(cmd *cobra.Command, verb func(context.Context, *statecmd.Command) error) error {
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer cancel()
	cfg, err := config.Load(f.config, os.Environ())
	if err != nil {
		return err
	}
	c := &statecmd.Command{
		Config: cfg, Flags: statecmd.Flags{Force: f.force, Wait: f.wait, DryRun: f.dryRun}, JSON: f.json,
		Out: cmd.OutOrStdout(), Err: cmd.ErrOrStderr(),
	}
	err = verb(ctx, c)
	var bad *statecmd.UsageError
	if errors.As(err, &bad) {
		return &usageError{err}
	}
	return err
}

// exactly wants that many arguments, named as in the usage line.
func exactly(names ...string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) != len(names) {
			return &usageError{fmt.Errorf("%s takes %d argument(s), %d given: %s", cmd.CommandPath(), len(names), len(args), cmd.UseLine())}
		}
		return nil
	}
}

func newStateShow(f *stateFlags) *cobra.Command {
	var key string
	cmd := &cobra.Command{
		Use: "show [--key GLOB]", Short: "Print checkpoints, one a line: key, tab, value", Args: noArguments,
		Example: `  sf2loki-ha state show --config config.yaml
  sf2loki-ha state show --config config.yaml --key 'pubsub:*' --json`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return f.run(cmd, func(ctx context.Context, c *statecmd.Command) error { return c.Show(ctx, key) })
		},
	}
	cmd.Flags().StringVar(&key, "key", "*", "only keys that match: * any characters, ? one, [abc] one of these")
	return cmd
}

func newStateSet(f *stateFlags) *cobra.Command {
	return &cobra.Command{
		Use: "set KEY VALUE", Short: "Store one value, as it is given", Args: exactly("KEY", "VALUE"),
		Long: `Store one value, as it is given. A value that begins with a dash goes behind "--".`,
		Example: `  sf2loki-ha state set --config config.yaml pubsub:/event/LoginEventStream AAAAAAAAAqc=
  sf2loki-ha state set --config config.yaml --dry-run -- KEY -1`,
		RunE: func(cmd *cobra.Command, args []string) error {
			return f.run(cmd, func(ctx context.Context, c *statecmd.Command) error { return c.Set(ctx, args[0], args[1]) })
		},
	}
}

func newStateDelete(f *stateFlags) *cobra.Command {
	return &cobra.Command{
		Use: "delete KEY", Short: "Remove one key", Args: exactly("KEY"),
		Example: `  sf2loki-ha state delete --config config.yaml eventlogfile:Login`,
		RunE: func(cmd *cobra.Command, args []string) error {
			return f.run(cmd, func(ctx context.Context, c *statecmd.Command) error { return c.Delete(ctx, args[0]) })
		},
	}
}

func newStateExport(f *stateFlags) *cobra.Command {
	return &cobra.Command{
		Use: "export", Short: "Print the document as one JSON object, without the fence", Args: noArguments,
		Example: `  sf2loki-ha state export --config config.yaml > checkpoints.json`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return f.run(cmd, func(ctx context.Context, c *statecmd.Command) error { return c.Export(ctx) })
		},
	}
}

func newStateImport(f *stateFlags) *cobra.Command {
	var replace, ifEmpty bool
	cmd := &cobra.Command{
		Use: "import FILE", Short: "Store what export printed, in one write; - is standard input", Args: exactly("FILE"),
		Long: `Store the keys of a file, in one write. Keys of the document that are not in the
file stay; with --replace they go.`,
		Example: `  sf2loki-ha state import --config config.yaml checkpoints.json
  sf2loki-ha state import --config config.yaml --if-empty - < checkpoints.json`,
		RunE: func(cmd *cobra.Command, args []string) error {
			return f.run(cmd, func(ctx context.Context, c *statecmd.Command) error {
				in, name := io.NopCloser(cmd.InOrStdin()), "standard input"
				if args[0] != "-" {
					file, err := os.Open(args[0])
					if err != nil {
						return fmt.Errorf("import: %w", err)
					}
					in, name = file, args[0]
				}
				defer in.Close()
				return c.Import(ctx, name, in, replace, ifEmpty)
			})
		},
	}
	cmd.Flags().BoolVar(&replace, "replace", false, "remove the checkpoints that are not in the file")
	cmd.Flags().BoolVar(&ifEmpty, "if-empty", false, "refuse a document that has checkpoints")
	return cmd
}

func newStateCopy(f *stateFlags) *cobra.Command {
	var from, to statecmd.Access
	var replace bool
	cmd := &cobra.Command{
		Use: "copy FROM TO", Short: "Copy the checkpoints of one document to another", Args: exactly("FROM", "TO"),
		Long: `Copy the checkpoints of one document to another. A document is file:PATH,
s3://BUCKET/KEY or gs://BUCKET/OBJECT. The way to a bucket is that of the
configuration if it names the same bucket, else that of the flags, else that of
the environment. Fences are not copied. A TO that has checkpoints is refused
unless --replace or --force is given.`,
		Example: `  sf2loki-ha state copy --config pair.yaml file:/var/lib/sf2loki/state.json s3://my-bucket/sf2loki/state.json`,
		RunE: func(cmd *cobra.Command, args []string) error {
			return f.run(cmd, func(ctx context.Context, c *statecmd.Command) error {
				source, err := statecmd.ParsePlace(args[0])
				if err != nil {
					return err
				}
				target, err := statecmd.ParsePlace(args[1])
				if err != nil {
					return err
				}
				return c.Copy(ctx, source, target, from, to, replace)
			})
		},
	}
	flags := cmd.Flags()
	flags.BoolVar(&replace, "replace", false, "replace the checkpoints of TO")
	for _, side := range []struct {
		name   string
		access *statecmd.Access
	}{{"from", &from}, {"to", &to}} {
		flags.StringVar(&side.access.EndpointURL, side.name+"-endpoint-url", "", "endpoint of the store of "+side.name)
		flags.StringVar(&side.access.Region, side.name+"-region", "", "region of the bucket of "+side.name+" (S3)")
		flags.StringVar(&side.access.ServiceFile, side.name+"-service-file", "", "service account key for "+side.name+" (Cloud Storage)")
	}
	return cmd
}

func newStateRepair(f *stateFlags) *cobra.Command {
	var epoch int64
	cmd := &cobra.Command{
		Use: "repair-fence [--epoch N]", Short: "Make damaged reserved keys sound again; an epoch is never lowered", Args: noArguments,
		Long: `Make the reserved keys __fence_epoch__ and __fence__ sound again after damage, or
raise the epoch. The new epoch is the highest one that can still be read, of the
document and the lease; it is never lowered, and need not be: the next term of
the pair gets one above it.`,
		Example: `  sf2loki-ha state repair-fence --config config.yaml --dry-run
  sf2loki-ha state repair-fence --config config.yaml --epoch 40`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return f.run(cmd, func(ctx context.Context, c *statecmd.Command) error {
				if cmd.Flags().Changed("epoch") && epoch < 1 {
					return &usageError{fmt.Errorf("--epoch %d: an epoch is at least 1", epoch)}
				}
				return c.RepairFence(ctx, epoch)
			})
		},
	}
	cmd.Flags().Int64Var(&epoch, "epoch", 0, "the epoch to write, if none can be read or a higher one is wanted")
	return cmd
}

func newStateAdopt(f *stateFlags) *cobra.Command {
	return &cobra.Command{
		Use: "adopt", Short: "Hand the document of another lease over to the configured one", Args: noArguments,
		Long: `Hand a document that another lease has sealed over to the lease of this
configuration. The other lease is looked at first, if it can be reached from
here; --force says that its pair is gone for good. The epoch stays.`,
		Example: `  sf2loki-ha state adopt --config config.yaml --dry-run`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return f.run(cmd, func(ctx context.Context, c *statecmd.Command) error { return c.Adopt(ctx) })
		},
	}
}
