package config

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// write puts text into a fresh file and returns its path.
func write(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "config.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// load reads text with exactly the given environment and expects success.
func load(t *testing.T, text string, env ...string) *Config {
	t.Helper()
	c, err := Load(write(t, text), env)
	if err != nil {
		t.Fatalf("Load: %v", err)
	}
	return c
}

// problems reads text and expects a configuration error, whose problems it
// returns with the file's path shortened to FILE.
func problems(t *testing.T, text string, env ...string) []string {
	t.Helper()
	path := write(t, text)
	c, err := Load(path, env)
	return shorten(t, path, c, err)
}

func shorten(t *testing.T, path string, c *Config, err error) []string {
	t.Helper()
	var config *Error
	if !errors.As(err, &config) || c != nil {
		t.Fatalf("Load = %v, %v; want no configuration and an *Error", c, err)
	}
	lines := strings.Split(strings.ReplaceAll(err.Error(), path, "FILE"), "\n")
	if lines[0] != "invalid configuration:" || len(lines) != len(config.Problems)+1 {
		t.Fatalf("layout: want a headline and one line for each of %d problems:\n%v", len(config.Problems), err)
	}
	for i, line := range lines[1:] {
		if !strings.HasPrefix(line, "  ") || strings.TrimSpace(line) != line[2:] {
			t.Fatalf("line %d is not indented by two spaces: %q", i+1, line)
		}
		if strings.Contains(line, ") (") {
			t.Fatalf("two parentheses in a row: %q", line)
		}
		lines[i+1] = line[2:]
	}
	return lines[1:]
}

// exactly compares whole problem lines.
func exactly(t *testing.T, got []string, want ...string) {
	t.Helper()
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("problems:\n  %s\nwant:\n  %s", strings.Join(got, "\n  "), strings.Join(want, "\n  "))
	}
}

// one expects a single problem that holds every fragment.
func one(t *testing.T, got []string, fragments ...string) {
	t.Helper()
	if len(got) != 1 {
		t.Fatalf("%d problems, want one:\n  %s", len(got), strings.Join(got, "\n  "))
	}
	for _, f := range fragments {
		if !strings.Contains(got[0], f) {
			t.Errorf("problem lacks %q:\n  %s", f, got[0])
		}
	}
}
