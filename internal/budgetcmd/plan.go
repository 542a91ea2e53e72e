package budgetcmd

import (
	"errors"
	"fmt"
	"time"

	"github.com/sf2loki/sf2loki-ha/coordinator"
	"github.com/sf2loki/sf2loki-ha/internal/config"
	"github.com/sf2loki/sf2loki-ha/internal/replica"
)

// Plan is one set of durations and what follows from it.
type Plan struct {
	// Title names it for people.
	Title string
	// Lease is the object, "" for a profile without a configuration.
	Lease string
	// Type is the value of coordinate.type.
	Type string
	// Profile was applied, or "".
	Profile string
	// Election has its defaults.
	Election coordinator.Config
	// Budget is what the election promises.
	Budget coordinator.Budget
	// Seal is the longest time from an acquisition to the start of the work: the
	// checkpoint document is read and written once, and where the store limits
	// writes the work waits for its turn. 0 if there is no document.
	Seal time.Duration
	// Dark is the longest time in which nothing acts after a crash, counted from
	// the last renewal that landed, without what the work needs to start.
	Dark time.Duration
	// Cost is per month, or nil where requests are not billed.
	Cost *Cost
}

// storage has the names of the billed stores.
var storage = map[string]string{config.TypeS3Lease: "S3", config.TypeGCSLease: "Cloud Storage"}

// Plans are those of a configuration, or of a profile alone.
func Plans(cfg *config.Config, profile string) ([]Plan, error) {
	if cfg.Coordinate.Type == config.TypeNoop && profile != "" {
		return ForProfile(profile)
	}
	p, err := ForConfig(cfg, profile)
	if err != nil {
		return nil, err
	}
	return []Plan{p}, nil
}

// ForConfig plans a configuration as "run" would use it, or with the durations of
// the profile in place of its own.
func ForConfig(cfg *config.Config, profile string) (Plan, error) {
	if cfg.Coordinate.Type == config.TypeNoop {
		return Plan{}, errors.New("coordinate.type is noop: there is no lease and no failover; give --config with a lease, or --profile")
	}
	p := Plan{Title: cfg.LeaseObject(), Lease: cfg.LeaseObject(), Type: cfg.Coordinate.Type, Profile: profile}
	e := cfg.Election("replica")
	if profile != "" {
		if storage[p.Type] == "" {
			return Plan{}, fmt.Errorf("profiles are for leases in a bucket; coordinate.type is %s", p.Type)
		}
		var err error
		if e, err = e.WithProfile(profile); err != nil {
			return Plan{}, err
		}
		if err := e.Validate(); err != nil {
			return Plan{}, fmt.Errorf("with profile %s: %w", profile, err)
		}
		p.Title += ", profile " + profile
	}
	switch {
	case cfg.State.Store == config.StoreNone:
	case cfg.Workload.CheckpointAPI:
		p.Seal = seal(0) // the socket keeps the distance, the work need not wait
	default:
		p.Seal = seal(replica.StateWriteInterval(cfg.State))
	}
	p.compute(e, !cfg.Coordinate.UnsafeSkipStoreProbe)
	return p, nil
}

// ForProfile plans a profile on both billed stores, lease and checkpoint document
// in one bucket.
func ForProfile(profile string) ([]Plan, error) {
	var plans []Plan
	for _, typ := range []string{config.TypeS3Lease, config.TypeGCSLease} {
		var e coordinator.Config
		p := Plan{Title: profile + " on " + storage[typ], Type: typ, Profile: profile, Seal: seal(0)}
		if typ == config.TypeGCSLease {
			e.MinWriteInterval = writeInterval
			p.Seal = seal(writeInterval)
		}
		e, err := e.WithProfile(profile)
		if err != nil {
			return nil, err
		}
		p.compute(e, true)
		plans = append(plans, p)
	}
	return plans, nil
}

// writeInterval is how often Cloud Storage takes a write of one object.
const writeInterval = time.Second

// seal is one read and one write, and the distance to the first write of the work.
func seal(spacing time.Duration) time.Duration { return 2*coordinator.RoundTrip + spacing }

// compute fills in what follows from the durations.
func (p *Plan) compute(e coordinator.Config, probed bool) {
	p.Election, p.Budget = e.WithDefaults(), e.Budget()
	p.Dark = p.Budget.Failover + p.Seal
	if storage[p.Type] != "" {
		c := costOf(p.Budget, probed)
		p.Cost = &c
	}
}
