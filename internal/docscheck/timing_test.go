package docscheck

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/sf2loki/sf2loki-ha/coordinator"
	"github.com/sf2loki/sf2loki-ha/internal/budgetcmd"
	"github.com/sf2loki/sf2loki-ha/internal/failoverbench"
)

var update = flag.Bool("update", false, "write the tables of docs/timing.md and its picture anew")

const timingPage = "docs/timing.md"

// The page shows what "config budget" prints and what the benchmark measured, and
// nothing that was typed in.
func TestTheFiguresOfTimingComeFromTheCodeAndFromTheBenchmark(t *testing.T) {
	data, err := os.ReadFile(filepath.Join(root, "docs", "failover.json"))
	if err != nil {
		t.Fatal(err)
	}
	report, err := failoverbench.Decode(data)
	if err != nil {
		t.Fatal(err)
	}
	page := read(t, timingPage)
	for name, want := range map[string]string{
		"profiles": profileTable(t), "instants": instants(), "benchmark": report.Tables(), "parts": report.Parts(),
	} {
		begin, end := "<!-- "+name+": generated -->\n", "<!-- end of "+name+" -->"
		before, rest, ok := strings.Cut(page, begin)
		got, after, closed := strings.Cut(rest, end)
		if !ok || !closed {
			t.Fatalf("%s has no block %q", timingPage, name)
		}
		if got == want {
			continue
		}
		if !*update {
			t.Errorf("block %q of %s differs from the code or the benchmark (go test ./internal/docscheck -run Timing -update):\n%s", name, timingPage, want)
		}
		page = before + begin + want + end + after
	}
	picture := string(report.Picture())
	if *update {
		write(t, timingPage, page)
		write(t, "docs/failover.svg", picture)
	}
	if read(t, "docs/failover.svg") != picture {
		t.Error("docs/failover.svg is not the picture of docs/failover.json")
	}
	for _, v := range failoverbench.Judge(report.Results) {
		if !v.Met {
			t.Error("the figures in docs/ miss the goal:", v.Text)
		}
	}
	// What the prose and the drawing say of the defaults, and of the writes of ours and
	// of client-go's, at its defaults and at our interval.
	c := coordinator.Config{}.WithDefaults()
	b := c.Budget()
	if len(report.Results) < 3 || !report.Results[0].Ours || report.Results[1].Ours || report.Results[2].Ours {
		t.Fatal("docs/failover.json does not have ours and two of client-go's first")
	}
	writes := func(i int) float64 { return report.Results[i].Leader.Writes }
	for _, want := range []string{
		fmt.Sprintf("%.0f %% fewer writes", 100*(1-writes(2)/writes(0))), fmt.Sprintf("ours makes %.0f %% fewer", 100*(1-writes(0)/writes(1))),
		"ttl - 1 % = " + sec(b.DeadAfter), sec(b.StopAfter), sec(c.StopGrace) + " grace", sec(c.KillMargin) + " margin",
		"ttl = " + sec(c.TTL), fmt.Sprintf("%.2f %%", b.ClockRates*100), sec(c.TTL - b.DeadAfter), sec(b.Failover),
	} {
		if !strings.Contains(page, want) {
			t.Errorf("%s does not say %q", timingPage, want)
		}
	}
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(root, path), []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// sec is a duration in seconds, as short as it can be without a loss of milliseconds.
func sec(d time.Duration) string {
	return strings.TrimSuffix(strings.TrimRight(fmt.Sprintf("%.3f", d.Seconds()), "0"), ".") + " s"
}

// profileTable is what "config budget --profile NAME" prints, one line a profile and store.
func profileTable(t *testing.T) string {
	t.Helper()
	var b strings.Builder
	row := func(cells ...string) { fmt.Fprintf(&b, "| %s |\n", strings.Join(cells, " | ")) }
	row("profile", "ttl, renew, poll", "failover", "dark time", "handover", "outage tolerated", "stop, kill, gone", "requests/h: leader writes, reads, standby reads", "a month")
	row("---", "---", "---", "---", "---", "---", "---", "---", "---")
	for _, name := range coordinator.Profiles() {
		plans, err := budgetcmd.ForProfile(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range plans {
			e, x := p.Election, p.Budget
			row("`"+name+"`"+strings.TrimPrefix(p.Title, name), sec(e.TTL)+", "+sec(e.RenewInterval)+", "+sec(e.PollInterval), sec(x.Failover), sec(p.Dark), sec(x.Handover),
				sec(x.Outage), sec(x.StopAfter)+", "+sec(x.KillAfter)+", "+sec(x.DeadAfter),
				fmt.Sprintf("%d, %d, %d", x.LeaderWritesPerHour, x.LeaderReadsPerHour, x.StandbyReadsPerHour), fmt.Sprintf("$%.2f", p.Cost.Total))
		}
	}
	return b.String()
}

// instants is a lease at the defaults whose holder crashes or is cut off just after a
// renewal landed, counted from the send of that renewal.
func instants() string {
	c := coordinator.Config{}.WithDefaults()
	b := c.Budget()
	half := coordinator.RoundTrip / 2
	var out strings.Builder
	row := func(at time.Duration, who, what string) { fmt.Fprintf(&out, "| %s | %s | %s |\n", sec(at), who, what) }
	out.WriteString("| after the send | who | what |\n| --- | --- | --- |\n")
	row(0, "leader", "sends a renewal; its deadline counts from here")
	row(half, "store", "the renewal lands; a crash now has a limit of "+sec(c.TTL))
	row(2*half, "leader", "has the answer: gone by "+sec(b.DeadAfter))
	row(half+c.PollInterval+2*half, "standby", "at the latest, has read the new version; its window counts from here")
	row(c.RenewInterval, "leader", "would renew; if it cannot, it tries again and again")
	row(b.StopAfter, "leader", "tells the work to end")
	row(b.KillAfter, "guard", "kills what is left of the work")
	row(b.DeadAfter, "guard", "nothing is left of the work")
	row(half+c.TTL, "standby", "at the earliest, claims: it had read at the very moment of the landing")
	row(half+b.Failover, "standby", "at the latest, has acquired")
	return out.String()
}
