package replica

import (
	"context"
	"path/filepath"
	"sync"

	"github.com/sf2loki/sf2loki-ha/cas"
	"github.com/sf2loki/sf2loki-ha/cas/gcs"
	"github.com/sf2loki/sf2loki-ha/cas/linkfile"
	"github.com/sf2loki/sf2loki-ha/cas/s3"
	"github.com/sf2loki/sf2loki-ha/coordinator"
	"github.com/sf2loki/sf2loki-ha/internal/config"
	"github.com/sf2loki/sf2loki-ha/internal/probe"
)

// leaseBucket returns how to open the bucket of the lease once more, with
// connections of its own, and the name of the lease in it. open is nil where
// there is nothing to probe: without a lease, and on Kubernetes, whose API server
// is one program of known semantics and not a kind of store.
func leaseBucket(cfg config.Coordinate) (open func(context.Context) (cas.Bucket, error), name string) {
	switch cfg.Type {
	case config.TypeFileLease:
		dir, name := filepath.Split(cfg.FileLease.Path)
		files := linkfile.Options{MaxReadAge: cfg.FileLease.TTL / 2} // as the lease itself
		return func(context.Context) (cas.Bucket, error) { return linkfile.Open(dir, files), nil }, name
	case config.TypeS3Lease:
		return func(ctx context.Context) (cas.Bucket, error) { return s3.Open(ctx, s3Config(cfg.S3Lease)) }, cfg.S3Lease.Key
	case config.TypeGCSLease:
		return func(ctx context.Context) (cas.Bucket, error) { return gcs.Open(ctx, gcsConfig(cfg.GCSLease)) }, cfg.GCSLease.ObjectName
	}
	return nil, ""
}

// openProbe prepares the store probe. The election runs beside it from the start,
// so that the time for which the lease stood unchanged counts already; it claims
// nothing before the probe has passed.
func (r *Replica) openProbe(election coordinator.Config) []coordinator.Option {
	open, name := leaseBucket(r.opts.Config.Coordinate)
	if open == nil || r.opts.Config.Coordinate.UnsafeSkipStoreProbe {
		return nil
	}
	r.metrics.ProbePending()
	r.probe = probe.New(probe.Config{
		Probe: func(ctx context.Context) cas.ProbeReport {
			return cas.Probe(ctx, cas.ProbeConfig{
				Open: open, Object: name, Incarnation: r.coord.Status().Incarnation, WriteInterval: election.MinWriteInterval,
			})
		},
		Answered: func() bool { return r.coord.Status().Answered },
		Leading:  func() bool { return r.coord.Status().Role != coordinator.RoleStandby },
		Observe:  func(report cas.ProbeReport) { r.metrics.Probed(report.Verdict) },
		Log:      r.log,
	})
	return []coordinator.Option{coordinator.WithAdmission(r.probe.Admit)}
}

// startProbe runs the store probe until the returned function is called, which
// waits for its end. fail is told if the store must not be used.
func (r *Replica) startProbe(ctx context.Context, fail context.CancelCauseFunc) (stop func()) {
	if r.probe == nil {
		if open, _ := leaseBucket(r.opts.Config.Coordinate); open != nil {
			r.log.Warn("store probe skipped", "key", "coordinate.unsafe_skip_store_probe",
				"effect", "nothing checks whether the store honours conditional writes; on a store that ignores them two replicas act at once",
				"hint", "remove the key")
		}
		return func() {}
	}
	ctx, cancel := context.WithCancel(ctx)
	var wg sync.WaitGroup
	wg.Go(func() {
		if err := r.probe.Run(ctx); err != nil {
			fail(&SetupError{err})
		}
	})
	return func() {
		cancel()
		wg.Wait()
	}
}

// admitted: no store probe stands in the way of candidacy.
func (r *Replica) admitted() bool { return r.probe == nil || r.probe.Admit() == nil }
