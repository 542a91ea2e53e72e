// Command sim plays histories of the simulator: see package sim.
package main

import (
	"flag"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"time"

	"github.com/sf2loki/sf2loki-ha/internal/sim"
)

func main() {
	seeds := flag.Int("seeds", 10000, "how many histories")
	first := flag.Uint64("first", 1, "seed of the first one")
	lanes := flag.Int("lanes", runtime.GOMAXPROCS(0), "how many at a time")
	most := flag.Int("most", 3, "violations to show before giving up")
	lines := flag.Int("lines", 60, "lines of the timeline of a violation; 0: none")
	quiet := flag.Bool("quiet", false, "no progress")
	trace := flag.Bool("trace", false, "print the whole timeline of the first seed, and play no other")
	flag.Parse()
	if *seeds < 1 || *lanes < 1 || *most < 0 || flag.NArg() > 0 {
		fmt.Fprintln(os.Stderr, "sim: -seeds and -lanes are at least 1, -most at least 0, and there are no arguments")
		os.Exit(2)
	}
	if *trace {
		r := sim.Play(*first, true)
		for _, l := range r.Timeline {
			fmt.Println(l)
		}
		if r.Broken != "" {
			fmt.Printf("seed %d: %s\n", *first, r.Broken)
			os.Exit(1)
		}
		return
	}

	debug.SetGCPercent(1000) // histories are short, and leave nothing behind
	begin, said := time.Now(), time.Now()
	run := sim.Run(sim.Plan{First: *first, Count: *seeds, Lanes: *lanes, Most: *most, Progress: func(done int, t sim.Tally) {
		if !*quiet && time.Since(said) > 5*time.Second {
			said = time.Now()
			fmt.Printf("%9d of %d histories, %.0f a second\n", done, *seeds, float64(done)/time.Since(begin).Seconds())
		}
	}})
	for _, r := range run.Broken {
		fmt.Printf("seed %d: %s\n", r.Seed, r.Broken)
		if *lines > 0 {
			for _, l := range sim.Tail(sim.Play(r.Seed, true).Timeline, *lines) {
				fmt.Println(l)
			}
		}
	}
	t := run.Tally
	fmt.Printf("%d histories from seed %d in %.1f s, %.0f a second: %d steps, %d requests, %d terms, %d starts of work, %d acts, %d commits (%d fenced), %d throttled\n",
		run.Done, *first, time.Since(begin).Seconds(), float64(run.Done)/time.Since(begin).Seconds(),
		t.Steps, t.Requests, t.Terms, t.Starts, t.Acts, t.Commits, t.Fenced, t.Throttled)
	fmt.Printf("%d violations\n", len(run.Broken))
	if len(run.Broken) > 0 {
		os.Exit(1)
	}
}
