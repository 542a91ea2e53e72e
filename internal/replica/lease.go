package replica

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"k8s.io/klog/v2"

	"github.com/sf2loki/sf2loki-ha/cas"
	"github.com/sf2loki/sf2loki-ha/coordinator"
	"github.com/sf2loki/sf2loki-ha/coordinator/k8slease"
	"github.com/sf2loki/sf2loki-ha/internal/config"
	"github.com/sf2loki/sf2loki-ha/internal/telemetry"
)

// leaseStore opens the store of the lease, with its requests counted, or nil
// with coordinate.type noop.
func (c *clients) leaseStore(ctx context.Context, cfg config.Coordinate, metrics *telemetry.Metrics, log *slog.Logger) (coordinator.LeaseStore, error) {
	if cfg.Type == config.TypeK8sLease {
		// What the client library has to say by itself, such as a token file that
		// cannot be read again, comes in our format.
		klog.SetSlogLogger(log)
		l := cfg.K8sLease
		s, err := k8slease.Open(ctx, k8slease.Config{Namespace: l.Namespace, Name: l.Name, Kubeconfig: l.Kubeconfig})
		if err != nil {
			return nil, fmt.Errorf("open Kubernetes client: %w", err)
		}
		c.open = append(c.open, s)
		return countedLease{s, metrics}, nil
	}
	reg, err := c.lease(ctx, cfg, log)
	if reg == nil || err != nil {
		return nil, err
	}
	return coordinator.FromRegister(metrics.Instrument(reg)), nil
}

// countedLease counts what an instrumented register would.
type countedLease struct {
	coordinator.LeaseStore
	metrics *telemetry.Metrics
}

func (l countedLease) Read(ctx context.Context) (coordinator.Lease, error) {
	begun := time.Now()
	lease, err := l.LeaseStore.Read(ctx)
	l.metrics.StoreRequest("load", cas.ClassOf(err), time.Since(begun))
	return lease, err
}

func (l countedLease) Create(ctx context.Context, r coordinator.Record) (cas.Version, error) {
	begun := time.Now()
	v, err := l.LeaseStore.Create(ctx, r)
	l.wrote("create", begun, err)
	return v, err
}

func (l countedLease) Replace(ctx context.Context, r coordinator.Record, old cas.Version) (cas.Version, error) {
	begun := time.Now()
	v, err := l.LeaseStore.Replace(ctx, r, old)
	l.wrote("replace", begun, err)
	return v, err
}

func (l countedLease) wrote(op string, begun time.Time, err error) {
	l.metrics.StoreRequest(op, cas.ClassOf(err), time.Since(begun))
	if err != nil && !cas.ClassOf(err).Definite() {
		l.metrics.Ambiguous()
	}
}
