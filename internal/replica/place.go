package replica

import (
	"context"
	"log/slog"
	"maps"
	"time"

	"github.com/sf2loki/sf2loki-ha/internal/config"
	"github.com/sf2loki/sf2loki-ha/internal/identity"
)

// place is where this replica runs, as far as it matters to the election.
type place struct {
	platform string
	// holder names the replica for people. It may be that of another one: the
	// incarnation tells replicas apart.
	holder string
	facts  map[string]string // for the record
	// window is the platform's time from SIGTERM to SIGKILL, or 0; assumed: nobody
	// configured it.
	window  time.Duration
	assumed bool
	problem error
}

// findPlace asks the platform, and lets the configuration overrule it.
func findPlace(ctx context.Context, cfg *config.Config) place {
	id := identity.Detect(ctx, identity.Seams{})
	p := place{platform: id.Platform, holder: id.Holder, window: cfg.Service.PlatformStopWindow, problem: id.Problem}
	if configured := cfg.HolderID(); configured != "" {
		p.holder = configured
	}
	if p.platform != "" {
		p.facts = maps.Clone(id.Details)
		p.facts["platform"] = p.platform
	}
	if p.window == 0 && id.StopWindow > 0 {
		p.window, p.assumed = id.StopWindow, true
	}
	return p
}

// log says once what was found, and what was assumed.
func (p place) log(log *slog.Logger, cfg *config.Config) {
	if p.platform == "" {
		return
	}
	log.Info("platform", "platform", p.platform, "facts", p.facts)
	if p.problem != nil {
		log.Warn("platform_unclear", "platform", p.platform, "error", p.problem.Error(),
			"hint", "records name this replica less exactly; nothing else depends on it")
	}
	election := cfg.Election(p.holder)
	election.PlatformStopWindow = 0
	free := election.Budget().Drain
	election.PlatformStopWindow = p.window
	if fitted := election.Budget().Drain; p.assumed && fitted < free {
		log.Warn("stop_window_assumed", "platform", p.platform, "window", p.window, "drain", fitted, "wanted", free,
			"hint", "the platform kills that long after SIGTERM unless it was told otherwise: the work gets less time to drain than service.shutdown_grace; set service.platform_stop_window to what the platform really grants")
	}
}
