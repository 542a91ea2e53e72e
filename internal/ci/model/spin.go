package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// Memory in megabytes that the searches may take at one time. CI machines are
// small.
const (
	memory     = 1900
	deepMemory = 7000
)

// alone reports that no other search runs beside this one.
func (c check) alone() bool { return c.heavy || c.deep }

// memory is the limit for one search, out of two at a time.
func (c check) memory() int {
	switch {
	case c.deep:
		return deepMemory
	case c.heavy:
		return memory
	}
	return memory / 2
}

// report is what became of a check.
type report struct {
	check    check
	states   int
	used     time.Duration // of processor: to generate, compile and search
	megabyte float64
	result   string // what the search said
	ok       bool   // it is what was expected
	steps    []string
}

const heading = "model  kind      what                                               replicas      states    CPU s     MB  result"

func (r report) line() string {
	mark := r.result
	if !r.ok {
		mark += "  FAILED, expected: " + r.check.expected()
	}
	return fmt.Sprintf("%-6s %-9s %-50s %8d %11d %8.1f %6.0f  %s", r.check.model, r.check.kind(), r.check.name,
		r.check.replicas(), r.states, r.used.Seconds(), r.megabyte, mark)
}

// row is the line of the table in docs/model/README.md that shows a check.
func (r report) row() string {
	row := r.check.row()
	if r.check.kind() == "protocol" {
		row += fmt.Sprintf(" %d | %.0f | %.0f |", r.states, r.used.Seconds(), r.megabyte)
	}
	return row
}

// expected is the result that a check has to have.
func (c check) expected() string {
	switch c.kind() {
	case "protocol":
		return "holds"
	case "witness":
		return "occurs"
	}
	return "found: " + c.found
}

// run generates, compiles and runs the search in dir.
func (c check) run(models, dir string, trace bool) report {
	r := report{check: c}
	output, err := r.search(models, dir)
	if err != nil {
		r.result = err.Error()
		return r
	}
	r.read(output)
	r.ok = r.result == c.expected()
	if !r.ok || trace {
		r.steps = r.story(dir)
	}
	return r
}

// search returns what the generated program printed.
func (r *report) search(models, dir string) (string, error) {
	c := r.check
	if err := os.RemoveAll(dir); err != nil {
		return "", err
	}
	if err := os.CopyFS(dir, os.DirFS(models)); err != nil {
		return "", fmt.Errorf("copy the models: %w", err)
	}
	var args []string
	for _, d := range strings.Fields(c.defines) {
		args = append(args, "-D"+d)
	}
	if out, err := r.command(dir, "spin", append(append([]string{"-a"}, args...), c.model+".pml")...); err != nil {
		return "", fmt.Errorf("spin: %w: %s", err, out)
	}
	// A mutant is found within a moment: compiling well would take longer.
	optimize := "-O2"
	if c.found != "" {
		optimize = "-O0"
	}
	// Breadth first, so that what is found is found by the shortest way. Every
	// state is stored whole: nothing is hashed away. There is no reduction to
	// trust, because all variables are shared.
	if out, err := r.command(dir, "gcc", optimize, "-w", "-DBFS", "-DSAFETY", "-DNOREDUCE", "-DNOCLAIM",
		"-DVECTORSZ=2048", "-DMEMLIM="+strconv.Itoa(c.memory()), "-o", "pan", "pan.c"); err != nil {
		return "", fmt.Errorf("gcc: %w: %s", err, out)
	}
	// Its status is no verdict; what it prints is. -E: a model that has come to
	// the end of its bounds may stand still.
	out, _ := r.command(dir, "./pan", "-E", "-n")
	return out, nil
}

func (r *report) command(dir, name string, args ...string) (string, error) {
	cmd := exec.Command(name, args...)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	if p := cmd.ProcessState; p != nil {
		r.used += p.UserTime() + p.SystemTime()
	}
	return string(out), err
}

var (
	statesLine = regexp.MustCompile(`(?m)^\s*(\d+) states, stored`)
	errorsLine = regexp.MustCompile(`errors: (\d+)`)
	memoryLine = regexp.MustCompile(`(?m)^\s*([\d.]+)\s+total actual memory usage`)
	violated   = regexp.MustCompile(`assertion violated (.*) \(at depth \d+\)`)
	witnessing = regexp.MustCompile(`^\((\d+)!=(\d+)\)$`)
)

// read fills a report from what the program printed.
func (r *report) read(output string) {
	number := func(line *regexp.Regexp) float64 {
		m := line.FindStringSubmatch(output)
		if m == nil {
			return -1
		}
		n, _ := strconv.ParseFloat(m[1], 64)
		return n
	}
	r.states, r.megabyte = int(number(statesLine)), number(memoryLine)
	errors, broken := number(errorsLine), violated.FindStringSubmatch(output)
	switch {
	case broken != nil:
		r.result = "found: " + r.check.invariant(strings.TrimSpace(broken[1]))
		if r.result == "found: "+witnessed {
			r.result = witnessed
		}
	case errors > 0:
		r.result = "an error without an assertion"
	case strings.Contains(output, "reached -DMEMLIM bound"):
		r.result = "cut short: out of memory"
	case errors < 0 || r.states <= 0 || strings.Contains(output, "Search not completed"):
		r.result = "cut short"
	default:
		r.result = "holds"
	}
}

// invariant names what an assertion stands for.
func (c check) invariant(assertion string) string {
	if m := witnessing.FindStringSubmatch(assertion); m != nil && m[1] == m[2] {
		return witnessed
	}
	for _, a := range assertions[c.model] {
		if strings.Contains(assertion, a.text) {
			return a.invariant
		}
	}
	return "an assertion without a name: " + assertion
}

// story replays what was found, in the words of the model.
func (r *report) story(dir string) []string {
	if trails, _ := filepath.Glob(filepath.Join(dir, "*.trail")); len(trails) == 0 {
		return nil
	}
	out, _ := r.command(dir, "./pan", "-r")
	var steps []string
	for line := range strings.Lines(out) {
		line = strings.TrimRight(line, "\n")
		// The words are at the margin; Spin's own lines are not, or name it. What
		// follows the end of the trail is the last state.
		if strings.HasPrefix(line, "spin: trail ends") {
			break
		}
		if line == "" || strings.HasPrefix(line, " ") || strings.HasPrefix(line, "\t") || strings.HasPrefix(line, "spin:") || strings.HasPrefix(line, "pan:") {
			continue
		}
		steps = append(steps, line)
	}
	return steps
}
