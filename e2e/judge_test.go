package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/sf2loki/sf2loki-ha/cas"
	"github.com/sf2loki/sf2loki-ha/checkpoint"
	"github.com/sf2loki/sf2loki-ha/e2e/cluster"
	"github.com/sf2loki/sf2loki-ha/internal/boottime"
	"github.com/sf2loki/sf2loki-ha/internal/canary"
	"github.com/sf2loki/sf2loki-ha/internal/config"
	"github.com/sf2loki/sf2loki-ha/internal/replica"
)

// together runs the cases at the same time: they wait for the clock and need
// little of the processors, of which t.Parallel would count the number.
func together(t *testing.T, cases map[string]func(*testing.T)) {
	var all sync.WaitGroup
	for name, run := range cases {
		all.Go(func() { t.Run(name, run) })
	}
	all.Wait()
}

// await polls until ok; false after the timeout.
func await(timeout time.Duration, ok func() bool) bool {
	for end := time.Now().Add(timeout); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		if ok() {
			return true
		}
	}
	return false
}

// onBoot is a wall-clock time of this machine on the clock of the acts.
func onBoot(wall time.Time) int64 {
	return int64(boottime.Now()) - int64(time.Since(wall.Round(0)))
}

// document is the checkpoint document of that backend.
func document(t *testing.T, b backend) cas.Register {
	t.Helper()
	file := filepath.Join(t.TempDir(), "config.yaml")
	if err := os.WriteFile(file, []byte(b.config), 0o600); err != nil {
		t.Fatal(err)
	}
	cfg, err := config.Load(file, nil)
	if err != nil {
		t.Fatal(err)
	}
	reg, closer, err := replica.OpenState(t.Context(), cfg.State)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = closer.Close() })
	return reg
}

// progress is what a canary's commit left in the document.
type progress struct {
	Fence checkpoint.Fence
	N     int64  `json:"n"`
	Epoch int64  `json:"epoch"`
	Term  string `json:"term"`
}

func readProgress(ctx context.Context, reg cas.Register) (p progress, err error) {
	v, err := reg.Load(ctx)
	if err != nil {
		return p, err
	}
	doc, err := checkpoint.ParseDocument(v.Data)
	if err != nil {
		return p, err
	}
	if text, ok := doc.Get(canary.KeyPosition); ok {
		if err := json.Unmarshal([]byte(text), &p); err != nil {
			return p, err
		}
	}
	p.Fence, err = doc.Fence()
	return p, err
}

// watch reads something again and again until the returned function is called,
// which says how often it could be read.
func watch(t *testing.T, interval time.Duration, read func(context.Context) error) (stop func() int) {
	ctx, cancel := context.WithCancel(t.Context())
	reads := 0
	done := make(chan struct{})
	go func() {
		defer close(done)
		for tick := time.NewTicker(interval); ; {
			if read(ctx) == nil {
				reads++
			}
			select {
			case <-ctx.Done():
				tick.Stop()
				return
			case <-tick.C:
			}
		}
	}()
	stop = sync.OnceValue(func() int { cancel(); <-done; return reads })
	t.Cleanup(func() { stop() })
	return stop
}

// watchCommits fails the test if the document takes a commit of a term that does
// not have its seal: a fence or a position that goes back, or a position that an
// older term moved after the seal of a newer one.
func watchCommits(t *testing.T, reg cas.Register) (stop func() int) {
	var last progress
	return watch(t, 100*time.Millisecond, func(ctx context.Context) error {
		p, err := readProgress(ctx, reg)
		if err != nil {
			return err
		}
		stale := p.Epoch != p.Fence.Epoch
		switch {
		case p.Fence.Epoch < last.Fence.Epoch, p.Fence.Epoch == last.Fence.Epoch && last.Fence.Term != "" && p.Fence.Term != last.Fence.Term:
			t.Errorf("the fence went from epoch %d to %d (term %s to %s)", last.Fence.Epoch, p.Fence.Epoch, last.Fence.Term, p.Fence.Term)
		case p.N < last.N:
			t.Errorf("the position went back from record %d to %d", last.N, p.N)
		case stale && p.Fence.Epoch == last.Fence.Epoch && p.N != last.N:
			t.Errorf("under the seal of epoch %d a commit of epoch %d was accepted: record %d, before it %d", p.Fence.Epoch, p.Epoch, p.N, last.N)
		}
		last = p
		return nil
	})
}

// leads tells whether the replica says of itself, in both places, that it leads,
// or in both that it does not.
func leads(r *cluster.Replica) (bool, error) {
	_, ready, err := r.Ready()
	if err != nil {
		return false, err
	}
	leader, err := r.Metric("sf2loki_leader")
	if err != nil {
		return false, err
	}
	if (ready == "ready") != (leader == "1") {
		return false, fmt.Errorf("replica %s: /readyz says %q, sf2loki_leader is %s", r.Name, ready, leader)
	}
	return leader == "1", nil
}

// stays fails the test if, within that time, the leader does not say that it leads
// or the standby does.
func stays(t *testing.T, leader, standby *cluster.Replica, span time.Duration) {
	t.Helper()
	for end := time.Now().Add(span); time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
		if yes, err := leads(leader); err != nil || !yes {
			t.Fatalf("%s leads: %v, %v", leader.Name, yes, err)
		}
		if yes, err := leads(standby); err != nil || yes {
			t.Fatalf("%s leads: %v, %v", standby.Name, yes, err)
		}
	}
	if _, body, err := standby.Ready(); err != nil || body != "standby" {
		t.Errorf("%s says %q, %v; want standby", standby.Name, body, err)
	}
}

// terms fails the test unless each epoch was one term of one replica and each
// new term that acted had a higher epoch.
func terms(t *testing.T, acts []cluster.Act) (epochs []int64) {
	t.Helper()
	type owner struct{ replica, term string }
	owners := map[int64]owner{}
	first := map[int64]int64{}
	for _, a := range acts {
		who := owner{a.Replica, a.Term}
		if was, ok := owners[a.Epoch]; ok && was != who {
			t.Errorf("epoch %d was term %s of %s and term %s of %s", a.Epoch, was.term, was.replica, a.Term, a.Replica)
		}
		owners[a.Epoch] = who
		if at, ok := first[a.Epoch]; !ok || a.Boot < at {
			first[a.Epoch] = a.Boot
		}
	}
	for epoch := range first {
		epochs = append(epochs, epoch)
	}
	// In the order in which they began to act.
	for i := range epochs {
		for j := i; j > 0 && first[epochs[j]] < first[epochs[j-1]]; j-- {
			epochs[j], epochs[j-1] = epochs[j-1], epochs[j]
		}
	}
	for i := 1; i < len(epochs); i++ {
		if epochs[i] <= epochs[i-1] {
			t.Errorf("epoch %d acted after epoch %d", epochs[i], epochs[i-1])
		}
	}
	return epochs
}
