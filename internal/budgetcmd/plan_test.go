package budgetcmd

import (
	"bytes"
	"context"
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sf2loki/sf2loki-ha/cas"
	"github.com/sf2loki/sf2loki-ha/cas/mem"
	"github.com/sf2loki/sf2loki-ha/coordinator"
	"github.com/sf2loki/sf2loki-ha/internal/config"
)

func load(t *testing.T, yaml string) *config.Config {
	t.Helper()
	path := filepath.Join(t.TempDir(), "config.yaml")
	if err := os.WriteFile(path, []byte(yaml), 0o600); err != nil {
		t.Fatal(err)
	}
	cfg, err := config.Load(path, nil)
	if err != nil {
		t.Fatal(err)
	}
	return cfg
}

const s3 = `
coordinate: {type: s3_lease, s3_lease: {bucket: b, region: r, ttl: 20s, renew_interval: 4s, poll_interval: 2s}}
state: {store: s3, s3: {bucket: b, region: r}}
workload: {stop_grace: 5s}
service: {platform_stop_window: 10s}
`

func TestAConfigurationIsPlannedAsItIsRun(t *testing.T) {
	cfg := load(t, s3)
	p, err := ForConfig(cfg, "")
	if err != nil {
		t.Fatal(err)
	}
	if want := cfg.Election("replica").Budget(); p.Budget != want {
		t.Errorf("%+v\nwant that of the elector: %+v", p.Budget, want)
	}
	// By hand: 20 s less 1 %, 5 s of grace, 1 s of margin; the drain is cut by the
	// platform.
	b := p.Budget
	if b.StopAfter != 13800*time.Millisecond || b.Failover != 22400*time.Millisecond || b.Drain != 8*time.Second {
		t.Errorf("%+v", b)
	}
	if p.Seal != 200*time.Millisecond || p.Dark != b.Failover+p.Seal {
		t.Errorf("seal %v, dark %v", p.Seal, p.Dark)
	}
}

func TestAProfileTakesThePlaceOfTheDurationsAndOfNothingElse(t *testing.T) {
	p, err := ForConfig(load(t, strings.Replace(s3, "5s}", "1s}", 1)), "fast")
	if err != nil {
		t.Fatal(err)
	}
	e := p.Election
	if e.TTL != 6*time.Second || e.RenewInterval != 2*time.Second || e.PollInterval != time.Second || e.StopGrace != time.Second {
		t.Errorf("%+v", e)
	}
	// What does not fit is said, as at a start.
	_, err = ForConfig(load(t, s3), "fast")
	if err == nil || !strings.Contains(err.Error(), "with profile fast") || !strings.Contains(err.Error(), "stop grace 5s") {
		t.Errorf("a stop grace of 5 s in a ttl of 6 s: %v", err)
	}
}

func TestTheWorkWaitsForItsTurnOnCloudStorage(t *testing.T) {
	gcs := `
coordinate: {type: gcs_lease, gcs_lease: {bucket: b}}
state: {store: gcs, gcs: {bucket: b}}
`
	for yaml, want := range map[string]time.Duration{
		gcs: 1200 * time.Millisecond,
		gcs + "workload: {checkpoint_api: true}\n":           200 * time.Millisecond,
		strings.Replace(gcs, "store: gcs", "store: none", 1): 0,
	} {
		if p, err := ForConfig(load(t, yaml), ""); err != nil || p.Seal != want {
			t.Errorf("%s: seal %v, %v; want %v", yaml, p.Seal, err, want)
		}
	}
	plans, err := ForProfile("fast")
	if err != nil || len(plans) != 2 || plans[0].Election.TTL != 6*time.Second || plans[1].Election.TTL != 8*time.Second {
		t.Errorf("%+v, %v", plans, err)
	}
}

func TestWhatCannotBePlannedIsSaid(t *testing.T) {
	file := "coordinate: {type: file_lease}\n"
	for name, c := range map[string]struct{ yaml, profile, want string }{
		"no election":              {"{}", "", "coordinate.type is noop"},
		"no such profile":          {"{}", "quick", "choose fast, default, calm"},
		"no such profile, a lease": {s3, "quick", "choose fast, default, calm"},
		"no bucket":                {file, "fast", "profiles are for leases in a bucket"},
	} {
		if _, err := Plans(load(t, c.yaml), c.profile); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v; want %q", name, err, c.want)
		}
	}
	// Requests to a file cost nothing, the times count all the same.
	plans, err := Plans(load(t, file), "")
	if err != nil || len(plans) != 1 || plans[0].Cost != nil || plans[0].Budget.Failover != 31400*time.Millisecond {
		t.Errorf("%+v, %v", plans, err)
	}
}

func TestTheCostByHand(t *testing.T) {
	c := costOf(coordinator.Budget{LeaderWritesPerHour: 1000, LeaderReadsPerHour: 2000, StandbyReadsPerHour: 10000}, true)
	// 730 hours: $0.005 for 1,000 writes, $0.0004 for 1,000 reads.
	for what, pair := range map[string][2]float64{
		"leader writes": {c.LeaderWrites, 3.65}, "leader reads": {c.LeaderReads, 0.584}, "standby reads": {c.StandbyReads, 2.92},
		"probes": {c.Probes, 0.1898 + 0.005256}, "together": {c.Total, 3.65 + 0.584 + 2.92 + 0.1898 + 0.005256},
	} {
		if math.Abs(pair[0]-pair[1]) > 1e-9 {
			t.Errorf("%s: $%v, want $%v", what, pair[0], pair[1])
		}
	}
	if c := costOf(coordinator.Budget{}, false); c.Total != 0 {
		t.Errorf("without requests and probes: %+v", c)
	}
}

// counted counts the requests for the objects of a probe.
type counted struct {
	cas.ScratchBucket
	reads, writes *atomic.Int64
}

type countedScratch struct {
	cas.Scratch
	b counted
}

type countedRegister struct {
	cas.Register
	b counted
}

func (b counted) Scratch(object string) cas.Scratch {
	return countedScratch{b.ScratchBucket.Scratch(object), b}
}
func (s countedScratch) Register(name string) cas.Register {
	return countedRegister{s.Scratch.Register(name), s.b}
}
func (r countedRegister) Load(ctx context.Context) (cas.Value, error) {
	r.b.reads.Add(1)
	return r.Register.Load(ctx)
}
func (r countedRegister) Create(ctx context.Context, data []byte) (cas.Version, error) {
	r.b.writes.Add(1)
	return r.Register.Create(ctx, data)
}
func (r countedRegister) Replace(ctx context.Context, data []byte, old cas.Version) (cas.Version, error) {
	r.b.writes.Add(1)
	return r.Register.Replace(ctx, data, old)
}

func TestAProbeMakesAsManyRequestsAsAreCharged(t *testing.T) {
	var reads, writes atomic.Int64
	store := mem.New()
	report := cas.Probe(t.Context(), cas.ProbeConfig{
		Open:   func(context.Context) (cas.Bucket, error) { return counted{store.Open(), &reads, &writes}, nil },
		Object: "lease",
	})
	if report.Verdict != cas.ProbeOK || reads.Load() != probeReads || writes.Load() != probeWrites {
		t.Errorf("%s: %d reads and %d writes; charged are %d and %d", report.Verdict, reads.Load(), writes.Load(), probeReads, probeWrites)
	}
}

func TestLinesAndJSONSayTheSame(t *testing.T) {
	plans, err := Plans(load(t, s3), "")
	if err != nil {
		t.Fatal(err)
	}
	var lines, object bytes.Buffer
	if err := Print(&lines, plans); err != nil {
		t.Fatal(err)
	}
	if err := PrintJSON(&object, plans); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(lines.String(), "platform's stop window") {
		t.Error("a stop window was configured, and the lines speak of another")
	}
	for _, want := range []string{"s3://b/sf2loki/leader.lease\n", "20s, 4s, 2s", "16s to 20s", "failover          22.4s", "stop              13.8s", "$3.29", "1.01 %"} {
		if !strings.Contains(lines.String(), want) {
			t.Errorf("%q is not in\n%s", want, lines.String())
		}
	}
	var got struct {
		Budgets []map[string]any `json:"budgets"`
	}
	if err := json.Unmarshal(object.Bytes(), &got); err != nil || len(got.Budgets) != 1 {
		t.Fatal(err, object.String())
	}
	for key, want := range map[string]any{
		"lease": "s3://b/sf2loki/leader.lease", "ttl_ms": 20000.0, "failover_ms": 22400.0, "stop_after_ms": 13800.0,
		"leader_writes_per_hour": 900.0, "standby_reads_per_hour": 2700.0, "probe_requests_per_hour": 70.0,
	} {
		if got.Budgets[0][key] != want {
			t.Errorf("%s is %v, want %v", key, got.Budgets[0][key], want)
		}
	}
	if cost := got.Budgets[0]["cost_per_month_usd"].(map[string]any); cost["leader_writes"] != 3.29 {
		t.Errorf("%v", cost)
	}
}
