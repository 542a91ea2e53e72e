package history

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/sf2loki/sf2loki-ha/e2e/cluster"
	"github.com/sf2loki/sf2loki-ha/e2e/faultproxy"
	"github.com/sf2loki/sf2loki-ha/internal/boottime"
)

// Problem is one thing that must not happen.
type Problem struct {
	// Rule is what it breaks: I1 to I6, "order", "gap", "linearizable".
	Rule string
	At   boottime.Instant
	Text string
}

func (p Problem) String() string { return p.Rule + ": " + p.Text }

// Report is the judgement.
type Report struct {
	Problems []Problem
	Figures  Figures
}

// Figures are what a run consisted of.
type Figures struct {
	Requests, Writes int
	// Faults are the requests that something was done to, and Kinds how often
	// what.
	Faults int
	Kinds  map[string]int
	// Unanswered are writes that were applied and whose caller was not told.
	Unanswered int
	// Terms is how often the lease was acquired, Takeovers how often by another
	// replica than the one before, Seals how often the document was sealed.
	Terms, Takeovers, Seals int
	Kills, Freezes, Cuts    int
	// Acts, those among them whose number had occurred before, and those of
	// an older term in the 200 ms after a freeze.
	Acts, Duplicates, AfterThaw int
	// Dark is the longest time without an act between two acts.
	Dark time.Duration
	// Torn is the number of loads with newer data than their version.
	Torn int
}

// String is one line for people.
func (f Figures) String() string {
	kinds := make([]string, 0, len(f.Kinds))
	for kind, n := range f.Kinds {
		kinds = append(kinds, fmt.Sprintf("%d %s", n, kind))
	}
	slices.Sort(kinds)
	return fmt.Sprintf("%d requests (%d writes), %d with a fault (%s), %d writes applied and not told, %d torn loads; %d kills, %d freezes, %d cuts; %d terms, %d takeovers, %d seals; %d acts, %d duplicates, %d after a thaw, longest dark time %v",
		f.Requests, f.Writes, f.Faults, strings.Join(kinds, "; "), f.Unanswered, f.Torn, f.Kills, f.Freezes, f.Cuts, f.Terms, f.Takeovers, f.Seals, f.Acts, f.Duplicates, f.AfterThaw, f.Dark.Round(time.Millisecond))
}

// Judge judges the whole history. linearizable bounds the time of the search for
// a linearization of each object; a search that does not end is a problem.
func (h *History) Judge(linearizable time.Duration) Report {
	j := &judgement{h: h, exchanges: learn(h.Exchanges)}
	j.count()
	lease, checkpoints := j.chain(h.Run.Lease), j.chain(h.Run.Checkpoints)
	terms := j.lease(lease)
	seals := j.checkpoints(checkpoints, terms)
	j.acts(lease, terms, seals)
	j.gaps()
	for _, key := range []string{h.Run.Lease, h.Run.Checkpoints} {
		j.register(key, linearizable)
	}
	slices.SortStableFunc(j.report.Problems, func(a, b Problem) int { return cmp.Compare(a.At, b.At) })
	return j.report
}

type judgement struct {
	h         *History
	exchanges []faultproxy.Exchange
	report    Report
}

func (j *judgement) problem(rule string, at boottime.Instant, format string, args ...any) {
	j.report.Problems = append(j.report.Problems, Problem{rule, at, fmt.Sprintf(format, args...)})
}

// count fills in the figures that need no judgement.
func (j *judgement) count() {
	f := &j.report.Figures
	f.Kinds = map[string]int{}
	for _, x := range j.exchanges {
		f.Requests++
		if x.Op.Writes() {
			f.Writes++
		}
		if x.Fault != "" {
			f.Faults++
		}
		for _, kind := range strings.FieldsFunc(x.Fault, func(r rune) bool { return r == '+' }) {
			kind, _, _ = strings.Cut(strings.TrimSpace(kind), " (")
			f.Kinds[kind]++
		}
		if x.Applied == faultproxy.Yes && x.Told == 0 && x.Of == 0 {
			f.Unanswered++
		}
	}
	for _, e := range j.h.Events {
		switch e.What {
		case Kill:
			f.Kills++
		case Freeze:
			f.Freezes++
		case Cut:
			f.Cuts++
		}
	}
	f.Acts = len(j.h.Acts)
	numbers := map[int64]bool{}
	for _, a := range j.h.Acts {
		if numbers[a.N] {
			f.Duplicates++
		}
		numbers[a.N] = true
	}
}

// gaps: at least once is at least once.
func (j *judgement) gaps() {
	missing := cluster.Missing(j.h.Acts)
	if len(missing) == 0 {
		return
	}
	var at boottime.Instant
	for _, a := range j.h.Acts {
		if a.N > missing[0] && (at == 0 || boottime.Instant(a.Boot) < at) {
			at = boottime.Instant(a.Boot)
		}
	}
	j.problem("gap", at, "%d records are missing, the first is %d", len(missing), missing[0])
}
