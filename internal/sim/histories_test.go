package sim_test

import (
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/sf2loki/sf2loki-ha/internal/sim"
)

var seeds = flag.Int("seeds", 10000, "histories that TestHistories plays")

// TestHistories plays histories from seed 1 on in the compiled simulator, without
// the race detector, which has nothing to find where there are no threads.
func TestHistories(t *testing.T) {
	binary := filepath.Join(t.TempDir(), "sim")
	build(t, binary)
	cmd := exec.Command(binary, "-seeds", strconv.Itoa(*seeds))
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	t.Logf("%s", out)
	if err != nil {
		t.Fatal(err)
	}
}

// A seed is one history: without that no failure could be looked at again.
func TestASeedIsOneHistory(t *testing.T) {
	for seed := range uint64(20) {
		first, again, silent := sim.Play(seed, true), sim.Play(seed, true), sim.Play(seed, false)
		if !slices.Equal(first.Timeline, again.Timeline) {
			t.Errorf("seed %d: two timelines", seed)
		}
		if first.Tally != again.Tally || first.Tally != silent.Tally {
			t.Errorf("seed %d: %+v, %+v, silent %+v", seed, first.Tally, again.Tally, silent.Tally)
		}
	}
}

// TestEverythingHappens: a simulator in which something never happens proves
// nothing about it.
func TestEverythingHappens(t *testing.T) {
	seen := map[string]int{}
	words := []string{
		"frozen: supervisor,", "frozen: guard", "frozen: everything", "frozen: supervisor and guard", "guard is killed",
		"supervisor is killed (everything: false)", "supervisor is killed (everything: true)", "asked to step down", "asked to end",
		"only answers: true", "only answers: false", "answers nobody until", "wall clock steps", "the guard has failed",
		"deletes it", "restores an old version", "overwrites it with junk", "a record of sf2loki's file lease",
		"copies what another lease has released", "rolls back from version 2 with min_version 0", "rolls back from version 2 with min_version 2", "deletes what is for newer readers",
		"state: deletes it", "cuts it off", "damages its fence", "puts one of sf2loki's there", "state: restores an old version", "repairs it",
		"kills all", "deploys", "starts in the middle of a handover", "will be frozen around its next renewal", "will be frozen around its next seal", "asked to end while it is frozen", "refuses until",
		"asks at rest for a hold", "asks at rest for a step-down", "asks at rest for a handover", "at rest, its work ends by itself: true", "at rest, its work ends by itself: false",
		"answers nobody for", "kills a at rest", "alone at rest, without a guard",
		"asks for a hold", "asks for the end of the hold", "asks for a step-down of epoch", "asks for a step-down of process", "junk into the request object",
		"write_settled", "write_in_doubt", "lost ", "expired ", "released ", "release_failed", "claim_lost", "overran", "nominated", "on_hold", "resumed",
		"work_ended", "request_unclear", "not sealed in time", "the work fails again and again", "to the lease sim://lease-2",
	}
	var total sim.Tally
	for seed := range uint64(500) {
		r := sim.Play(seed, true)
		text := strings.Join(r.Timeline, "\n")
		for _, w := range words {
			if strings.Contains(text, w) {
				seen[w]++
			}
		}
		total.Fenced += r.Tally.Fenced
		total.Throttled += r.Tally.Throttled
	}
	for _, w := range words {
		if seen[w] == 0 {
			t.Errorf("%q never happened", w)
		}
	}
	if total.Fenced == 0 || total.Throttled == 0 {
		t.Errorf("%+v", total)
	}
	t.Log(seen)
}

// found are seeds whose histories were violations once. They say nothing about
// the same code any more after the simulator has changed; what was wrong is kept
// as a test of its own where it was wrong.
var found = []uint64{39, 56, 729, 1564, 1770, 2262, 12681}

func TestSeedsThatOnceFoundSomething(t *testing.T) {
	for _, seed := range found {
		if r := sim.Play(seed, true); r.Broken != "" {
			t.Errorf("seed %d: %s\n%s", seed, r.Broken, strings.Join(sim.Tail(r.Timeline, 60), "\n"))
		}
	}
}
