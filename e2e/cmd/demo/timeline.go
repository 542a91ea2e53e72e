package main

import (
	"fmt"
	"io"
	"os"
	"sync"
	"time"
)

// timeline prints one line per thing that happened, with the time since start.
type timeline struct {
	out    io.Writer
	colour bool
	start  time.Time
	mu     sync.Mutex
}

func newTimeline(f *os.File) *timeline {
	info, err := f.Stat()
	terminal := err == nil && info.Mode()&os.ModeCharDevice != 0
	return &timeline{out: f, colour: terminal && os.Getenv("NO_COLOR") == "", start: time.Now()}
}

// colours of the actors; others stay plain.
var colours = map[string]string{"A": "36", "B": "35", "kill": "31", "stop": "33", "ok": "32"}

func (t *timeline) say(who, format string, args ...any) {
	t.mu.Lock()
	defer t.mu.Unlock()
	name := fmt.Sprintf("%-5s", who)
	if code := colours[who]; t.colour && code != "" {
		name = "\x1b[1;" + code + "m" + name + "\x1b[0m"
	}
	fmt.Fprintf(t.out, "%6.1fs  %s  %s\n", time.Since(t.start).Seconds(), name, fmt.Sprintf(format, args...))
}
