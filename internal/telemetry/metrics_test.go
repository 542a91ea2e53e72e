package telemetry_test

import (
	"context"
	"fmt"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sf2loki/sf2loki-ha/cas"
	"github.com/sf2loki/sf2loki-ha/cas/mem"
	"github.com/sf2loki/sf2loki-ha/internal/faultcas"
	"github.com/sf2loki/sf2loki-ha/internal/telemetry"
)

// scrape returns the samples of one scrape by series.
func scrape(t *testing.T, m *telemetry.Metrics) map[string]string {
	t.Helper()
	w := httptest.NewRecorder()
	m.Handler().ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	if w.Code != 200 {
		t.Fatalf("scrape: %d %s", w.Code, w.Body)
	}
	samples := map[string]string{}
	for line := range strings.Lines(w.Body.String()) {
		if line = strings.TrimSpace(line); line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		i := strings.LastIndexByte(line, ' ')
		samples[line[:i]] = line[i+1:]
	}
	return samples
}

func TestEverySeriesIsThereAtEveryScrape(t *testing.T) {
	want := []string{
		"sf2loki_leader", `sf2loki_build_info{version="1.2.3"}`, "sf2loki_ha_epoch", "sf2loki_ha_lease_observed_age_seconds",
		"sf2loki_ha_lease_deadline_remaining_seconds", "sf2loki_ha_work_running", "sf2loki_ha_ambiguous_writes_total",
		"sf2loki_ha_settled_total", "sf2loki_ha_work_starts_total", `sf2loki_ha_store_request_seconds_count{op="load"}`,
		`sf2loki_ha_store_probe_result{result="ok"}`, `sf2loki_ha_store_probe_result{result="unknown"}`,
		`sf2loki_ha_store_probe_result{result="unsupported"}`, "sf2loki_ha_store_probe_timestamp_seconds",
	}
	for _, op := range []string{"load", "create", "replace"} {
		want = append(want, fmt.Sprintf(`sf2loki_ha_store_requests_total{class="ok",op=%q}`, op))
		for _, class := range cas.Classes() {
			want = append(want, fmt.Sprintf(`sf2loki_ha_store_requests_total{class=%q,op=%q}`, string(class), op))
		}
	}
	for name, state := range map[string]telemetry.State{"never led": {}, "leading": {Leader: true, Epoch: 3, Remaining: time.Second}} {
		m := telemetry.New("1.2.3", func() telemetry.State { return state })
		for i := range 3 {
			got := scrape(t, m)
			for _, series := range want {
				if _, ok := got[series]; !ok {
					t.Errorf("%s, scrape %d: %s is missing", name, i+1, series)
				}
			}
		}
	}
}

func TestLeaderIsComputedFromTheDeadlineAtTheScrape(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		deadline := time.Now().Add(10 * time.Second)
		m := telemetry.New("x", func() telemetry.State {
			left := time.Until(deadline)
			return telemetry.State{Leader: left > 0, Epoch: 7, Remaining: left, LeaseAge: 3 * time.Second, WorkRunning: left > time.Second}
		})
		// Nobody reports a transition: the loop that would is stuck.
		for _, c := range []struct {
			after                      time.Duration
			leader, remaining, running string
		}{
			{0, "1", "10", "1"}, {8 * time.Second, "1", "2", "1"}, {1500 * time.Millisecond, "1", "0.5", "0"}, {time.Second, "0", "0", "0"}, {time.Hour, "0", "0", "0"},
		} {
			<-time.After(c.after)
			got := scrape(t, m)
			if got["sf2loki_leader"] != c.leader || got["sf2loki_ha_lease_deadline_remaining_seconds"] != c.remaining || got["sf2loki_ha_work_running"] != c.running {
				t.Errorf("leader %s, remaining %s, running %s; want %+v", got["sf2loki_leader"], got["sf2loki_ha_lease_deadline_remaining_seconds"], got["sf2loki_ha_work_running"], c)
			}
			if got["sf2loki_ha_epoch"] != "7" || got["sf2loki_ha_lease_observed_age_seconds"] != "3" {
				t.Errorf("epoch %s, age %s", got["sf2loki_ha_epoch"], got["sf2loki_ha_lease_observed_age_seconds"])
			}
		}
	})
}

func TestSumOfLeadersOverThePairIsOne(t *testing.T) {
	leads := 0
	pair := make([]*telemetry.Metrics, 2)
	for i := range pair {
		pair[i] = telemetry.New("x", func() telemetry.State { return telemetry.State{Leader: leads == i} })
	}
	for leads = range 2 {
		sum := ""
		for _, m := range pair {
			sum += scrape(t, m)["sf2loki_leader"]
		}
		if sum != "10" && sum != "01" {
			t.Errorf("values of the pair: %s", sum)
		}
	}
}

func TestVersionIsALabelOfBuildInfoOnly(t *testing.T) {
	for series := range scrape(t, telemetry.New("9.9.9-unique", func() telemetry.State { return telemetry.State{} })) {
		if strings.Contains(series, "9.9.9-unique") != strings.HasPrefix(series, "sf2loki_build_info") {
			t.Errorf("%s", series)
		}
		if regexp.MustCompile(`instance|identity|holder|incarnation`).MatchString(series) {
			t.Errorf("%s names the replica", series)
		}
	}
}

func TestRequestsAreCountedByClassAndTimed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := telemetry.New("x", func() telemetry.State { return telemetry.State{} })
		faults := []faultcas.Fault{
			{}, {}, {Delay: 300 * time.Millisecond}, {Refuse: cas.Denied}, {Lose: cas.Ambiguous}, {Refuse: cas.Contended}, {Refuse: cas.Ambiguous},
		}
		r := m.Instrument(faultcas.Wrap(mem.New().Open().Register("x"), func(_ faultcas.Op, n int) faultcas.Fault { return faults[n-1] }))
		ctx := context.Background()
		_, err := r.Load(ctx) // not found
		if cas.ClassOf(err) != cas.NotFound || r.Describe() != "mem://x" {
			t.Errorf("the wrapped register answers %v for %s", err, r.Describe())
		}
		v, err := r.Create(ctx, []byte("a"))
		if err != nil || v == "" {
			t.Fatal(v, err)
		}
		if v, err = r.Replace(ctx, []byte("b"), v); err != nil {
			t.Fatal(err)
		}
		_, _ = r.Replace(ctx, []byte("c"), v) // denied
		_, _ = r.Replace(ctx, []byte("c"), v) // lost
		_, _ = r.Replace(ctx, []byte("c"), v) // contended
		_, _ = r.Load(ctx)                    // no answer, but a read
		got := scrape(t, m)
		for series, want := range map[string]string{
			`sf2loki_ha_store_requests_total{class="not_found",op="load"}`:    "1",
			`sf2loki_ha_store_requests_total{class="ambiguous",op="load"}`:    "1",
			`sf2loki_ha_store_requests_total{class="ok",op="create"}`:         "1",
			`sf2loki_ha_store_requests_total{class="ok",op="replace"}`:        "1",
			`sf2loki_ha_store_requests_total{class="denied",op="replace"}`:    "1",
			`sf2loki_ha_store_requests_total{class="ambiguous",op="replace"}`: "1",
			`sf2loki_ha_store_requests_total{class="contended",op="replace"}`: "1",
			`sf2loki_ha_ambiguous_writes_total`:                               "2",
			`sf2loki_ha_store_request_seconds_count{op="replace"}`:            "4",
			`sf2loki_ha_store_request_seconds_sum{op="replace"}`:              "0.3",
			`sf2loki_ha_store_request_seconds_bucket{op="replace",le="0.25"}`: "3",
			`sf2loki_ha_store_request_seconds_bucket{op="replace",le="0.5"}`:  "4",
		} {
			if got[series] != want {
				t.Errorf("%s = %q, want %s", series, got[series], want)
			}
		}
	})
}

func TestEventsAreCounted(t *testing.T) {
	m := telemetry.New("x", func() telemetry.State { return telemetry.State{} })
	m.Transition("acquired")
	m.Transition("acquired")
	m.Transition("lost")
	m.WorkStarted()
	m.WorkExited("killed")
	m.Settled()
	m.Ambiguous()
	m.StoreRequest("load", "", time.Second)
	m.StoreRequest("load", cas.Denied, time.Second)
	got := scrape(t, m)
	for series, want := range map[string]string{
		`sf2loki_ha_transitions_total{event="acquired"}`: "2", `sf2loki_ha_transitions_total{event="lost"}`: "1",
		`sf2loki_ha_work_starts_total`: "1", `sf2loki_ha_work_exits_total{outcome="killed"}`: "1",
		`sf2loki_ha_settled_total`: "1", `sf2loki_ha_ambiguous_writes_total`: "1",
		`sf2loki_ha_store_requests_total{class="ok",op="load"}`: "1", `sf2loki_ha_store_requests_total{class="denied",op="load"}`: "1",
		`sf2loki_ha_store_request_seconds_sum{op="load"}`: "2",
	} {
		if got[series] != want {
			t.Errorf("%s = %q, want %s", series, got[series], want)
		}
	}
}

func TestTheLastResultOfTheStoreProbeIsTheOnlyOne(t *testing.T) {
	m := telemetry.New("v", func() telemetry.State { return telemetry.State{} })
	check := func(step string, want map[string]string) {
		t.Helper()
		got := scrape(t, m)
		for result, value := range want {
			if series := fmt.Sprintf("sf2loki_ha_store_probe_result{result=%q}", result); got[series] != value {
				t.Errorf("%s: %s is %s, want %s", step, series, got[series], value)
			}
		}
		if never := got["sf2loki_ha_store_probe_timestamp_seconds"] == "0"; never != (step == "none" || step == "pending") {
			t.Errorf("%s: time %s", step, got["sf2loki_ha_store_probe_timestamp_seconds"])
		}
	}
	check("none", map[string]string{"ok": "0", "unknown": "0", "unsupported": "0"})
	m.ProbePending()
	check("pending", map[string]string{"ok": "0", "unknown": "1", "unsupported": "0"})
	m.Probed(cas.ProbeOK)
	check("ok", map[string]string{"ok": "1", "unknown": "0", "unsupported": "0"})
	m.Probed(cas.ProbeUnsupported)
	check("unsupported", map[string]string{"ok": "0", "unknown": "0", "unsupported": "1"})
}
