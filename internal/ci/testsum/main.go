// Command testsum reads the stream of "go test -json" from standard input and
// prints it for people: a line per package, the whole output of what failed,
// and as last line "N passed, N failed".
//
// A test that skips itself counts as failed if CI is set: nothing that could
// run is skipped there. The exit status is 1 if anything failed or nothing ran.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"sort"
	"strings"
)

// event is one line of go test -json.
type event struct {
	Action  string
	Package string
	Test    string
	Elapsed float64
	Output  string
	// ImportPath is set on build output.
	ImportPath string
}

// summary collects what a stream of events says.
type summary struct {
	out            io.Writer
	skipIsFailure  bool
	passed, failed int
	failures       []string
	started        map[string]bool     // packages without a verdict yet
	complete       bool                // the go command said that it has ended
	output         map[string][]string // by package and test
}

// trailer is the line that "make unit" appends when go test has ended.
const trailer = "go test ended with "

func newSummary(out io.Writer, skipIsFailure bool) *summary {
	return &summary{out: out, skipIsFailure: skipIsFailure, output: map[string][]string{}, started: map[string]bool{}}
}

func main() {
	s := newSummary(os.Stdout, os.Getenv("CI") != "")
	if err := s.read(os.Stdin); err != nil {
		fmt.Fprintln(os.Stderr, "testsum: read test output:", err)
		os.Exit(1)
	}
	if !s.finish() {
		os.Exit(1)
	}
}

func (s *summary) read(r io.Reader) error {
	lines := bufio.NewReader(r)
	for {
		line, err := lines.ReadBytes('\n')
		if len(line) > 0 {
			s.line(line)
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

func (s *summary) line(line []byte) {
	var e event
	if json.Unmarshal(line, &e) != nil {
		if strings.HasPrefix(string(line), trailer) {
			s.complete = true
			return
		}
		fmt.Fprint(s.out, string(line)) // go's own messages
		return
	}
	if e.Action == "start" {
		s.started[e.Package] = true
	}
	key := e.Package + " " + e.Test
	switch e.Action {
	case "output":
		s.output[key] = append(s.output[key], e.Output)
	case "build-output":
		fmt.Fprint(s.out, e.Output)
	case "pass", "fail", "skip":
		s.ended(e, key)
	}
}

func (s *summary) ended(e event, key string) {
	if e.Test == "" {
		delete(s.started, e.Package)
	}
	bad := e.Action == "fail" || (e.Action == "skip" && s.skipIsFailure && e.Test != "")
	switch {
	case e.Test != "" && bad:
		s.failed++
		s.failures = append(s.failures, key+" ("+e.Action+")")
		fmt.Fprintf(s.out, "--- %s %s\n%s", strings.ToUpper(e.Action), key, strings.Join(s.output[key], ""))
	case e.Test != "":
		if e.Action == "pass" {
			s.passed++
		}
		delete(s.output, key)
	case e.Action == "fail":
		// A package can fail without a test of its own: a build error, a panic,
		// a TestMain.
		fmt.Fprintf(s.out, "FAIL  %s (%.1fs)\n%s", e.Package, e.Elapsed, strings.Join(s.output[e.Package+" "], ""))
		if !s.named(e.Package) {
			s.failed++
			s.failures = append(s.failures, e.Package)
		}
	case e.Action == "pass":
		fmt.Fprintf(s.out, "ok    %s (%.1fs)\n", e.Package, e.Elapsed)
	}
}

// named reports whether a test of the package is among the failures.
func (s *summary) named(pkg string) bool {
	for _, f := range s.failures {
		if strings.HasPrefix(f, pkg+" ") {
			return true
		}
	}
	return false
}

// finish prints the verdict; false if anything failed or nothing ran.
func (s *summary) finish() bool {
	// A stream that was cut off proves nothing about what it does not name.
	for pkg := range s.started {
		s.failed++
		s.failures = append(s.failures, pkg+" (no verdict)")
	}
	if !s.complete {
		s.failed++
		s.failures = append(s.failures, "the stream of test results was cut off")
	}
	sort.Strings(s.failures)
	for _, f := range s.failures {
		fmt.Fprintln(s.out, "failed:", f)
	}
	if s.passed+s.failed == 0 {
		fmt.Fprintln(s.out, "no test ran")
	}
	fmt.Fprintf(s.out, "%d passed, %d failed\n", s.passed, s.failed)
	return s.failed == 0 && s.passed > 0
}
