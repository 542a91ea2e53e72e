package replica

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sf2loki/sf2loki-ha/internal/guard/guardtest"
)

// childRun runs a shell that shows the document and the variables it got.
func childRun(t *testing.T, command string) (dir, out string) {
	t.Helper()
	dir, out = t.TempDir(), filepath.Join(t.TempDir(), "out")
	t.Setenv("SF2LOKI_SERVICE__LOG_LEVEL", "debug")
	t.Setenv("SF2LOKI_SERVICE__RUNTIME_DIR", dir)
	t.Setenv("SF2LOKI_COORDINATE__TYPE", "noop")
	r, err := New(t.Context(), options(t, `
state: {store: none}
workload: {stop_grace: 2s}
service: {health_addr: "127.0.0.1:0", runtime_dir: "`+dir+`", shutdown_grace: 5s}
`, "sh", "-c", command+"; exec sleep 60", out))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- r.Run(ctx) }()
	defer func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	}()
	guardtest.Eventually(t, "the command's word", func() bool {
		_, err := os.Stat(out)
		return err == nil
	})
	return dir, out
}

func TestACommandGetsItsOwnConfiguration(t *testing.T) {
	dir, out := childRun(t, `f={child_config}; { stat -c %a $f; cat $f; env; } >$0.new; mv $0.new $0`)
	data, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	got := string(data)
	for _, want := range []string{"600\n", "type: noop", "health_addr: \"127.0.0.1:", "shutdown_grace: 4s", "SF2LOKI_SERVICE__LOG_LEVEL=debug", "SF2LOKI_HA_EPOCH="} {
		if !strings.Contains(got, want) {
			t.Errorf("lacks %q:\n%s", want, got)
		}
	}
	for _, never := range []string{"runtime_dir", "stop_grace", "RUNTIME_DIR", "SF2LOKI_COORDINATE"} {
		if strings.Contains(got, never) {
			t.Errorf("has %q:\n%s", never, got)
		}
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v %v", left, err)
	}
}

func TestACommandWithoutThePlaceholderHasTheEnvironmentUnchanged(t *testing.T) {
	_, out := childRun(t, `env >$0.new; mv $0.new $0`)
	data, err := os.ReadFile(out)
	if err != nil || !strings.Contains(string(data), "SF2LOKI_SERVICE__RUNTIME_DIR=") || !strings.Contains(string(data), "SF2LOKI_COORDINATE__TYPE=noop") {
		t.Errorf("%v\n%s", err, data)
	}
}

func TestAChildConfigurationThatCannotBeWrittenIsFoundBeforeCandidacy(t *testing.T) {
	_, err := New(t.Context(), options(t, "state: {store: none}\nservice: {health_addr: \"127.0.0.1:0\", runtime_dir: /no/such/dir}\n", "cat", "{child_config}"))
	var setup *SetupError
	if !errors.As(err, &setup) || !strings.Contains(err.Error(), "service.runtime_dir") {
		t.Errorf("%v", err)
	}
}
