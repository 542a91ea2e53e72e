package replica

import (
	"context"
	"fmt"
	"io"
	"log/slog"

	"github.com/sf2loki/sf2loki-ha/coordinator"
	"github.com/sf2loki/sf2loki-ha/coordinator/k8slease"
	"github.com/sf2loki/sf2loki-ha/internal/config"
)

// OpenLease opens the stores of a lease and of its request object for somebody
// who takes no part in the election, or returns nil with coordinate.type noop. The
// caller closes what it returns. It sends no request.
func OpenLease(ctx context.Context, cfg config.Coordinate) (coordinator.LeaseStore, coordinator.RequestStore, io.Closer, error) {
	c := &clients{}
	if cfg.Type == config.TypeK8sLease {
		l := cfg.K8sLease
		s, err := k8slease.Open(ctx, k8slease.Config{Namespace: l.Namespace, Name: l.Name, Kubeconfig: l.Kubeconfig})
		if err != nil {
			return nil, nil, c, fmt.Errorf("open Kubernetes client: %w", err)
		}
		c.open = append(c.open, s)
		return s, coordinator.RequestsFrom(s.Requests()), c, nil
	}
	lease, requests, err := c.lease(ctx, cfg, slog.New(slog.DiscardHandler))
	if lease == nil || err != nil {
		return nil, nil, c, err
	}
	return coordinator.FromRegister(lease), coordinator.RequestsFrom(requests), c, nil
}
