package failoverbench

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/sf2loki/sf2loki-ha/cas"
	"github.com/sf2loki/sf2loki-ha/checkpoint"
	"github.com/sf2loki/sf2loki-ha/coordinator"
)

// Ours is the coordinator as "run" assembles it: with a request object and the
// fence of a checkpoint document, which is sealed before the work starts.
func Ours(place Place, cfg coordinator.Config) Contestant {
	cfg = cfg.WithDefaults()
	c := Contestant{Place: place, About: About{
		Name: "sf2loki-ha", Store: place.Name(), Ours: true, TTL: cfg.TTL, Bound: cfg.Budget().Failover,
		Settings: fmt.Sprintf("ttl %v, renew %v, poll %v", cfg.TTL, cfg.RenewInterval, cfg.PollInterval),
	}}
	c.start = func(ctx context.Context, site Site, id string, link *Link, tell func(Milestone)) (<-chan struct{}, error) {
		bucket, err := site.Place.Open(link)
		if err != nil {
			return nil, err
		}
		cfg := cfg
		cfg.Identity, cfg.Lease = id, site.Lease
		bucket = linked{bucket, link}
		docOpts := []checkpoint.Option{
			checkpoint.WithLease(site.Lease, cfg.TTL), checkpoint.WithCallTimeout(cfg.CallTimeout), checkpoint.WithMinWriteInterval(cfg.MinWriteInterval),
		}
		opts := []coordinator.Option{
			coordinator.WithRequests(coordinator.RequestsFrom(cas.Aged(bucket, site.Lease+coordinator.RequestSuffix))),
			coordinator.WithObserver(func(e coordinator.Event) {
				if e.Kind == coordinator.Acquired {
					tell(Acquired)
				}
			}),
		}
		if site.Clock != nil {
			opts = append(opts, coordinator.WithClock(site.Clock))
		}
		document := checkpoint.Open(bucket.Register(site.Lease+".state"), docOpts...)
		opts = append(opts, coordinator.WithFence(document))
		elector, err := coordinator.New(coordinator.FromRegister(bucket.Register(site.Lease)), cfg, opts...)
		if err != nil {
			return nil, errors.Join(err, bucket.Close())
		}
		done := make(chan struct{})
		go func() {
			defer close(done)
			defer bucket.Close()
			// Run fails only if it is called twice.
			_ = elector.Run(ctx, func(ctx context.Context, t *coordinator.Term) error { return lead(ctx, t, document, tell) })
		}()
		return done, nil
	}
	return c
}

// lead seals, starts, and does nothing.
func lead(ctx context.Context, t *coordinator.Term, document *checkpoint.Store, tell func(Milestone)) error {
	session, err := document.Seal(ctx, t)
	if err != nil {
		return err
	}
	tell(Sealed)
	tell(Started)
	<-ctx.Done()
	closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer cancel()
	return session.Close(closing)
}
