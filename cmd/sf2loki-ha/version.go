package main

import (
	"fmt"
	"runtime"
	"runtime/debug"
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
