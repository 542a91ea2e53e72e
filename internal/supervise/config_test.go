package supervise

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestConfigErrorsNameTheField(t *testing.T) {
	good := Config{Command: []string{"true"}, StopGrace: time.Second, KillMargin: time.Second}
	if err := good.Validate(); err != nil {
		t.Errorf("a good configuration: %v", err)
	}
	for name, tt := range map[string]struct {
		change func(*Config)
		text   string
	}{
		"no command":        {func(c *Config) { c.Command = nil }, "no command"},
		"empty command":     {func(c *Config) { c.Command = []string{""} }, "no command"},
		"no stop grace":     {func(c *Config) { c.StopGrace = 0 }, "stop grace 0s"},
		"negative margin":   {func(c *Config) { c.KillMargin = -1 }, "kill margin -1ns"},
		"several at a time": {func(c *Config) { *c = Config{} }, "kill margin"},
	} {
		c := good
		tt.change(&c)
		err := c.Validate()
		if err == nil || !strings.Contains(err.Error(), tt.text) {
			t.Errorf("%s: error %v, want one that contains %q", name, err, tt.text)
		}
		if _, again := New(c); again == nil {
			t.Errorf("%s: New accepts it", name)
		}
	}
}

func TestMissingCommandIsFoundBeforeCandidacy(t *testing.T) {
	dir := t.TempDir()
	plain, program := filepath.Join(dir, "plain"), filepath.Join(dir, "program")
	if err := os.WriteFile(plain, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(program, nil, 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir)
	for command, good := range map[string]bool{
		program: true, "program": true,
		plain: false, "plain": false, "no-such-command": false, filepath.Join(dir, "none"): false, dir: false, "": false,
	} {
		err := LookPath(Config{Command: []string{command}})
		if good != (err == nil) {
			t.Errorf("%q: error %v", command, err)
		}
		if err != nil && command != "" && !strings.Contains(err.Error(), command) {
			t.Errorf("%q: error %q does not name the command", command, err)
		}
	}
	if err := LookPath(Config{}); err == nil {
		t.Error("no command at all is accepted")
	}
	if err := LookPath(Config{Command: []string{"no-such-command"}}); !strings.Contains(err.Error(), exec.ErrNotFound.Error()) {
		t.Errorf("error %q does not say that the command was not found", err)
	}
}
