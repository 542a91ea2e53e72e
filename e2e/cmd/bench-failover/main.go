// Command bench-failover measures how long a pair is without a leader after a crash,
// ours against client-go's leaderelection; package failoverbench says how. It prints
// tables and whether the goal was met, and writes failover.json and failover.svg.
//
// The exit status is 1 if a part of the goal was missed, unless -goal=false.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/sf2loki/sf2loki-ha/coordinator"
	"github.com/sf2loki/sf2loki-ha/internal/failoverbench"
)

// The settings of the comparison.
const (
	ttl   = 15 * time.Second
	renew = 5 * time.Second
	poll  = time.Second
)

var latency = failoverbench.Latency{Read: 60 * time.Millisecond, Write: 100 * time.Millisecond}

// others are the contestants beside ours, on a store; see clientgo.go.
var others []func(failoverbench.Place) failoverbench.Contestant

type options struct {
	rounds int
	seed   uint64
	stores string
	out    string
	goal   bool
}

func main() {
	var o options
	flag.IntVar(&o.rounds, "rounds", 60, "crashes of each contestant")
	flag.Uint64Var(&o.seed, "seed", 1, "of the crash instants")
	flag.StringVar(&o.stores, "stores", "memory,versitygw,fake-gcs-server", "where to measure; all but memory ours alone")
	flag.StringVar(&o.out, "out", "", "directory for failover.json and failover.svg")
	flag.BoolVar(&o.goal, "goal", true, "exit with 1 if the goal is missed")
	flag.Parse()
	if o.rounds < 1 || o.rounds > 1000 || flag.NArg() > 0 {
		fmt.Fprintln(os.Stderr, "bench-failover: -rounds must be 1 to 1000, and there are no arguments")
		os.Exit(2)
	}
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer cancel()
	if err := run(ctx, o); err != nil {
		fmt.Fprintln(os.Stderr, "bench-failover:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, o options) error {
	// 1. Measure, everybody side by side.
	report := failoverbench.Report{Setup: failoverbench.Setup{
		Date: time.Now().UTC().Format(time.DateOnly), Commit: commit(), Rounds: o.rounds, Seed: o.seed,
		ReadMillis: latency.Read.Seconds() * 1000, WriteMillis: latency.Write.Seconds() * 1000,
	}}
	servers := &servers{}
	defer servers.stop()
	contestants, err := enter(ctx, servers, strings.Split(o.stores, ","))
	if err != nil {
		return err
	}
	late := watchTimers()
	if report.Results, err = play(ctx, o, contestants); err != nil {
		return err
	}
	report.Setup.LateMillis = float64(late().Round(100*time.Microsecond)) / 1e6
	// 2. Show what the file has, and nothing more exact.
	data, err := report.Encode()
	if err != nil {
		return err
	}
	if report, err = failoverbench.Decode(data); err != nil {
		return err
	}
	fmt.Print(report.Tables(), "\n")
	if o.out != "" {
		if err := save(o.out, data, report.Picture()); err != nil {
			return err
		}
	}
	// 3. Judge.
	missed := 0
	for _, v := range failoverbench.Judge(report.Results) {
		mark := "ok    "
		if !v.Met {
			mark = "MISSED"
			missed++
		}
		fmt.Println(mark, v.Text)
	}
	if missed > 0 && o.goal {
		return fmt.Errorf("%d parts of the goal were missed", missed)
	}
	return nil
}

// enter lists the contestants: all in memory, ours on servers.
func enter(ctx context.Context, servers *servers, stores []string) ([]failoverbench.Contestant, error) {
	var contestants []failoverbench.Contestant
	for _, store := range stores {
		place, spacing, err := servers.place(ctx, store)
		if err != nil {
			return nil, err
		}
		contestants = append(contestants, failoverbench.Ours(place, coordinator.Config{
			TTL: ttl, RenewInterval: renew, PollInterval: poll, MinWriteInterval: spacing,
		}))
		if store == "memory" {
			for _, other := range others {
				contestants = append(contestants, other(place))
			}
		}
	}
	return contestants, nil
}

// play plays all rounds. A beginning a second keeps the machine idle most of the time.
func play(ctx context.Context, o options, contestants []failoverbench.Contestant) ([]failoverbench.Result, error) {
	plans := failoverbench.Plans(o.seed, o.rounds, ttl, renew, time.Duration(o.rounds)*time.Second)
	total := len(contestants) * o.rounds
	fmt.Fprintf(os.Stderr, "%d crashes in about %d s\n", total, o.rounds+110)
	var played atomic.Int64
	return failoverbench.Run(ctx, contestants, plans, latency, nil, func() {
		if n := played.Add(1); n%50 == 0 || int(n) == total {
			fmt.Fprintf(os.Stderr, "  %d of %d\n", n, total)
		}
	})
}

// watchTimers finds out how late a timer of this process fires at most.
func watchTimers() (stop func() time.Duration) {
	const nap = 10 * time.Millisecond
	ended, most := make(chan struct{}), make(chan time.Duration)
	go func() {
		worst := time.Duration(0)
		for {
			before := time.Now()
			select {
			case <-time.After(nap):
				worst = max(worst, time.Since(before)-nap)
			case <-ended:
				most <- worst
				return
			}
		}
	}()
	return func() time.Duration {
		close(ended)
		return <-most
	}
}

func save(dir string, report, picture []byte) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("save: %w", err)
	}
	return errors.Join(
		os.WriteFile(filepath.Join(dir, "failover.json"), report, 0o644),
		os.WriteFile(filepath.Join(dir, "failover.svg"), picture, 0o644))
}

// commit names what was measured.
func commit() string {
	out, err := exec.Command("git", "rev-parse", "--short=12", "HEAD").Output()
	if err != nil {
		return "unknown"
	}
	return strings.TrimSpace(string(out))
}
