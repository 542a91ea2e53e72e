// Package docscheck tests what the documents claim: names of tests exist, links
// lead somewhere, snippets work.
package docscheck

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"sort"
	"strings"
	"testing"

	"github.com/sf2loki/sf2loki-ha/internal/config"
)

const root = "../.."

// testNames returns the name of every test function in the tree.
func testNames(t *testing.T) map[string]bool {
	t.Helper()
	names := map[string]bool{}
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && (strings.HasPrefix(d.Name(), ".") && path != root || d.Name() == "testdata") {
			return filepath.SkipDir
		}
		if !strings.HasSuffix(path, "_test.go") {
			return nil
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		for _, decl := range file.Decls {
			if f, ok := decl.(*ast.FuncDecl); ok && f.Recv == nil && regexp.MustCompile(`^(Test|Fuzz|Example)`).MatchString(f.Name.Name) {
				names[f.Name.Name] = true
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return names
}

func read(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(root, path))
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func TestEveryFaultNamesTestsThatExistOrAReason(t *testing.T) {
	names := testNames(t)
	seen := map[string]bool{}
	for i, line := range strings.Split(strings.TrimSpace(read(t, "docs/faults.tsv")), "\n") {
		if strings.HasPrefix(line, "#") {
			continue
		}
		id, what, ok := strings.Cut(line, "\t")
		if !ok || id == "" || what == "" {
			t.Errorf("line %d: want id, tab, test name or n/a: reason: %q", i+1, line)
			continue
		}
		if seen[id] {
			t.Errorf("line %d: %s occurs twice", i+1, id)
		}
		seen[id] = true
		if reason, ok := strings.CutPrefix(what, "n/a:"); ok {
			if len(strings.TrimSpace(reason)) < 10 {
				t.Errorf("line %d: %s has no reason", i+1, id)
			}
			continue
		}
		for _, name := range strings.Split(what, ",") {
			if name = strings.TrimSpace(name); !names[name] {
				t.Errorf("line %d: %s names %s, which does not exist", i+1, id, name)
			}
		}
	}
	// The faults that the first complete path has to prevent.
	for _, id := range strings.Fields("C-02 C-05 S-01 S-03 N-09 N-11 N-18 N-20 N-29 A1 A2 B1 B2 B7 B9 C1 C7 D1 E2 F2 F3 F9 G1 J1 J2") {
		if !seen[id] {
			t.Errorf("fault %s is missing", id)
		}
	}
}

func TestEveryAcceptanceCriterionNamesTestsThatExist(t *testing.T) {
	names := testNames(t)
	rows := 0
	for _, line := range strings.Split(read(t, "docs/acceptance.md"), "\n") {
		if !strings.HasPrefix(line, "| ") || strings.HasPrefix(line, "| criterion") {
			continue
		}
		rows++
		found := regexp.MustCompile(`\bTest\w+`).FindAllString(line, -1)
		if len(found) == 0 && !strings.Contains(line, "deviation:") {
			t.Errorf("neither a test nor a deviation: %s", line)
		}
		for _, name := range found {
			if !names[name] {
				t.Errorf("%s does not exist: %s", name, line)
			}
		}
	}
	if rows < 10 {
		t.Errorf("%d criteria", rows)
	}
}

func documents(t *testing.T) []string {
	t.Helper()
	docs, err := filepath.Glob(filepath.Join(root, "docs", "*.md"))
	if err != nil {
		t.Fatal(err)
	}
	docs = append(docs, filepath.Join(root, "README.md"), filepath.Join(root, "CONTRIBUTING.md"))
	sort.Strings(docs)
	return docs
}

func TestEveryRelativeLinkLeadsToAFile(t *testing.T) {
	link := regexp.MustCompile(`\]\(([^)#]+)[^)]*\)`)
	for _, doc := range documents(t) {
		data, err := os.ReadFile(doc)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range link.FindAllStringSubmatch(string(data), -1) {
			if strings.Contains(m[1], "://") {
				continue
			}
			if _, err := os.Stat(filepath.Join(filepath.Dir(doc), m[1])); err != nil {
				t.Errorf("%s links to %s: %v", filepath.Base(doc), m[1], err)
			}
		}
	}
}

func TestTestsNamedInDocumentsExist(t *testing.T) {
	names := testNames(t)
	for _, doc := range documents(t) {
		data, err := os.ReadFile(doc)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range regexp.MustCompile("`(Test[A-Z]\\w+)`").FindAllStringSubmatch(string(data), -1) {
			if !names[name[1]] {
				t.Errorf("%s names %s, which does not exist", filepath.Base(doc), name[1])
			}
		}
	}
}

// The configuration that the README shows is valid as it stands.
func TestTheConfigurationOfTheReadmeLoads(t *testing.T) {
	blocks := regexp.MustCompile("(?s)```yaml\n(.*?)```").FindAllStringSubmatch(read(t, "README.md"), -1)
	if len(blocks) == 0 {
		t.Fatal("the README shows no configuration")
	}
	for _, block := range blocks {
		path := filepath.Join(t.TempDir(), "config.yaml")
		if err := os.WriteFile(path, []byte(block[1]), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := config.Load(path, nil); err != nil {
			t.Error(err)
		}
	}
}

func TestTheFirstCommandOfTheReadmeIsOnTheFirstScreen(t *testing.T) {
	before, _, ok := strings.Cut(read(t, "README.md"), "```sh")
	if lines := strings.Count(before, "\n"); !ok || lines > 30 {
		t.Errorf("%d lines before the first command, want at most 30", lines)
	}
}

// Every make target a document names exists.
func TestMakeTargetsInDocumentsExist(t *testing.T) {
	makefile := read(t, "Makefile")
	for _, doc := range documents(t) {
		data, err := os.ReadFile(doc)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range regexp.MustCompile("`make ([a-z-]+)").FindAllStringSubmatch(string(data), -1) {
			if !regexp.MustCompile(`(?m)^` + m[1] + `:`).MatchString(makefile) {
				t.Errorf("%s names make %s, which does not exist", filepath.Base(doc), m[1])
			}
		}
	}
}
