package config

import (
	"time"

	"github.com/sf2loki/sf2loki-ha/coordinator"
)

// gcsWriteInterval is how often Cloud Storage accepts a write of one object.
const gcsWriteInterval = time.Second

// Election builds what the elector of the selected type needs. The identity
// names this replica for people; see [Config.HolderID]. Lease, revision and
// platform are the caller's to fill in. With noop the durations of a lease are
// left at their defaults: nothing is renewed.
func (c *Config) Election(identity string) coordinator.Config {
	e := c.leaseDurations()
	e.Identity = identity
	e.PlatformStopWindow = c.Service.PlatformStopWindow
	e.ShutdownGrace = c.Service.ShutdownGrace
	if e.ShutdownGrace == 0 {
		// The coordinator reads zero as "default"; here it means no grace.
		e.ShutdownGrace = time.Millisecond
	}
	if c.Coordinate.Type != TypeNoop {
		// A noop term never expires, so that its work never needs the grace.
		e.StopGrace = c.Workload.StopGrace
	}
	if c.Coordinate.Type == TypeGCSLease {
		e.MinWriteInterval = gcsWriteInterval
	}
	return e
}

// leaseDurations are the durations in the section of the selected type.
func (c *Config) leaseDurations() coordinator.Config {
	switch l := c.Coordinate; l.Type {
	case TypeFileLease:
		return coordinator.Config{TTL: l.FileLease.TTL, RenewInterval: l.FileLease.RenewInterval, PollInterval: l.FileLease.PollInterval}
	case TypeS3Lease:
		return coordinator.Config{TTL: l.S3Lease.TTL, RenewInterval: l.S3Lease.RenewInterval, PollInterval: l.S3Lease.PollInterval}
	case TypeGCSLease:
		return coordinator.Config{TTL: l.GCSLease.TTL, RenewInterval: l.GCSLease.RenewInterval, PollInterval: l.GCSLease.PollInterval}
	case TypeK8sLease:
		return coordinator.Config{TTL: l.K8sLease.LeaseDuration, RenewInterval: l.K8sLease.RenewInterval}
	}
	return coordinator.Config{}
}

// durationKeys are the keys that leaseDurations reads; empty where the type has
// none.
func (c *Config) durationKeys() (ttl, renew, poll string) {
	section := "coordinate." + c.Coordinate.Type
	switch c.Coordinate.Type {
	case TypeFileLease, TypeS3Lease, TypeGCSLease:
		return section + ".ttl", section + ".renew_interval", section + ".poll_interval"
	case TypeK8sLease:
		return section + ".lease_duration", section + ".renew_interval", ""
	}
	return "", "", ""
}

// keyOf is the key that sets a field of coordinator.Config. What no key sets is
// derived from the ttl, so that the ttl is what can be changed.
func (c *Config) keyOf(field string) string {
	ttl, renew, poll := c.durationKeys()
	key := ttl
	switch field {
	case "Identity":
		key = "coordinate." + c.Coordinate.Type + ".holder_id"
		if c.Coordinate.Type == TypeK8sLease {
			key = "coordinate.k8s_lease.identity"
		}
	case "RenewInterval":
		key = renew
	case "PollInterval":
		key = poll
	case "StopGrace":
		key = "workload.stop_grace"
	case "ShutdownGrace":
		key = "service.shutdown_grace"
	case "PlatformStopWindow":
		key = "service.platform_stop_window"
	}
	if key == "" {
		key = ttl
	}
	if key == "" {
		key = "coordinate.type"
	}
	return key
}

// HolderID is the configured name of this replica for the selected type, or "".
func (c *Config) HolderID() string {
	switch l := c.Coordinate; l.Type {
	case TypeFileLease:
		return l.FileLease.HolderID
	case TypeS3Lease:
		return l.S3Lease.HolderID
	case TypeGCSLease:
		return l.GCSLease.HolderID
	case TypeK8sLease:
		return l.K8sLease.Identity
	}
	return ""
}
