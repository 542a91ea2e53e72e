package k8slease

import (
	"math"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/sf2loki/sf2loki-ha/coordinator"
)

// specOf is what a record looks like as a Lease.
//
// A released lease has no holder: kubectl shows nobody, and other software
// (client-go's elector, sf2loki's own) claims such a lease at once. This
// package's readers go by the record in the annotation.
//
// leaseTransitions is the epoch, so that it does not start again from zero when
// the annotation is lost. It has 31 bits; an epoch beyond stays at the largest
// value there and goes on in the annotation.
func specOf(r coordinator.Record) coordinationv1.LeaseSpec {
	holder := r.Holder
	if r.State == coordinator.Released {
		holder = ""
	}
	// Up, never down: other software must not find the lease stale before the
	// record's own ttl has passed. Kubernetes refuses 0.
	seconds := int32(max(1, min((r.TTL+time.Second-1)/time.Second, math.MaxInt32)))
	transitions := int32(min(r.Epoch, math.MaxInt32))
	return coordinationv1.LeaseSpec{
		HolderIdentity: &holder, LeaseDurationSeconds: &seconds, LeaseTransitions: &transitions,
		AcquireTime: microTime(r.AcquiredAt), RenewTime: microTime(r.RenewedAt),
	}
}

// specFields are those fields by name; nil removes one.
func specFields(r coordinator.Record) map[string]any {
	s := specOf(r)
	set := map[string]any{
		"holderIdentity": s.HolderIdentity, "leaseDurationSeconds": s.LeaseDurationSeconds, "leaseTransitions": s.LeaseTransitions,
		"acquireTime": nil, "renewTime": nil,
	}
	if s.AcquireTime != nil {
		set["acquireTime"] = s.AcquireTime
	}
	if s.RenewTime != nil {
		set["renewTime"] = s.RenewTime
	}
	return set
}

// agrees reports whether a spec still says who holds the lease, since when and
// by which renewal, as it was written. Any other elector changes at least one of
// them. The duration is left out: a person who edits it takes nothing over, and
// the record has the exact one.
func agrees(got, want coordinationv1.LeaseSpec) bool {
	return value(got.HolderIdentity) == value(want.HolderIdentity) &&
		value(got.LeaseTransitions) == value(want.LeaseTransitions) &&
		sameTime(got.AcquireTime, want.AcquireTime) && sameTime(got.RenewTime, want.RenewTime)
}

// foreign is the lease of somebody else, read off its spec: a record without
// incarnation, which has to go stale, by our clock, before it is claimed. That
// holds for a lease without a holder as well: waiting is the safe side, and a
// lease that we released says so in its annotation.
//
// old is what is left of a record of ours. Its epoch counts, because an epoch
// never goes back, and so does its history.
func foreign(spec coordinationv1.LeaseSpec, old coordinator.Record) coordinator.Record {
	r := old
	r.Holder, r.State, r.Stopping = value(spec.HolderIdentity), coordinator.Held, false
	r.Incarnation, r.Term, r.WriteID, r.Lease, r.Revision, r.Platform, r.Renew = "", "", "", "", "", nil, 0
	r.Epoch = max(old.Epoch, int64(value(spec.LeaseTransitions)))
	r.TTL = min(time.Duration(max(0, value(spec.LeaseDurationSeconds)))*time.Second, coordinator.MaxTTL)
	r.AcquiredAt, r.RenewedAt, r.ExpiresAt = time.Time{}, time.Time{}, time.Time{}
	if spec.AcquireTime != nil {
		r.AcquiredAt = spec.AcquireTime.UTC()
	}
	if spec.RenewTime != nil {
		r.RenewedAt = spec.RenewTime.UTC()
		r.ExpiresAt = r.RenewedAt.Add(r.TTL)
	}
	return r
}

// microTime is a time with the precision that a Lease keeps.
func microTime(t time.Time) *metav1.MicroTime {
	if t.IsZero() {
		return nil
	}
	m := metav1.NewMicroTime(t.UTC().Truncate(time.Microsecond))
	return &m
}

func sameTime(a, b *metav1.MicroTime) bool {
	if a == nil || b == nil {
		return a == nil && b == nil
	}
	return a.Time.Truncate(time.Microsecond).Equal(b.Time.Truncate(time.Microsecond))
}

func value[T any](p *T) T {
	if p == nil {
		var zero T
		return zero
	}
	return *p
}
