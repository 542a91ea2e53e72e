package sim_test

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/sf2loki/sf2loki-ha/internal/sim"
)

const root = "../.."

// hunt is how many histories a mutant may survive, from seed 1 on.
const hunt = 30000

// TestMutants: each defect is found by a history. One that survives is a hole in
// the simulator. The product is built with the changed file in place of its own;
// nothing else of it knows about mutants.
func TestMutants(t *testing.T) {
	for _, m := range mutants {
		t.Run(m.name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			binary := filepath.Join(dir, "sim")
			build(t, binary, "-overlay", m.overlay(t, dir))
			out, err := exec.Command(binary, "-quiet", "-seeds", strconv.Itoa(hunt), "-most", "1", "-lanes", "1", "-lines", "0").CombinedOutput()
			found, _, _ := strings.Cut(string(out), "\n")
			if err == nil || !strings.HasPrefix(found, "seed ") {
				t.Fatalf("survives %d histories (%v): %.300s", hunt, err, out)
			}
			// What the product itself does wrong is not the mutant's.
			var seed uint64
			if _, err := fmt.Sscanf(found, "seed %d:", &seed); err != nil {
				t.Fatalf("%q: %v", found, err)
			}
			if r := sim.Play(seed, false); r.Broken != "" {
				t.Fatalf("seed %d is broken without it: %s", seed, r.Broken)
			}
			t.Log(found)
		})
	}
}

// overlay writes the changed file, and the file that names it to the compiler.
func (m mutant) overlay(t *testing.T, dir string) string {
	t.Helper()
	path, err := filepath.Abs(filepath.Join(root, m.file))
	if err != nil {
		t.Fatal(err)
	}
	source, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(string(source), m.old); n != 1 {
		t.Fatalf("%s has %d places like %q, want one: the mutant has to follow its code", m.file, n, m.old)
	}
	changed := filepath.Join(dir, filepath.Base(m.file))
	text := strings.Replace(string(source), m.old, m.with, 1)
	if strings.Contains(m.with, "time.") && !strings.Contains(text, "\"time\"\n") {
		text = strings.Replace(text, "import ", "import \"time\"\nimport ", 1)
	}
	write(t, changed, []byte(text))
	list, err := json.Marshal(map[string]map[string]string{"Replace": {path: changed}})
	if err != nil {
		t.Fatal(err)
	}
	overlay := filepath.Join(dir, "overlay.json")
	write(t, overlay, list)
	return overlay
}

func write(t *testing.T, path string, data []byte) {
	t.Helper()
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
}

// build compiles the simulator, without the race detector: it has no threads.
func build(t *testing.T, binary string, flags ...string) {
	t.Helper()
	args := append(append([]string{"build", "-buildvcs=false", "-o", binary}, flags...), "./internal/sim/cmd/sim")
	cmd := exec.Command("go", args...)
	cmd.Dir = root
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("go %s: %v\n%.2000s", strings.Join(args, " "), err, out)
	}
}
