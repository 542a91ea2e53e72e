package telemetry

import (
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/sf2loki/sf2loki-ha/cas"
)

// State is what a replica knows about itself at one instant.
type State struct {
	// Leader: this replica leads and its deadline has not passed.
	Leader bool
	// Epoch is the highest epoch seen.
	Epoch int64
	// LeaseAge is the time since the version of the lease changed, on this
	// replica's clock; before the first read, since the process started.
	LeaseAge time.Duration
	// Remaining is the time to the deadline; only used while leading.
	Remaining time.Duration
	// Hold is how long a hold still lasts, as far as this replica knows.
	Hold time.Duration
	// WorkRunning: the child, or the lead function, runs.
	WorkRunning bool
}

// Metrics is the metrics of one process. It is safe for concurrent use.
type Metrics struct {
	registry *prometheus.Registry

	requests    *prometheus.CounterVec
	seconds     *prometheus.HistogramVec
	ambiguous   prometheus.Counter
	settled     prometheus.Counter
	transitions *prometheus.CounterVec
	starts      prometheus.Counter
	exits       *prometheus.CounterVec
	probe       *prometheus.GaugeVec
	probed      prometheus.Gauge
}

// classOK is the class label of a request that succeeded.
const classOK cas.Class = "ok"

// requestBuckets, in seconds, tell a healthy store (below 0.1 s) from one that
// eats into the budget (up to the call timeout of 1.5 s) and one that hangs.
var requestBuckets = []float64{0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10}

// New returns the metrics of a process of that version. state is called at
// every scrape and must return at once.
func New(version string, state func() State) *Metrics {
	m := &Metrics{
		registry: prometheus.NewRegistry(),
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "sf2loki_ha_store_requests_total", Help: "Requests to the object store by operation and class of the answer.",
		}, []string{"op", "class"}),
		seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "sf2loki_ha_store_request_seconds", Help: "Time from the send of a request to its answer.", Buckets: requestBuckets,
		}, []string{"op"}),
		ambiguous: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "sf2loki_ha_ambiguous_writes_total", Help: "Writes without a definite answer.",
		}),
		settled: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "sf2loki_ha_settled_total", Help: "Writes without a definite answer that a read showed to have landed.",
		}),
		transitions: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "sf2loki_ha_transitions_total", Help: "Transitions of the election by event.",
		}, []string{"event"}),
		starts: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "sf2loki_ha_work_starts_total", Help: "Starts of the work.",
		}),
		exits: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "sf2loki_ha_work_exits_total", Help: "Ends of the work by outcome.",
		}, []string{"outcome"}),
		probe: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "sf2loki_ha_store_probe_result", Help: "1 for the result of the last store probe, 0 for the others; 0 everywhere while none is made.",
		}, []string{"result"}),
		probed: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "sf2loki_ha_store_probe_timestamp_seconds", Help: "Wall clock at the end of the last store probe, in seconds since 1970; 0 before the first.",
		}),
	}
	for _, v := range cas.Verdicts() {
		m.probe.WithLabelValues(string(v))
	}
	// Series that are there from the start: a rate over a counter that appears
	// with its first event misses that event.
	for _, op := range []string{opLoad, opCreate, opReplace, opRequest} {
		m.seconds.WithLabelValues(op)
		m.requests.WithLabelValues(op, string(classOK))
		for _, class := range cas.Classes() {
			m.requests.WithLabelValues(op, string(class))
		}
	}
	build := prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "sf2loki_build_info", Help: "Version of this binary; the value is 1.",
	}, []string{"version"})
	build.WithLabelValues(version).Set(1)
	m.registry.MustRegister(
		&stateCollector{state: state}, build,
		m.requests, m.seconds, m.ambiguous, m.settled, m.transitions, m.starts, m.exits, m.probe, m.probed,
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
	)
	return m
}

// Handler answers scrapes.
func (m *Metrics) Handler() http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{
		// A collector that fails must not hide sf2loki_leader.
		ErrorHandling: promhttp.ContinueOnError,
		// Scrapes beyond that are answered 503 instead of piling up.
		MaxRequestsInFlight: 4,
	})
}

// StoreRequest counts one request to the store: op is load, create, replace or
// request,
// class is "" for success. Registers wrapped by Instrument do it by themselves.
func (m *Metrics) StoreRequest(op string, class cas.Class, took time.Duration) {
	if class == "" {
		class = classOK
	}
	m.requests.WithLabelValues(op, string(class)).Inc()
	m.seconds.WithLabelValues(op).Observe(took.Seconds())
}

// Ambiguous counts a write without a definite answer. Registers wrapped by
// Instrument do it by themselves.
func (m *Metrics) Ambiguous() { m.ambiguous.Inc() }

// Settled counts an ambiguous write that a read showed to have landed.
func (m *Metrics) Settled() { m.settled.Inc() }

// Transition counts an event of the election, such as acquired or lost. Events
// must come from a fixed vocabulary: each is a series.
func (m *Metrics) Transition(event string) { m.transitions.WithLabelValues(event).Inc() }

// WorkStarted counts a start of the work.
func (m *Metrics) WorkStarted() { m.starts.Inc() }

// WorkExited counts an end of the work. Outcomes must come from a fixed
// vocabulary: each is a series.
func (m *Metrics) WorkExited(outcome string) { m.exits.WithLabelValues(outcome).Inc() }

// ProbePending says that there will be a probe and that nothing is known yet.
func (m *Metrics) ProbePending() { m.probe.WithLabelValues(string(cas.ProbeUnknown)).Set(1) }

// Probed takes the verdict of a store probe that ended now.
func (m *Metrics) Probed(v cas.Verdict) {
	for _, other := range cas.Verdicts() {
		m.probe.WithLabelValues(string(other)).Set(number(other == v))
	}
	m.probed.SetToCurrentTime()
}

// stateCollector turns one State into gauges at every scrape, so that they
// agree with each other and never go missing.
type stateCollector struct{ state func() State }

var (
	leaderDesc    = prometheus.NewDesc("sf2loki_leader", "1 while this replica leads.", nil, nil)
	epochDesc     = prometheus.NewDesc("sf2loki_ha_epoch", "Highest epoch seen.", nil, nil)
	ageDesc       = prometheus.NewDesc("sf2loki_ha_lease_observed_age_seconds", "Time since the version of the lease changed, on this replica's clock.", nil, nil)
	remainingDesc = prometheus.NewDesc("sf2loki_ha_lease_deadline_remaining_seconds", "Time to the deadline of this replica's term; 0 unless it leads.", nil, nil)
	holdDesc      = prometheus.NewDesc("sf2loki_ha_hold_remaining_seconds", "Time to the end of a hold, during which nobody leads; 0 without one.", nil, nil)
	runningDesc   = prometheus.NewDesc("sf2loki_ha_work_running", "1 while the work runs.", nil, nil)
)

func (c *stateCollector) Describe(out chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{leaderDesc, epochDesc, ageDesc, remainingDesc, holdDesc, runningDesc} {
		out <- d
	}
}

func (c *stateCollector) Collect(out chan<- prometheus.Metric) {
	s := c.state()
	remaining := 0.0
	if s.Leader {
		remaining = s.Remaining.Seconds()
	}
	for _, g := range []struct {
		desc  *prometheus.Desc
		value float64
	}{
		{leaderDesc, number(s.Leader)},
		{epochDesc, float64(s.Epoch)},
		{ageDesc, s.LeaseAge.Seconds()},
		{remainingDesc, remaining},
		{holdDesc, s.Hold.Seconds()},
		{runningDesc, number(s.WorkRunning)},
	} {
		out <- prometheus.MustNewConstMetric(g.desc, prometheus.GaugeValue, g.value)
	}
}

func number(b bool) float64 {
	if b {
		return 1
	}
	return 0
}
