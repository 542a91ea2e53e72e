package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestStateVerbsEndWithTheDocumentedCodes(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		t.Helper()
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	state := filepath.Join(dir, "state.json")
	good := write("good.yaml", fmt.Sprintf("state: {file: {path: %q}}\n", state))
	bad := write("bad.yaml", "state: {fil: {path: x}}\n")
	none := write("none.yaml", "state: {store: none}\n")
	cut := write("cut.yaml", fmt.Sprintf("state: {file: {path: %q}}\n", write("cut.json", `{"a": "1"`)))
	nodir := write("nodir.yaml", fmt.Sprintf("state: {file: {path: %q}}\n", filepath.Join(good, "state.json")))
	in := write("in.json", `{"a": "1"}`)

	verbs := map[string][]string{
		"show": nil, "set": {"k", "v"}, "delete": {"k"}, "export": nil, "import": {in}, "copy": {"file:" + in, "file:" + filepath.Join(dir, "out.json")}, "repair-fence": nil, "adopt": nil,
	}
	for verb, args := range verbs {
		for config, says := range map[string]string{bad: "state.fil", filepath.Join(dir, "gone.yaml"): "does not exist", none: "state.store"} {
			if verb == "copy" && config == none {
				continue // it needs no document of its own
			}
			code, out, errs := invoke(t, nil, append([]string{"state", verb, "--config", config}, args...)...)
			if code != 2 || out != "" || !strings.Contains(errs, says) {
				t.Errorf("%s with %s: code %d, %q, %s", verb, filepath.Base(config), code, out, errs)
			}
		}
		code, _, errs := invoke(t, nil, append([]string{"state", verb, "--config", good, "one", "two", "three"}, args...)...)
		if code != 2 || !strings.Contains(errs, "Try: ") {
			t.Errorf("%s with too many arguments: code %d, %s", verb, code, errs)
		}
		if code, out, _ := invoke(t, nil, "state", verb, "--help"); code != 0 || !strings.Contains(out, "sf2loki-ha state "+verb) {
			t.Errorf("%s --help: code %d, %s", verb, code, out)
		}
	}
	for name, c := range map[string]struct {
		args []string
		code int
		out  string // of it, standard output is exactly that
		says string // of standard error
	}{
		"show on an empty store":          {[]string{"state", "show", "--config", good}, 0, "(no checkpoints match)\n", ""},
		"the configuration first":         {[]string{"--config", good, "state", "show"}, 0, "(no checkpoints match)\n", ""},
		"in the middle":                   {[]string{"state", "--config", good, "show"}, 0, "(no checkpoints match)\n", ""},
		"a reserved key":                  {[]string{"state", "set", "--config", good, "__fence_epoch__", "9"}, 1, "", "reserved"},
		"a reserved key, forced":          {[]string{"state", "delete", "--config", good, "--force", "__fence__"}, 1, "", "reserved"},
		"deleting what is not there":      {[]string{"state", "delete", "--config", good, "x"}, 0, "sf2loki: deleted x (it was not there)\n", ""},
		"an export of nothing":            {[]string{"state", "export", "--config", good}, 1, "", "does not exist"},
		"an import that is not there":     {[]string{"state", "import", "--config", good, filepath.Join(dir, "gone.json")}, 1, "", "gone.json"},
		"an unknown verb":                 {[]string{"state", "shwo", "--config", good}, 2, "", `did you mean "show"`},
		"an unknown flag":                 {[]string{"state", "show", "--colour"}, 2, "", "--colour"},
		"an unknown scheme":               {[]string{"state", "copy", "--config", good, "http://x/y", "file:" + state}, 2, "", "unknown scheme"},
		"a path without a scheme":         {[]string{"state", "copy", "--config", good, in, "file:" + state}, 2, "", "file:" + in},
		"onto itself":                     {[]string{"state", "copy", "--config", good, "file:" + in, "file:" + in}, 2, "", "same object"},
		"an epoch of 0":                   {[]string{"state", "repair-fence", "--config", good, "--epoch", "0"}, 2, "", "at least 1"},
		"no verb":                         {[]string{"state"}, 0, "", ""},
		"a damaged document":              {[]string{"state", "show", "--config", cut}, 1, "", "move it aside"},
		"a directory that cannot be made": {[]string{"state", "set", "--config", nodir, "k", "v"}, 1, "", fmt.Sprintf("uid %d cannot write in the directory %s", os.Geteuid(), good)},
	} {
		code, out, errs := invoke(t, nil, c.args...)
		if code != c.code || c.out != "" && out != c.out || code != 0 && out != "" || !strings.Contains(errs, c.says) {
			t.Errorf("%s: code %d, %q, %q", name, code, out, errs)
		}
		if strings.Contains(errs, "goroutine ") {
			t.Errorf("%s: a stack trace:\n%s", name, errs)
		}
	}
	if _, err := os.Stat(state); err == nil {
		t.Error("something was written")
	}
}
