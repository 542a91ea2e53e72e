package budgetcmd

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"strings"
	"time"

	"github.com/sf2loki/sf2loki-ha/coordinator"
)

// Print writes plans as lines.
func Print(out io.Writer, plans []Plan) error {
	for i, p := range plans {
		if i > 0 {
			if _, err := fmt.Fprintln(out); err != nil {
				return err
			}
		}
		if err := p.print(out); err != nil {
			return err
		}
	}
	return nil
}

func (p Plan) print(out io.Writer) error {
	var w strings.Builder
	line := func(label, value, format string, args ...any) {
		fmt.Fprintf(&w, "  %-18s%-14s %s\n", label, value, fmt.Sprintf(format, args...))
	}
	head := func(text string) { fmt.Fprintln(&w, text) }
	e, b := p.Election, p.Budget
	head(p.Title)
	line("ttl, renew, poll", fmt.Sprintf("%v, %v, %v", e.TTL, e.RenewInterval, e.PollInterval), "a request is given up after %v", short(e.CallTimeout))
	head("after a crash")
	line("lease runs out", fmt.Sprintf("%v to %v", e.TTL-e.RenewInterval, e.TTL), "after the crash: the ttl less the age of the last renewal")
	line("failover", short(b.Failover), "at most, after the last renewal: ttl %v, poll %v, 4 requests of %v", e.TTL, e.PollInterval, coordinator.RoundTrip)
	if p.Seal > 0 {
		line("dark time", short(p.Dark), "at most: the failover, and %v for the seal; then the work starts", short(p.Seal))
	} else {
		line("dark time", short(p.Dark), "at most: there is no checkpoint document to seal; then the work starts")
	}
	head("at a requested stop")
	cut := ""
	if e.PlatformStopWindow == 0 {
		cut = "; a replica cuts it to its platform's stop window"
	}
	line("drain", short(b.Drain), "at most, then the work is killed; the lease is renewed meanwhile%s", cut)
	line("handover", short(b.Handover), "at most, from the end of the work to the acquisition by the other replica")
	head("while the store cannot be used")
	line("tolerated", short(b.Outage), "of it in the worst case; the work goes on")
	line("stop", short(b.StopAfter), "after the last renewal the work is told to end")
	line("kill", short(b.KillAfter), "after the last renewal it is killed")
	line("gone", short(b.DeadAfter), "after the last renewal it is gone; nobody takes over before %v", e.TTL)
	head("clocks")
	line("rates", fmt.Sprintf("%.2f %%", b.ClockRates*100), "by so much a standby's clock may tick faster than the leader's")
	if c := p.Cost; c != nil {
		head("requests per hour, dollars per month")
		line("leader writes", fmt.Sprint(b.LeaderWritesPerHour), "$%.2f", c.LeaderWrites)
		line("leader reads", fmt.Sprint(b.LeaderReadsPerHour), "$%.2f, of the request object", c.LeaderReads)
		line("standby reads", fmt.Sprint(b.StandbyReadsPerHour), "$%.2f, at most", c.StandbyReads)
		line("store probes", fmt.Sprint(c.probes()), "$%.2f, %d of them writes", c.Probes, c.ProbeWrites)
		line("together", "", "$%.2f, without the requests of the work", c.Total)
	}
	_, err := io.WriteString(out, w.String())
	return err
}

// short is a duration to the millisecond.
func short(d time.Duration) string { return d.Round(time.Millisecond).String() }

// asJSON is a plan for programs.
type asJSON struct {
	Title         string      `json:"title"`
	Lease         string      `json:"lease,omitempty"`
	Type          string      `json:"type"`
	Profile       string      `json:"profile,omitempty"`
	TTL           int64       `json:"ttl_ms"`
	Renew         int64       `json:"renew_interval_ms"`
	Poll          int64       `json:"poll_interval_ms"`
	CallTimeout   int64       `json:"call_timeout_ms"`
	Failover      int64       `json:"failover_ms"`
	Seal          int64       `json:"seal_ms"`
	Dark          int64       `json:"dark_ms"`
	Drain         int64       `json:"drain_ms"`
	Handover      int64       `json:"handover_ms"`
	Outage        int64       `json:"outage_tolerated_ms"`
	Stop          int64       `json:"stop_after_ms"`
	Kill          int64       `json:"kill_after_ms"`
	Gone          int64       `json:"gone_after_ms"`
	ClockRates    float64     `json:"clock_rates_differ"`
	LeaderWrites  int         `json:"leader_writes_per_hour"`
	LeaderReads   int         `json:"leader_reads_per_hour"`
	StandbyReads  int         `json:"standby_reads_per_hour"`
	ProbeRequests int         `json:"probe_requests_per_hour,omitempty"`
	Cost          *costAsJSON `json:"cost_per_month_usd,omitempty"`
}

type costAsJSON struct {
	LeaderWrites float64 `json:"leader_writes"`
	LeaderReads  float64 `json:"leader_reads"`
	StandbyReads float64 `json:"standby_reads"`
	Probes       float64 `json:"probes"`
	Total        float64 `json:"total"`
}

// PrintJSON writes plans as one object.
func PrintJSON(out io.Writer, plans []Plan) error {
	all := struct {
		Budgets []asJSON `json:"budgets"`
	}{}
	for _, p := range plans {
		e, b := p.Election, p.Budget
		j := asJSON{
			Title: p.Title, Lease: p.Lease, Type: p.Type, Profile: p.Profile,
			TTL: ms(e.TTL), Renew: ms(e.RenewInterval), Poll: ms(e.PollInterval), CallTimeout: ms(e.CallTimeout),
			Failover: ms(b.Failover), Seal: ms(p.Seal), Dark: ms(p.Dark), Drain: ms(b.Drain), Handover: ms(b.Handover),
			Outage: ms(b.Outage), Stop: ms(b.StopAfter), Kill: ms(b.KillAfter), Gone: ms(b.DeadAfter), ClockRates: b.ClockRates,
			LeaderWrites: b.LeaderWritesPerHour, LeaderReads: b.LeaderReadsPerHour, StandbyReads: b.StandbyReadsPerHour,
		}
		if c := p.Cost; c != nil {
			j.ProbeRequests = c.probes()
			j.Cost = &costAsJSON{cents(c.LeaderWrites), cents(c.LeaderReads), cents(c.StandbyReads), cents(c.Probes), cents(c.Total)}
		}
		all.Budgets = append(all.Budgets, j)
	}
	enc := json.NewEncoder(out)
	enc.SetIndent("", "  ")
	return enc.Encode(all)
}

func ms(d time.Duration) int64 { return d.Round(time.Millisecond).Milliseconds() }

func cents(dollars float64) float64 { return math.Round(dollars*100) / 100 }
