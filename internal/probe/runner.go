package probe

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/sf2loki/sf2loki-ha/cas"
	"github.com/sf2loki/sf2loki-ha/internal/lasting"
)

const (
	// interval is the time between two probes of a standby. A store that is
	// replaced, upgraded or given another proxy is noticed within it.
	interval = time.Hour
	// firstPause doubles up to lastPause while there is no verdict.
	firstPause = time.Second
	lastPause  = 30 * time.Second
)

// ErrNotYet is what Admit says until a probe has passed.
var ErrNotYet = errors.New("the store probe has not passed yet")

// Config says what to run.
type Config struct {
	// Probe probes the store once; it ends with its context. Required.
	Probe func(context.Context) cas.ProbeReport
	// Answered tells whether the store has given the election a definite answer.
	// The first probe waits for it: a store that cannot even be read is said to
	// the operator once, by the election. Required.
	Answered func() bool
	// Leading tells whether this replica leads. Required.
	Leading func() bool
	// Observe gets the report of each probe that was not cut off. May be nil.
	Observe func(cas.ProbeReport)
	// Log gets a line where something changes. Required.
	Log *slog.Logger
}

// Runner probes one store. Create it with New, Run it once.
type Runner struct {
	cfg    Config
	denial atomic.Pointer[error] // why nothing may be claimed; nil: admitted

	// Of Run alone.
	troubles lasting.Troubles
	passed   bool
	pauses   int
}

// New returns a runner that admits nothing yet. It sends no request.
func New(cfg Config) *Runner {
	r := &Runner{cfg: cfg}
	r.denial.Store(&ErrNotYet)
	return r
}

// Admit is nil if this replica may claim. It returns at once and may be called
// from any goroutine.
func (r *Runner) Admit() error {
	if err := r.denial.Load(); err != nil {
		return *err
	}
	return nil
}

// Run probes until ctx ends, and returns nil then, at once. It returns an error
// of class cas.Unsupported if the store must not be used.
func (r *Runner) Run(ctx context.Context) error {
	if !r.answered(ctx) {
		return nil
	}
	for {
		report := r.cfg.Probe(ctx)
		if ctx.Err() != nil {
			return nil // what was cut off says nothing
		}
		if r.cfg.Observe != nil {
			r.cfg.Observe(report)
		}
		wait, err := r.judge(report)
		if err != nil {
			return err
		}
		if !r.pause(ctx, wait) {
			return nil
		}
	}
}

// answered waits for the first answer of the store; false if ctx ended first.
func (r *Runner) answered(ctx context.Context) bool {
	const look = 20 * time.Millisecond
	t := time.NewTicker(look)
	defer t.Stop()
	for !r.cfg.Answered() {
		select {
		case <-ctx.Done():
			return false
		case <-t.C:
		}
	}
	return true
}

// judge draws the consequences of a report and says when to probe again.
func (r *Runner) judge(report cas.ProbeReport) (time.Duration, error) {
	r.sayLeft(report)
	err := report.Err()
	switch report.Verdict {
	case cas.ProbeOK:
		r.denial.Store(nil)
		r.pauses = 0
		r.sayPassed(report)
		return jittered(interval), nil

	case cas.ProbeUnsupported:
		r.denial.Store(&err)
		if !r.cfg.Leading() {
			return 0, err
		}
		if r.troubles.News("probe", string(report.Fault), time.Now()) {
			r.cfg.Log.Error("store probe failed", "fault", string(report.Fault), "error", err.Error(),
				"effect", "this replica leads until its term ends and claims no other")
		}
		return jittered(interval), nil
	}
	r.sayUnknown(err)
	wait := min(lastPause, firstPause<<min(r.pauses, 10))
	r.pauses++
	return jittered(wait), nil
}

// pause waits, and goes on waiting while this replica leads.
func (r *Runner) pause(ctx context.Context, wait time.Duration) bool {
	t := time.NewTimer(wait)
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return false
		case <-t.C:
		}
		if !r.cfg.Leading() {
			return true
		}
		// Not probed as a leader; looked at again soon after it has stepped down.
		t.Reset(jittered(lastPause))
	}
}

func (r *Runner) sayPassed(report cas.ProbeReport) {
	level := slog.LevelDebug // hourly, and nothing new
	if r.troubles.Over("probe") || !r.passed {
		level = slog.LevelInfo
	}
	r.passed = true
	r.cfg.Log.Log(context.Background(), level, "store probe passed", "area", report.Area, "probe_version", report.Version,
		"requests", report.Requests, "took", report.Took.Round(time.Millisecond).String())
}

// sayUnknown says a trouble that lasts once, with what mends it.
func (r *Runner) sayUnknown(err error) {
	class := cas.ClassOf(err)
	level := slog.LevelError
	if class == cas.Ambiguous || class == cas.Contended {
		level = slog.LevelWarn
	}
	if !r.troubles.News("probe", string(class), time.Now()) {
		level = slog.LevelDebug
	}
	effect := "this replica stays a standby and claims nothing until the probe has passed"
	if r.passed {
		effect = "none yet: an earlier probe has passed"
	}
	r.cfg.Log.Log(context.Background(), level, "store probe undecided", "class", string(class), "error", err.Error(), "effect", effect)
}

func (r *Runner) sayLeft(report cas.ProbeReport) {
	if len(report.Left) == 0 {
		r.troubles.Over("left")
		return
	}
	level := slog.LevelWarn
	if report.Verdict == cas.ProbeUnknown || !r.troubles.News("left", report.CleanUp.Error(), time.Now()) {
		level = slog.LevelDebug // what stood in the way of the probe is said already
	}
	r.cfg.Log.Log(context.Background(), level, "store probe left objects behind", "objects", len(report.Left), "first", report.Left[0],
		"error", report.CleanUp.Error(), "hint", "they may be deleted; allow the removal of objects whose names begin with "+report.Area)
}

// jittered spreads the probes of a pair that was started together: d less up to
// a fifth.
func jittered(d time.Duration) time.Duration { return d - time.Duration(rand.Int64N(int64(d)/5+1)) }
