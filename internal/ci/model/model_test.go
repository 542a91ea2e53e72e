package main

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const models = "../../../docs/model"

// sources returns the text of a model with its parts.
func sources(t *testing.T, model string) string {
	t.Helper()
	parts, err := filepath.Glob(filepath.Join(models, model, "*.pml"))
	if err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	for _, path := range append(parts, filepath.Join(models, model+".pml")) {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		text.Write(data)
	}
	return text.String()
}

func switches(text string, pattern string) []string {
	found := regexp.MustCompile(pattern).FindAllStringSubmatch(text, -1)
	var names []string
	for _, m := range found {
		names = append(names, m[1])
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// A mutant, a limit or a witness that no check switches on would show nothing,
// and one that the model does not know would pass for the protocol.
func TestEverySwitchOfAModelIsChecked(t *testing.T) {
	for _, model := range []string{"lease", "fence", "guard"} {
		text := sources(t, model)
		inModel := append(switches(text, `\b((?:MUT|LIMIT)_[A-Z0-9_]+)\b`), switches(text, `witness\(([A-Z_]+)\)`)...)
		var inChecks []string
		for _, c := range checks {
			if c.model != model {
				continue
			}
			for _, d := range strings.Fields(c.defines) {
				if w, ok := strings.CutPrefix(d, "WITNESS="); ok {
					inChecks = append(inChecks, w)
				} else if strings.HasPrefix(d, "MUT_") || strings.HasPrefix(d, "LIMIT_") {
					inChecks = append(inChecks, d)
				}
			}
		}
		slices.Sort(inModel)
		slices.Sort(inChecks)
		inChecks = slices.Compact(inChecks)
		if len(inModel) == 0 || !slices.Equal(inModel, inChecks) {
			t.Errorf("%s knows\n%v, the checks switch on\n%v", model, inModel, inChecks)
		}
	}
}

// A define that is misspelt would widen no bound and raise no error.
func TestEveryDefineOfACheckIsKnownToItsModel(t *testing.T) {
	for _, c := range checks {
		text := sources(t, c.model)
		for _, d := range strings.Fields(c.defines) {
			name, _, _ := strings.Cut(d, "=")
			if !regexp.MustCompile(`(?m)^#\s*(if|ifdef|ifndef|elif)\b.*\b` + name + `\b`).MatchString(text) {
				t.Errorf("%s: %s does not know %s", c.name, c.model, name)
			}
		}
	}
}

func TestTheTablesOfTheModelsShowTheChecks(t *testing.T) {
	data, err := os.ReadFile(filepath.Join(models, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	var rows []string
	for line := range strings.Lines(string(data)) {
		if regexp.MustCompile(`^\| (lease|fence|guard) \|`).MatchString(line) {
			rows = append(rows, strings.TrimSpace(line))
		}
	}
	for i, c := range checks {
		switch {
		case i >= len(rows):
			t.Fatalf("README.md lacks %s", c.row())
		case c.kind() == "protocol" && !regexp.MustCompile(regexp.QuoteMeta(c.row())+`( [\d,]+ \|){3}$`).MatchString(rows[i]),
			c.kind() != "protocol" && rows[i] != c.row():
			t.Errorf("README.md says\n%s\nwant, with figures for the protocol,\n%s", rows[i], c.row())
		}
	}
	if len(rows) > len(checks) {
		t.Errorf("README.md has %d rows for %d checks: %s", len(rows), len(checks), rows[len(checks)])
	}
}

// Who is named as showing what a model leaves out exists.
func TestWhatTheModelsPointToExists(t *testing.T) {
	data, err := os.ReadFile(filepath.Join(models, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	root := filepath.Join(models, "..", "..")
	var code strings.Builder
	for _, dir := range []string{"coordinator", "checkpoint", "internal/guard", "internal/supervise"} {
		files, err := filepath.Glob(filepath.Join(root, dir, "*_test.go"))
		if err != nil || len(files) == 0 {
			t.Fatal(dir, files, err)
		}
		for _, f := range files {
			text, err := os.ReadFile(f)
			if err != nil {
				t.Fatal(err)
			}
			code.Write(text)
		}
	}
	named := switches(string(data), "`(Test[A-Z]\\w+)`")
	if len(named) == 0 {
		t.Error("no test is named")
	}
	for _, name := range named {
		if !strings.Contains(code.String(), "func "+name+"(") {
			t.Errorf("README.md names %s, which does not exist", name)
		}
	}
	for _, path := range switches(string(data), "`((?:coordinator|checkpoint|internal|lease|fence)/[a-z0-9_/]+(?:\\.go|\\.pml)?)`") {
		_, inRoot := os.Stat(filepath.Join(root, path))
		_, inModels := os.Stat(filepath.Join(models, path))
		if inRoot != nil && inModels != nil {
			t.Errorf("README.md names %s, which does not exist", path)
		}
	}
}

func TestThereAreChecksOfEveryKind(t *testing.T) {
	count := map[string]int{}
	for _, c := range checks {
		count[c.kind()]++
	}
	if count["mutant"] < 10 || count["limit"] == 0 || count["witness"] == 0 || count["protocol"] == 0 {
		t.Errorf("%v", count)
	}
}

// What the generated program prints decides; a search that did not end, or that
// found something else, is never what was expected.
func TestASearchIsJudgedByWhatItPrints(t *testing.T) {
	const ended = "State-vector 132 byte, depth reached 55, errors: 0\n   719426 states, stored\n  295.500\ttotal actual memory usage\n"
	found := func(assertion string) string {
		return "pan:1: assertion violated " + assertion + " (at depth 21)\nState-vector 132 byte, depth reached 21, errors: 1\n  1409 states, stored\n"
	}
	const both = "(((i==r)|| !(acting[i]))|| !(acting[r]))"
	for name, test := range map[string]struct {
		found, output, result string
		ok                    bool
	}{
		"holds":                           {"", ended, "holds", true},
		"the protocol is violated":        {"", found(both), "found: I1", false},
		"a mutant is found":               {i1, found(both), "found: I1", true},
		"a mutant survives":               {i1, ended, "holds", false},
		"found by another invariant":      {i2, found(both), "found: I1", false},
		"found by the bound of the model": {i1, found("(i<=7)"), "found: bound", false},
		"found by what nobody knows":      {i1, found("(x==y)"), "an assertion without a name", false},
		"a witness":                       {witnessed, found("(4!=4)"), "occurs", true},
		"no witness":                      {witnessed, ended, "holds", false},
		"out of memory":                   {"", "pan: reached -DMEMLIM bound\n" + ended, "cut short: out of memory", false},
		"not completed":                   {"", "Warning: Search not completed\n" + ended, "cut short", false},
		"killed":                          {"", "", "cut short", false},
		"a deadlock":                      {"", "pan:1: invalid end state (at depth 3)\nerrors: 1\n 3 states, stored\n", "an error without an assertion", false},
	} {
		t.Run(name, func(t *testing.T) {
			r := report{check: check{model: "lease", name: name, found: test.found}}
			r.read(test.output)
			if !strings.Contains(r.result, test.result) {
				t.Errorf("%q, want %q", r.result, test.result)
			}
			if ok := r.result == r.check.expected(); ok != test.ok {
				t.Errorf("as expected: %v, want %v", ok, test.ok)
			}
		})
	}
}

// The names of invariants hang on how assertions are spelt: each text is in the
// model that it is looked for in.
func TestEveryAssertionThatIsNamedIsInItsModel(t *testing.T) {
	for model, list := range assertions {
		text := strings.NewReplacer(" ", "", "\t", "").Replace(sources(t, model))
		for _, a := range list {
			want := strings.Trim(a.text, "()")
			if !strings.Contains(text, want) {
				t.Errorf("%s: no %q for %s", model, a.text, a.invariant)
			}
		}
	}
}
