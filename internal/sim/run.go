package sim

import (
	"sync"
	"sync/atomic"
)

// Plan is what Run plays.
type Plan struct {
	First uint64
	Count int
	// Lanes is how many histories are under way at a time.
	Lanes int
	// Most ends the run early, after so many violations; 0 never does.
	Most int
	// Progress, if not nil, is called now and then, not at two times at once.
	Progress func(done int, t Tally)
}

// Outcome is what became of a run.
type Outcome struct {
	Done   int
	Broken []Result // in the order of their seeds, as far as lanes allow
	Tally  Tally
}

// Run plays Count histories from seed First on. Lanes change the order in time
// and nothing else: each history is its own.
func Run(p Plan) Outcome {
	var next atomic.Int64
	var mu sync.Mutex
	var out Outcome
	var wg sync.WaitGroup
	for range max(1, p.Lanes) {
		wg.Go(func() {
			for {
				i := next.Add(1) - 1
				if i >= int64(p.Count) {
					return
				}
				r := Play(p.First+uint64(i), false)
				mu.Lock()
				out.Done++
				out.Tally.add(r.Tally)
				if r.Broken != "" {
					out.Broken = append(out.Broken, r)
				}
				enough := p.Most > 0 && len(out.Broken) >= p.Most
				if p.Progress != nil && i%100 == 0 {
					p.Progress(out.Done, out.Tally)
				}
				mu.Unlock()
				if enough {
					next.Store(int64(p.Count))
				}
			}
		})
	}
	wg.Wait()
	return out
}

// Tail is the end of a timeline.
func Tail(lines []string, n int) []string { return lines[max(0, len(lines)-n):] }
