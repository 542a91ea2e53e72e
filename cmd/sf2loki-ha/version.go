package main

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

// Set by the linker: see Makefile.
var (
	version = ""
	commit  = ""
)

// versionText is one line: version, commit, Go version.
func versionText() string {
	v, c := build()
	return fmt.Sprintf("sf2loki-ha %s (commit %s, %s)", v, c, runtime.Version())
}

func newVersion() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print version, commit and Go version",
		Args:  noArguments,
		Run:   func(cmd *cobra.Command, _ []string) { fmt.Fprintln(cmd.OutOrStdout(), versionText()) },
	}
}

// build returns version and commit, from the linker or, for "go install", from
// what the go command recorded.
func build() (v, c string) {
	v, c = version, commit
	info, ok := debug.ReadBuildInfo()
	if ok && v == "" {
		v = info.Main.Version
	}
	if ok && c == "" {
		for _, s := range info.Settings {
			if s.Key == "vcs.revision" {
				c = s.Value
			}
		}
	}
	if v == "" || v == "(devel)" {
		v = "dev"
	}
	if c == "" {
		c = "unknown"
	}
	return v, c
}
