package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sf2loki/sf2loki-ha/internal/config"
)

// The verb is run as the process would be, with the exit codes of docs/exit-codes.md.
func TestBudgetReadsTheConfigurationAsRunDoes(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	good := write("good.yaml", "coordinate: {type: s3_lease, s3_lease: {bucket: b, region: r}}\nstate: {store: none}\n")
	bad := write("bad.yaml", "coordinate: {type: s3_lease, s3_lease: {bucket: b, ttl: 5s}}\nstate: {store: none}\n")
	budget := func(args ...string) (int, string) {
		root := newRoot()
		var out bytes.Buffer
		root.SetOut(&out)
		root.SetErr(&out)
		root.SetArgs(append([]string{"config", "budget"}, args...))
		code := finish(root)
		return code, out.String()
	}
	if code, out := budget("--config", good); code != exitOK || !strings.Contains(out, "16.4s") {
		t.Errorf("exit %d: %s", code, out)
	}
	_, want := config.Load(bad, os.Environ())
	if code, out := budget("--config", bad); want == nil || code != exitUsage || !strings.Contains(out, want.Error()) {
		t.Errorf("exit %d: %s\nwant the message of the configuration: %v", code, out, want)
	}
	for _, args := range [][]string{{}, {"--profile", "quick"}, {"--config", filepath.Join(dir, "absent")}, {"more"}} {
		if code, out := budget(args...); code != exitUsage {
			t.Errorf("%q: exit %d: %s", args, code, out)
		}
	}
}
