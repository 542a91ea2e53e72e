package canary

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/sf2loki/sf2loki-ha/cas"
	"github.com/sf2loki/sf2loki-ha/cas/mem"
	"github.com/sf2loki/sf2loki-ha/checkpoint"
)

var errKilled = errors.New("killed")

// world is everything outside the process: it outlives every run and can kill
// one between any two of its effects.
type world struct {
	store *mem.Store

	mu sync.Mutex
	// lines is the output of all runs, pushed what the endpoint took.
	lines  []Line
	pushed []Line
	// effects counts what the current run did outside; at killAt the run is
	// dead, before or after that effect.
	effects, killAt int
	after           bool
	dead            bool
	kill            context.CancelFunc
	// pushFails makes the endpoint refuse with that status while it is above 0.
	pushFails  int
	pushStatus int
}

func newWorld() *world { return &world{store: mem.New()} }

// effect runs do unless the process is dead by then.
func (w *world) effect(do func()) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.dead {
		return errKilled
	}
	w.effects++
	hit := w.killAt > 0 && w.effects == w.killAt
	if hit {
		w.dead = true
		w.kill()
		if !w.after {
			return errKilled
		}
	}
	do()
	if hit {
		return errKilled
	}
	return nil
}

// Write implements the output.
func (w *world) Write(p []byte) (int, error) {
	var l Line
	if err := json.Unmarshal(p, &l); err != nil || !bytes.HasSuffix(p, []byte("\n")) {
		return 0, fmt.Errorf("not one line of JSON: %q", p)
	}
	return len(p), w.effect(func() { w.lines = append(w.lines, l) })
}

// RoundTrip implements the endpoint.
func (w *world) RoundTrip(r *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	status := 204
	err = w.effect(func() {
		if w.pushFails > 0 {
			w.pushFails--
			status = w.pushStatus
			return
		}
		var push struct {
			Streams []struct {
				Stream map[string]string
				Values [][2]string
			}
		}
		if err := json.Unmarshal(body, &push); err != nil {
			status = 400
			return
		}
		var l Line
		_ = json.Unmarshal([]byte(push.Streams[0].Values[0][1]), &l)
		w.pushed = append(w.pushed, l)
	})
	if err != nil {
		return nil, err
	}
	return &http.Response{StatusCode: status, Body: http.NoBody, Header: http.Header{}, Request: r}, nil
}

// register is the document as the current run reaches it.
type register struct {
	cas.Register
	w *world
}

func (r register) Create(ctx context.Context, data []byte) (v cas.Version, err error) {
	if e := r.w.effect(func() { v, err = r.Register.Create(ctx, data) }); e != nil {
		return "", e
	}
	return v, err
}

func (r register) Replace(ctx context.Context, data []byte, old cas.Version) (v cas.Version, err error) {
	if e := r.w.effect(func() { v, err = r.Register.Replace(ctx, data, old) }); e != nil {
		return "", e
	}
	return v, err
}

func (w *world) document() cas.Register { return w.store.Open().Register("state.json") }

// run is one process in term epoch: the supervisor seals, the canary works. It
// is killed at effect killAt (0: not), and stopped after d.
func (w *world) run(t *testing.T, epoch int64, d time.Duration, killAt int, after bool, change func(*Options)) error {
	t.Helper()
	term := &envTerm{epoch: epoch, id: fmt.Sprintf("term-%d", epoch)}
	if _, err := checkpoint.Open(w.document(), checkpoint.WithLease("lease", time.Second)).Seal(t.Context(), term); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), d)
	defer cancel()
	w.mu.Lock()
	w.effects, w.killAt, w.after, w.dead, w.kill = 0, killAt, after, false, cancel
	w.mu.Unlock()
	o := Options{
		Interval: 20 * time.Millisecond, CommitInterval: 100 * time.Millisecond,
		Checkpoint: register{w.document(), w}, Term: term, Identity: fmt.Sprintf("replica-%d", epoch), Out: w, transport: w,
	}
	if change != nil {
		change(&o)
	}
	return Main(ctx, o)
}

// records are the numbers in the order in which they were written.
func records(lines []Line) []int64 {
	var n []int64
	for _, l := range lines {
		if l.Event == EventRecord {
			n = append(n, l.N)
		}
	}
	return n
}

// events are the lines of one kind.
func events(lines []Line, kind string) []Line {
	var found []Line
	for _, l := range lines {
		if l.Event == kind {
			found = append(found, l)
		}
	}
	return found
}

// noGap fails unless the numbers reach from 1 to the largest without a hole, in
// an order in which nothing is skipped.
func noGap(t *testing.T, what string, numbers []int64) {
	t.Helper()
	var high int64
	for i, n := range numbers {
		if n > high+1 {
			t.Fatalf("%s: record %d comes at %d, after %d: a gap", what, n, i, high)
		}
		high = max(high, n)
	}
}
