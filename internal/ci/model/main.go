// Command model checks the Spin models in docs/model: the protocol within its
// bounds, and that every mutant of it is found. It needs Debian's spin and gcc.
//
//	go run ./internal/ci/model            what CI checks: minutes on two cores, below 2 GB
//	go run ./internal/ci/model -deep      wider bounds instead, up to 7 GB
//	go run ./internal/ci/model -only TEXT the checks whose name or define contains TEXT
//	go run ./internal/ci/model -trace     with the shortest way to what was found
//	go run ./internal/ci/model -markdown  with the tables of docs/model/README.md at the end
//
// It ends with status 1 if a model is violated, if a mutant survives or is found
// by another invariant than the one that it breaks, or if a search was cut short.
package main

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"time"
)

// workDir takes the generated programs, one directory a check.
const workDir = ".cache/model"

func main() {
	deep := flag.Bool("deep", false, "the searches with wider bounds, which take up to 7 GB of memory")
	only := flag.String("only", "", "run only checks whose name or define contains this")
	trace := flag.Bool("trace", false, "print how a situation that was found comes about")
	markdown := flag.Bool("markdown", false, "print the rows of docs/model/README.md")
	jobs := flag.Int("jobs", min(2, runtime.NumCPU()), "checks at a time")
	models := flag.String("models", "docs/model", "directory of the models")
	flag.Parse()
	if err := requireTools(); err != nil {
		fmt.Fprintln(os.Stderr, "model:", err)
		os.Exit(1)
	}
	list := selected(*only, *deep)
	if len(list) == 0 {
		fmt.Fprintf(os.Stderr, "model: no check is called %q\n", *only)
		os.Exit(1)
	}
	start := time.Now()
	fmt.Printf("%d checks, at most %d at a time\n%s\n", len(list), *jobs, heading)
	reports := run(list, *models, *trace, *jobs)
	if *markdown {
		for _, r := range reports {
			fmt.Println(r.row())
		}
	}
	failed := 0
	for _, r := range reports {
		if !r.ok {
			failed++
			fmt.Println("failed:", r.check.name)
		}
	}
	fmt.Printf("%d checks as expected, %d not, %v\n", len(reports)-failed, failed, time.Since(start).Round(time.Second))
	if failed > 0 {
		os.Exit(1)
	}
	_ = os.RemoveAll(workDir) // of no use any more; what failed stays to be looked at
}

func requireTools() error {
	for _, tool := range []string{"spin", "gcc"} {
		if _, err := exec.LookPath(tool); err != nil {
			return fmt.Errorf("%s is missing; on Debian or Ubuntu: apt-get install spin gcc libc6-dev", tool)
		}
	}
	return nil
}

func selected(only string, deep bool) []check {
	var list []check
	for _, c := range checks {
		if c.deep == deep && (strings.Contains(c.name, only) || strings.Contains(c.defines, only)) {
			list = append(list, c)
		}
	}
	return list
}

// run makes the checks and prints each when it has ended. Those that need the
// memory for themselves come first, one by one.
func run(list []check, models string, trace bool, jobs int) []report {
	reports := make([]report, len(list))
	var printing sync.Mutex
	one := func(i int) {
		r := list[i].run(models, filepath.Join(workDir, strconv.Itoa(i)), trace)
		reports[i] = r
		printing.Lock()
		defer printing.Unlock()
		fmt.Println(r.line())
		for _, step := range r.steps {
			fmt.Println("      ", step)
		}
	}
	var light []int
	for i, c := range list {
		if c.alone() {
			one(i)
		} else {
			light = append(light, i)
		}
	}
	var wg sync.WaitGroup
	slots := make(chan struct{}, max(1, jobs))
	for _, i := range light {
		slots <- struct{}{}
		wg.Go(func() {
			defer func() { <-slots }()
			one(i)
		})
	}
	wg.Wait()
	return reports
}
