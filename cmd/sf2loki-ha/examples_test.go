package main

import (
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// What --help shows as an example can be typed: command, flags and arguments fit.
func TestTheExamplesOfEveryVerbParse(t *testing.T) {
	examples := 0
	var walk func(*cobra.Command)
	walk = func(c *cobra.Command) {
		for _, sub := range c.Commands() {
			walk(sub)
		}
		for line := range strings.Lines(c.Example) {
			examples++
			words := strings.Fields(strings.ReplaceAll(line, "'", ""))
			for i, w := range words {
				if w == ">" || w == "<" {
					words = words[:i]
					break
				}
			}
			root := newRoot()
			cmd, args, err := root.Find(words[1:])
			if err != nil || words[0] != "sf2loki-ha" || cmd == root {
				t.Errorf("%s: %v", line, err)
				continue
			}
			if err := cmd.ParseFlags(args); err != nil {
				t.Errorf("%s: %v", line, err)
			}
			if err := cmd.ValidateArgs(cmd.Flags().Args()); err != nil {
				t.Errorf("%s: %v", line, err)
			}
		}
	}
	walk(newRoot())
	if examples < 12 {
		t.Errorf("%d examples", examples)
	}
}
