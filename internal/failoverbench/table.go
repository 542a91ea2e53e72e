package failoverbench

import (
	"fmt"
	"strings"
	"time"
)

// Tables are the figures as Markdown.
func (r Report) Tables() string {
	var b strings.Builder
	s := r.Setup
	fmt.Fprintf(&b, "%d crashes each; reads of %g ms, writes of %g ms; seed %d; commit %s, %s; timers at most %g ms late.\n\n",
		s.Rounds, s.ReadMillis, s.WriteMillis, s.Seed, s.Commit, s.Date, s.LateMillis)
	row := func(cells ...string) { fmt.Fprintf(&b, "| %s |\n", strings.Join(cells, " | ")) }
	row("elector", "store", "failover: mean", "p50", "p95", "max", "limit: mean", "mean / mean", "longest after the last renewal", "of a bound of")
	row("---", "---", "---", "---", "---", "---", "---", "---", "---", "---")
	for _, x := range r.Results {
		f, bound := x.Failover(), "-"
		if x.Bound > 0 {
			bound = seconds(x.Bound)
		}
		row(x.Name+" ("+x.Settings+")", x.Store, seconds(f.Mean), seconds(f.P50), seconds(f.P95), seconds(f.Max), seconds(x.Limit().Mean),
			fmt.Sprintf("%.3f", x.Ratio()), seconds(x.AfterRenewal().Max), bound)
	}
	b.WriteString("\n")
	row("elector", "store", "seal after the acquisition", "start after the acquisition", "leader: writes/h", "reads/h", "standby: writes/h", "reads/h")
	row("---", "---", "---", "---", "---", "---", "---", "---")
	for _, x := range r.Results {
		seal := "-"
		if x.sealed() {
			seal = seconds(x.Seal().Mean)
		}
		row(x.Name+" ("+x.Settings+")", x.Store, seal, seconds(x.Start().Mean),
			fmt.Sprintf("%.0f", x.Leader.Writes), fmt.Sprintf("%.0f", x.Leader.Reads), fmt.Sprintf("%.0f", x.Standby.Writes), fmt.Sprintf("%.0f", x.Standby.Reads))
	}
	return b.String()
}

// sealed tells whether there is a checkpoint document.
func (r Result) sealed() bool { return len(r.Rounds) > 0 && r.Rounds[0].Seal > 0 }

// seconds has two decimals.
func seconds(d time.Duration) string { return fmt.Sprintf("%.2f s", d.Seconds()) }

// Parts is where the time after a crash goes for ours, on average, as Markdown: the
// limit cannot be shortened, the requests cannot be left out, and the rest is how
// late the last renewal was noticed.
func (r Report) Parts() string {
	var b strings.Builder
	b.WriteString("| store | lease runs out | last renewal was noticed late by | fence and request read, lease claimed | failover | then sealed |\n")
	b.WriteString("| --- | --- | --- | --- | --- | --- |\n")
	requests := duration(r.Setup.ReadMillis + r.Setup.WriteMillis)
	for _, x := range r.Results {
		if !x.Ours {
			continue
		}
		f, limit := x.Failover().Mean, x.Limit().Mean
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s | %s |\n", x.Store, seconds(limit), seconds(f-limit-requests), seconds(requests), seconds(f), seconds(x.Seal().Mean))
	}
	return b.String()
}
