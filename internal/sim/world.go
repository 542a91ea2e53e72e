package sim

import (
	"container/heap"
	"fmt"
	"math/rand/v2"
	"time"
)

// world is one history under way.
type world struct {
	rng    *rand.Rand
	now    int64 // real time in nanoseconds; every machine has a clock of its own
	events eventHeap
	order  int

	settings
	groups   []*group
	replicas []*replica
	bucket   bucket
	running  *task // the coroutine that runs now, or nil
	idle     []*routine
	calm     bool // the faults have stopped
	ambush   bool // the operator waits for the next acquisition
	outage   outage

	terms      map[string]*lineage // by term id
	document   sealing
	refusals   int // seals that were refused
	handovers  int
	complaints int // of a damaged object, by processes
	steps      int
	still      int // events since time last passed
	tally      Tally

	logging bool
	lines   []string
	ops     []*Operation
	broken  string
}

type event struct {
	at    int64
	order int
	do    func()
}

type eventHeap []event

func (h eventHeap) Len() int { return len(h) }
func (h eventHeap) Less(i, j int) bool {
	return h[i].at < h[j].at || h[i].at == h[j].at && h[i].order < h[j].order
}
func (h eventHeap) Swap(i, j int) { h[i], h[j] = h[j], h[i] }
func (h *eventHeap) Push(x any)   { *h = append(*h, x.(event)) }
func (h *eventHeap) Pop() any {
	old := *h
	e := old[len(old)-1]
	old[len(old)-1] = event{}
	*h = old[:len(old)-1]
	return e
}

// at lets something happen at an instant of real time, in the order of calls.
func (w *world) at(t int64, do func()) {
	w.order++
	heap.Push(&w.events, event{max(t, w.now), w.order, do})
}

func (w *world) after(d time.Duration, do func()) { w.at(w.now+int64(d), do) }

// run lets time pass until an instant, or the first violation.
func (w *world) run(until int64) {
	for w.broken == "" && len(w.events) > 0 && w.events[0].at <= until {
		e := heap.Pop(&w.events).(event)
		if w.now == e.at {
			w.still++
		} else {
			w.now, w.still = e.at, 0
		}
		w.require(w.still < 10000, "time stands still at %v", time.Duration(w.now))
		e.do()
	}
	w.now = max(w.now, until)
}

// upTo is a random span below d.
func (w *world) upTo(d time.Duration) time.Duration {
	return time.Duration(w.rng.Int64N(max(1, int64(d))))
}

// oneIn is true once in n times.
func (w *world) oneIn(n int) bool { return w.rng.IntN(n) == 0 }

// require notes the first violation.
func (w *world) require(ok bool, format string, args ...any) {
	if !ok {
		w.fail(format, args...)
	}
}

func (w *world) fail(format string, args ...any) {
	if w.broken == "" {
		w.broken = fmt.Sprintf(format, args...)
		w.note("JUDGE", "%s", w.broken)
	}
}

// note writes a line of the timeline.
func (w *world) note(who, format string, args ...any) {
	if w.logging {
		w.lines = append(w.lines, fmt.Sprintf("%9.3fs  %-8s ", time.Duration(w.now).Seconds(), who)+fmt.Sprintf(format, args...))
	}
}
