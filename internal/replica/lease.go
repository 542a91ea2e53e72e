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

// leaseStore opens the store of the lease and the one of its request object, with
// their requests counted, or nil with coordinate.type noop.
func (c *clients) leaseStore(ctx context.Context, cfg config.Coordinate, metrics *telemetry.Metrics, log *slog.Logger) (coordinator.LeaseStore, coordinator.RequestStore, error) {
	if cfg.Type == config.TypeK8sLease {
		// What the client library has to say by itself, such as a token file that
		// cannot be read again, comes in our format.
		klog.SetSlogLogger(log)
		l := cfg.K8sLease
		s, err := k8slease.Open(ctx, k8slease.Config{Namespace: l.Namespace, Name: l.Name, Kubeconfig: l.Kubeconfig})
		if err != nil {
			return nil, nil, fmt.Errorf("open Kubernetes client: %w", err)
		}
		c.open = append(c.open, s)
		return countedLease{s, metrics}, countedRequests{coordinator.RequestsFrom(s.Requests()), metrics}, nil
	}
	reg, requests, err := c.lease(ctx, cfg, log)
	if reg == nil || err != nil {
		return nil, nil, err
	}
	return coordinator.FromRegister(metrics.Instrument(reg)), countedRequests{coordinator.RequestsFrom(requests), metrics}, nil
}

// countedRequests counts the requests that concern the request object, apart from
// those of the lease: that it does not exist is the ordinary answer.
type countedRequests struct {
	coordinator.RequestStore
	metrics *telemetry.Metrics
}

func (r countedRequests) ReadRequest(ctx context.Context) (coordinator.RequestState, error) {
	begun := time.Now()
	state, err := r.RequestStore.ReadRequest(ctx)
	r.metrics.StoreRequest("request", cas.ClassOf(err), time.Since(begun))
	return state, err
}

func (r countedRequests) WriteRequest(ctx context.Context, q coordinator.Request, old cas.Version) error {
	begun := time.Now()
	err := r.RequestStore.WriteRequest(ctx, q, old)
	r.metrics.StoreRequest("request", cas.ClassOf(err), time.Since(begun))
	return err
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
