package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/sf2loki/sf2loki-ha/coordinator"
)

// The verbs of docs/requests.md, as a person on call would use them.
func TestAPersonHoldsResumesAndMovesAPairFromTheCommandLine(t *testing.T) {
	b := s3Backend(t)
	p := newPair(t, b)
	config := filepath.Join(t.TempDir(), "config.yaml")
	if err := os.WriteFile(config, []byte(b.config), 0o600); err != nil {
		t.Fatal(err)
	}
	lease := func(args ...string) string {
		t.Helper()
		cmd := exec.Command(binary(t), append([]string{"lease", "--config", config}, args...)...)
		cmd.Env = append(os.Environ(), b.env...)
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("lease %s: %v\n%s", strings.Join(args, " "), err, out)
		}
		return string(out)
	}
	if got := lease("show"); !strings.Contains(got, "state        held") || !strings.Contains(got, p.leader.Name) {
		t.Errorf("%s", got)
	}
	if got := lease("hold", "--for", "15m", "--reason", "repairing checkpoints"); !strings.Contains(got, "the lease is released") {
		t.Errorf("%s", got)
	}
	if rec := b.record(t); rec.State != coordinator.Released {
		t.Errorf("the lease is %s during the hold", rec.State)
	}
	if got := lease("resume"); !strings.Contains(got, "somebody leads") {
		t.Errorf("%s", got)
	}
	before := b.record(t)
	if got := lease("step-down", "--reason", "moving zones"); !strings.Contains(got, "has ended") {
		t.Errorf("%s", got)
	}
	b.await(t, 10*time.Second, "the other one leads", func(r coordinator.Record) bool {
		return r.State == coordinator.Held && r.Holder != before.Holder
	})
	p.sound(t)
}
