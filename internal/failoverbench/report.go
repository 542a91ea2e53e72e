package failoverbench

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"time"
)

// Setup says how a report came about.
type Setup struct {
	Date   string `json:"date"`
	Commit string `json:"commit"`
	Rounds int    `json:"rounds"`
	Seed   uint64 `json:"seed"`
	// Latency in milliseconds.
	ReadMillis  float64 `json:"read_ms"`
	WriteMillis float64 `json:"write_ms"`
	// LateMillis is how late the machine's timers were at most while it ran.
	LateMillis float64 `json:"timers_late_ms"`
}

// Report is all of a run. Its file has milliseconds with one decimal, and what is
// shown is always made of what the file has.
type Report struct {
	Setup   Setup
	Results []Result
}

// fileResult is a result in columns, one entry a round.
type fileResult struct {
	Name     string    `json:"name"`
	Settings string    `json:"settings"`
	Store    string    `json:"store"`
	Ours     bool      `json:"ours"`
	TTL      float64   `json:"ttl_ms"`
	Bound    float64   `json:"bound_ms,omitempty"`
	Leader   Rates     `json:"leader_requests_per_hour"`
	Standby  Rates     `json:"standby_requests_per_hour"`
	Crash    []float64 `json:"crash_ms"`
	Age      []float64 `json:"age_of_last_renewal_ms"`
	Failover []float64 `json:"failover_ms"`
	Seal     []float64 `json:"seal_ms,omitempty"`
	Start    []float64 `json:"start_ms"`
}

// Encode is the report's file: one line a contestant.
func (r Report) Encode() ([]byte, error) {
	var b bytes.Buffer
	setup, err := json.Marshal(r.Setup)
	if err != nil {
		return nil, fmt.Errorf("encode report: %w", err)
	}
	fmt.Fprintf(&b, "{\"setup\": %s,\n\"results\": [\n", setup)
	for i, res := range r.Results {
		f := fileResult{
			Name: res.Name, Settings: res.Settings, Store: res.Store, Ours: res.Ours, TTL: millis(res.TTL), Bound: millis(res.Bound),
			Leader: res.Leader.rounded(), Standby: res.Standby.rounded(),
		}
		for _, x := range res.Rounds {
			f.Crash, f.Age = append(f.Crash, millis(x.Crash)), append(f.Age, millis(x.Age))
			f.Failover, f.Start = append(f.Failover, millis(x.Failover)), append(f.Start, millis(x.Start))
			if x.Seal > 0 {
				f.Seal = append(f.Seal, millis(x.Seal))
			}
		}
		line, err := json.Marshal(f)
		if err != nil {
			return nil, fmt.Errorf("encode report: %w", err)
		}
		b.Write(line)
		if i < len(r.Results)-1 {
			b.WriteByte(',')
		}
		b.WriteByte('\n')
	}
	b.WriteString("]}\n")
	return b.Bytes(), nil
}

// Decode reads a report's file.
func Decode(data []byte) (Report, error) {
	var f struct {
		Setup   Setup        `json:"setup"`
		Results []fileResult `json:"results"`
	}
	if err := json.Unmarshal(data, &f); err != nil {
		return Report{}, fmt.Errorf("decode report: %w", err)
	}
	r := Report{Setup: f.Setup}
	for _, x := range f.Results {
		res := Result{
			About:  About{Name: x.Name, Settings: x.Settings, Store: x.Store, Ours: x.Ours, TTL: duration(x.TTL), Bound: duration(x.Bound)},
			Leader: x.Leader, Standby: x.Standby,
		}
		n := len(x.Failover)
		if len(x.Crash) != n || len(x.Age) != n || len(x.Start) != n || len(x.Seal) != n && len(x.Seal) != 0 {
			return Report{}, fmt.Errorf("decode report: the columns of %s, %s differ in length", x.Name, x.Settings)
		}
		for i := range n {
			round := Round{Crash: duration(x.Crash[i]), Age: duration(x.Age[i]), Failover: duration(x.Failover[i]), Start: duration(x.Start[i])}
			if len(x.Seal) > 0 {
				round.Seal = duration(x.Seal[i])
			}
			res.Rounds = append(res.Rounds, round)
		}
		r.Results = append(r.Results, res)
	}
	return r, nil
}

// millis has one decimal.
func millis(d time.Duration) float64 { return math.Round(float64(d)/1e5) / 10 }

func duration(ms float64) time.Duration {
	return time.Duration(math.Round(ms*10)) * 100 * time.Microsecond
}

func (r Rates) rounded() Rates { return Rates{math.Round(r.Reads), math.Round(r.Writes)} }
