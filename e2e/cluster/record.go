package cluster

import (
	"encoding/json"
	"sort"
	"sync"
	"time"
)

// Act is one record that a canary wrote: the witness of its own work.
type Act struct {
	N     int64  `json:"n"`
	Boot  int64  `json:"boot_ns"` // CLOCK_BOOTTIME, one clock for all processes of this machine
	Epoch int64  `json:"epoch"`
	Term  string `json:"term"`
	PID   int    `json:"pid"`
	Event string `json:"event"`

	// Verdict and Error are said in remarks only.
	Verdict string `json:"verdict"`
	Error   string `json:"error"`

	Replica string `json:"-"`
}

// History is every act of a cluster, in the order in which it was read.
type History struct {
	mu      sync.Mutex
	acts    []Act
	remarks []Act
	more    chan struct{} // closed when an act is added
}

func newHistory() *History { return &History{more: make(chan struct{})} }

// add parses a line of a canary: an act, or a remark about its work. Other lines
// are ignored.
func (h *History) add(replica string, line []byte) (Act, bool) {
	var a Act
	if json.Unmarshal(line, &a) != nil || a.Event == "" {
		return a, false
	}
	a.Replica = replica
	h.mu.Lock()
	defer h.mu.Unlock()
	if a.Event != "record" {
		h.remarks = append(h.remarks, a)
		return a, false
	}
	h.acts = append(h.acts, a)
	close(h.more)
	h.more = make(chan struct{})
	return a, true
}

// Acts returns a copy of all acts so far.
func (h *History) Acts() []Act {
	h.mu.Lock()
	defer h.mu.Unlock()
	return append([]Act(nil), h.acts...)
}

// Remarks returns a copy of all lines so far that are not acts: what a canary
// found at its start, commits that were refused, its end.
func (h *History) Remarks() []Act {
	h.mu.Lock()
	defer h.mu.Unlock()
	return append([]Act(nil), h.remarks...)
}

// Await waits for an act that matches; false after the timeout.
func (h *History) Await(timeout time.Duration, match func(Act) bool) (Act, bool) {
	deadline := time.NewTimer(timeout)
	defer deadline.Stop()
	for seen := 0; ; {
		h.mu.Lock()
		fresh, more := h.acts[seen:], h.more
		seen = len(h.acts)
		h.mu.Unlock()
		for _, a := range fresh {
			if match(a) {
				return a, true
			}
		}
		select {
		case <-more:
		case <-deadline.C:
			return Act{}, false
		}
	}
}

// span is the time in which one process acted, from its first to its last act.
type span struct{ first, last int64 }

// Overlap is the time in which two canaries acted, by their own stamps: the
// sum over all pairs of processes. It is 0 unless the election failed.
func Overlap(acts []Act) time.Duration {
	// A pid alone may be the same in two namespaces, and in two of one replica.
	type process struct {
		replica, term string
		pid           int
	}
	spans := map[process]*span{}
	for _, a := range acts {
		who := process{a.Replica, a.Term, a.PID}
		s, ok := spans[who]
		if !ok {
			s = &span{a.Boot, a.Boot}
			spans[who] = s
		}
		s.first, s.last = min(s.first, a.Boot), max(s.last, a.Boot)
	}
	list := make([]span, 0, len(spans))
	for _, s := range spans {
		list = append(list, *s)
	}
	sort.Slice(list, func(i, j int) bool { return list[i].first < list[j].first })
	var total int64
	for i, a := range list {
		for _, b := range list[i+1:] {
			if end := min(a.last, b.last); end > b.first {
				total += end - b.first
			}
		}
	}
	return time.Duration(total)
}

// Missing returns the numbers between the first and the last act that no act
// has: gaps, which must not exist.
func Missing(acts []Act) []int64 {
	have := map[int64]bool{}
	var low, high int64
	for i, a := range acts {
		if i == 0 {
			low, high = a.N, a.N
		}
		have[a.N] = true
		low, high = min(low, a.N), max(high, a.N)
	}
	var missing []int64
	for n := low; n < high; n++ {
		if !have[n] {
			missing = append(missing, n)
		}
	}
	return missing
}
