package docscheck

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// A test that sleeps is slow when the machine is fast and wrong when it is slow;
// one that skips itself shows nothing. Only tests of whole processes may wait by
// the clock.
func TestNoTestSkipsAndNoUnitTestSleeps(t *testing.T) {
	skips, sleeps := regexp.MustCompile(`\b[tb]\.Skip|testing\.Short\(`), regexp.MustCompile(`\btime\.Sleep\(`)
	files := 0
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() && path != root && (strings.HasPrefix(entry.Name(), ".") || entry.Name() == "tools") {
			return fs.SkipDir
		}
		if !strings.HasSuffix(path, "_test.go") || strings.HasSuffix(path, "docscheck/style_test.go") {
			return nil
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		files++
		name, _ := filepath.Rel(root, path)
		if skips.Match(data) {
			t.Errorf("%s skips a test", name)
		}
		if sleeps.Match(data) && !strings.HasPrefix(name, "e2e/") {
			t.Errorf("%s sleeps", name)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if files < 50 {
		t.Errorf("%d test files: nothing was checked", files)
	}
}
