package guardtest

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/sf2loki/sf2loki-ha/internal/boottime"
	"github.com/sf2loki/sf2loki-ha/internal/guard"
)

// Patience bounds every wait of a test for something that must happen.
const Patience = 30 * time.Second

// lifetime bounds the life of a program whose test died.
const lifetime = time.Minute

// Main is the body of TestMain. It turns the process into a guard or into one
// of the programs if it was started as one, and runs the tests otherwise.
// more adds programs of the calling package.
func Main(m *testing.M, more map[string]func(args []string) int) {
	if len(os.Args) > 1 && os.Args[1] == "guard" {
		os.Exit(guard.Main(os.Args[2:]))
	}
	if len(os.Args) > 2 && os.Args[1] == "program" {
		time.AfterFunc(lifetime, func() { os.Exit(97) })
		run, ok := programs[os.Args[2]]
		if !ok {
			run, ok = more[os.Args[2]]
		}
		if !ok {
			fmt.Fprintf(os.Stderr, "guardtest: no program %q\n", os.Args[2])
			os.Exit(98)
		}
		os.Exit(run(os.Args[3:]))
	}
	// A race detector waits a second before every exit, and we exit often.
	_ = os.Setenv("GORACE", "atexit_sleep_ms=0")
	os.Exit(m.Run())
}

// self is the path of the test binary. Not /proc/self/exe: a program starts
// others, and the path must stay good in every process.
func self() string {
	path, err := os.Executable()
	if err != nil {
		panic(err)
	}
	return path
}

// Program returns the command that runs one of the programs.
func Program(name string, args ...string) []string {
	return append([]string{self(), "program", name}, args...)
}

// GuardCommand returns the command that runs the guard.
func GuardCommand() []string { return []string{self(), "guard"} }

// Acts reads the instants that a witness wrote, oldest first. A line that its
// writer did not finish is no act. A file that does not exist holds none.
func Acts(t testing.TB, file string) []boottime.Instant {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	var acts []boottime.Instant
	lines := strings.SplitAfter(string(text), "\n")
	for _, line := range lines {
		if !strings.HasSuffix(line, "\n") {
			continue
		}
		n, err := strconv.ParseInt(strings.TrimSpace(line), 10, 64)
		if err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		acts = append(acts, boottime.Instant(n))
	}
	return acts
}

// LastAct returns the instant of the last act in file, which must hold one.
func LastAct(t testing.TB, file string) boottime.Instant {
	t.Helper()
	acts := Acts(t, file)
	if len(acts) == 0 {
		t.Fatalf("%s: the witness never acted", file)
	}
	return acts[len(acts)-1]
}

// Eventually waits until done reports true.
func Eventually(t testing.TB, what string, done func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), Patience)
	defer cancel()
	beat := time.NewTicker(2 * time.Millisecond)
	defer beat.Stop()
	for !done() {
		select {
		case <-ctx.Done():
			t.Fatalf("not within %v: %s", Patience, what)
		case <-beat.C:
		}
	}
}

// Until waits until the clock of the guard shows the instant.
func Until(t testing.TB, at boottime.Instant) {
	t.Helper()
	Eventually(t, "the instant", func() bool { return boottime.Now() >= at })
}

// WaitDead waits until the process has ended, reaped or not.
func WaitDead(t testing.TB, pid int) {
	t.Helper()
	fd, err := unix.PidfdOpen(pid, 0)
	if err == unix.ESRCH {
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	set := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
	Eventually(t, fmt.Sprintf("death of process %d", pid), func() bool {
		n, err := unix.Poll(set, 100)
		return err == nil && n == 1
	})
}

// Output is the stdout that the processes of a tree share. Its end shows that
// none of them is left.
type Output struct {
	// Writer is what the tree gets. [Output.Started] closes our copy.
	Writer *os.File
	reader *os.File
	lines  chan string
}

// NewOutput makes a pipe that is closed with the test.
func NewOutput(t testing.TB) *Output {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	o := &Output{Writer: w, reader: r, lines: make(chan string, 1024)}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		defer close(o.lines)
		scan := bufio.NewScanner(r)
		for scan.Scan() {
			o.lines <- scan.Text()
		}
	}()
	t.Cleanup(func() {
		_ = w.Close()
		_ = r.Close()
		<-ended
	})
	return o
}

// Started is called when the tree has its copy of Writer.
func (o *Output) Started() { _ = o.Writer.Close() }

// Line returns the next line of output; ok is false at its end.
func (o *Output) Line(t testing.TB) (line string, ok bool) {
	t.Helper()
	select {
	case line, ok = <-o.lines:
		return line, ok
	case <-time.After(Patience):
		t.Fatal("no output of the tree, and no end of it")
		return "", false
	}
}

// Ready waits until n programs are at work and returns the pid of each by the
// name of the program. Of several of one name the last counts.
func (o *Output) Ready(t testing.TB, n int) map[string]int {
	t.Helper()
	pids := make(map[string]int)
	for range n {
		line, ok := o.Line(t)
		var name string
		var pid int
		if !ok {
			t.Fatal("the tree ended before it was ready")
		}
		if _, err := fmt.Sscanf(line, "ready %s %d", &name, &pid); err != nil {
			t.Fatalf("output %q: %v", line, err)
		}
		pids[name] = pid
	}
	return pids
}

// Ended waits until no process has the output open and returns the lines that
// came meanwhile.
func (o *Output) Ended(t testing.TB) []string {
	t.Helper()
	var rest []string
	for {
		line, ok := o.Line(t)
		if !ok {
			return rest
		}
		rest = append(rest, line)
	}
}
