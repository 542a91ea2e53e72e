package linkfile

import (
	"bufio"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/sf2loki/sf2loki-ha/cas"
)

const (
	childPath  = "SF2LOKI_HA_LINKFILE_TEST_PATH"
	childName  = "SF2LOKI_HA_LINKFILE_TEST_NAME"
	childKills = "SF2LOKI_HA_LINKFILE_TEST_KILLS_ITSELF"
)

const (
	processes  = 4
	killedRuns = 10 // of each process
	increments = 15 // of each run, if it lives as long
)

// The object is a list of lines, one a write: version n has n of them, and the
// last one is its own.

func lines(data []byte) []string { return strings.Fields(string(data)) }

// TestIncrements is the child: it appends lines, one at a time, and says so. Run
// alone it is one process in a directory of its own.
func TestIncrements(t *testing.T) {
	path, name := os.Getenv(childPath), os.Getenv(childName)
	if path == "" {
		path, name = lease(t), "alone"
	}
	if os.Getenv(childKills) != "" {
		// After its first line, at any moment of one of the next few writes.
		time.AfterFunc(rand.N(120*time.Millisecond), func() { _ = syscall.Kill(os.Getpid(), syscall.SIGKILL) })
	}
	r := New(path, Options{MaxReadAge: time.Second})
	for n := range increments {
		mine := fmt.Sprintf("%s/%d/", name, n)
		for attempt := 0; ; attempt++ {
			v, err := r.Load(t.Context())
			if err != nil && !errors.Is(err, cas.NotFound) {
				t.Fatal(err)
			}
			if at := find(lines(v.Data), mine); at > 0 { // an earlier attempt, without a clear answer
				fmt.Println("landed", at, mine)
				break
			}
			data := fmt.Appendf(v.Data, "%s%d\n", mine, attempt)
			if v.Version == "" {
				v.Version, err = r.Create(t.Context(), data)
			} else {
				v.Version, err = r.Replace(t.Context(), data, v.Version)
			}
			if err == nil {
				fmt.Println("landed", seq(t, v.Version), mine)
				break
			}
			if !errors.Is(err, cas.Conflict) && !errors.Is(err, cas.Ambiguous) {
				t.Fatal(err)
			}
		}
	}
}

// find returns the number of the line with that beginning, counted from 1.
func find(lines []string, prefix string) int {
	for i, l := range lines {
		if strings.HasPrefix(l, prefix) {
			return i + 1
		}
	}
	return 0
}

func TestProcessesThatAreKilledAtAnyMomentLoseNoWriteOfAnybody(t *testing.T) {
	path := lease(t)
	var (
		mu     sync.Mutex
		landed = map[int]string{} // by number
		killed int
		wg     sync.WaitGroup
	)
	run := func(name string, kills bool) {
		cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestIncrements$")
		cmd.Env = append(os.Environ(), childPath+"="+path, childName+"="+name)
		if kills {
			cmd.Env = append(cmd.Env, childKills+"=1")
		}
		cmd.Stderr = os.Stderr
		out, err := cmd.StdoutPipe()
		if err == nil {
			err = cmd.Start()
		}
		if err != nil {
			t.Error(err)
			return
		}
		said := 0
		for s := bufio.NewScanner(out); s.Scan(); {
			f := strings.Fields(s.Text())
			if len(f) != 3 || f[0] != "landed" {
				continue
			}
			n, err := strconv.Atoi(f[1])
			mu.Lock()
			if other, taken := landed[n]; err != nil || taken {
				t.Errorf("number %s was given to %s and to %s", f[1], other, f[2])
			}
			landed[n] = f[2]
			mu.Unlock()
			said++
		}
		err = cmd.Wait()
		var exit *exec.ExitError
		switch {
		case errors.As(err, &exit) && exit.Sys().(syscall.WaitStatus).Signal() == syscall.SIGKILL:
			mu.Lock()
			killed++
			mu.Unlock()
		case err != nil:
			t.Errorf("%s: %v", name, err)
		case said != increments:
			t.Errorf("%s: %d writes landed, want %d", name, said, increments)
		}
	}
	for p := range processes {
		wg.Go(func() {
			for k := range killedRuns {
				run(fmt.Sprintf("p%d-run%d", p, k), true)
			}
			run(fmt.Sprintf("p%d-last", p), false)
		})
	}

	// A reader meanwhile: versions only go up, and each one extends the one before.
	done := make(chan struct{})
	go func() { wg.Wait(); close(done) }()
	r := New(path, Options{})
	var last cas.Value
	for finished := false; !finished; {
		select {
		case <-done:
			finished = true
		default:
		}
		v, err := r.Load(t.Context())
		switch {
		case errors.Is(err, cas.NotFound) && last.Version == "":
		case err != nil:
			t.Fatal(err)
		case last.Version != "" && seq(t, v.Version) < seq(t, last.Version), !strings.HasPrefix(string(v.Data), string(last.Data)):
			t.Fatalf("%q with %d bytes after %q with %d", v.Version, len(v.Data), last.Version, len(last.Data))
		default:
			last = v
		}
	}

	all := lines(last.Data)
	if int64(len(all)) != seq(t, last.Version) {
		t.Errorf("version %q has %d lines", last.Version, len(all))
	}
	seen := map[string]bool{}
	for _, l := range all {
		id := l[:strings.LastIndex(l, "/")+1]
		if seen[id] {
			t.Errorf("%s landed twice", id)
		}
		seen[id] = true
	}
	for n, mine := range landed {
		if n > len(all) || !strings.HasPrefix(all[n-1], mine) {
			t.Errorf("%s was confirmed as number %d and is not there", mine, n)
		}
	}
	if len(landed) < processes*increments || killed < killedRuns {
		t.Errorf("%d writes confirmed, %d runs killed: too few to show anything", len(landed), killed)
	}
	t.Logf("%d writes, %d confirmed, %d of %d runs killed", len(all), len(landed), killed, processes*killedRuns)
}
