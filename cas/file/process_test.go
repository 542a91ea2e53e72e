package file_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sf2loki/sf2loki-ha/cas"
	"github.com/sf2loki/sf2loki-ha/cas/file"
)

const childEnv = "SF2LOKI_HA_FILE_TEST_PATH"

const turns = 50 // increments of each process

// TestIncrements is the child: it adds to the counter in the file, one at a time.
func TestIncrements(t *testing.T) {
	path := os.Getenv(childEnv)
	mine := turns
	if path == "" { // run alone: one process
		path = filepath.Join(t.TempDir(), "counter")
	}
	r := file.New(path)
	for mine > 0 {
		v, err := r.Load(t.Context())
		switch cas.ClassOf(err) {
		case "":
			_, err = r.Replace(t.Context(), append(v.Data, '+'), v.Version)
		case cas.NotFound:
			_, err = r.Create(t.Context(), []byte("+"))
		}
		switch cas.ClassOf(err) {
		case "":
			mine--
		case cas.Conflict:
		default:
			t.Fatal(err)
		}
	}
}

func TestNoIncrementOfAnyProcessIsLost(t *testing.T) {
	const processes = 4
	path := filepath.Join(t.TempDir(), "sub", "counter")
	var cmds []*exec.Cmd
	for range processes {
		cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestIncrements$")
		cmd.Env = append(os.Environ(), childEnv+"="+path)
		cmd.Stdout, cmd.Stderr = os.Stderr, os.Stderr
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		cmds = append(cmds, cmd)
	}
	for _, cmd := range cmds {
		if err := cmd.Wait(); err != nil {
			t.Errorf("child: %v", err)
		}
	}
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := string(data), strings.Repeat("+", processes*turns); got != want {
		t.Errorf("%s increments, want %d", fmt.Sprint(len(got)), len(want))
	}
}
