//go:build clientgo

package failoverbench

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/klog/v2"

	"github.com/sf2loki/sf2loki-ha/cas"
)

// ClientGo is client-go's elector on the same store: its lock is an object that is
// written under the version that was last read or written, as the API server does it.
func ClientGo(place Place, duration, deadline, retry time.Duration) Contestant {
	c := Contestant{Place: place, About: About{
		Name: "client-go", Store: place.Name(), TTL: duration,
		Settings: fmt.Sprintf("lease %v, deadline %v, retry %v", duration, deadline, retry),
	}}
	c.start = func(ctx context.Context, site Site, id string, link *Link, tell func(Milestone)) (<-chan struct{}, error) {
		bucket, err := site.Place.Open(link)
		if err != nil {
			return nil, err
		}
		bucket = linked{bucket, link}
		elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
			Lock:          &lock{id: id, reg: bucket.Register(site.Lease)},
			LeaseDuration: duration, RenewDeadline: deadline, RetryPeriod: retry,
			// A crash releases nothing; that goes without saying after a cut, too.
			ReleaseOnCancel: false,
			Callbacks: leaderelection.LeaderCallbacks{
				OnStartedLeading: func(context.Context) {
					tell(Acquired)
					tell(Started)
				},
				OnStoppedLeading: func() {},
			},
		})
		if err != nil {
			return nil, errors.Join(err, bucket.Close())
		}
		done := make(chan struct{})
		go func() {
			defer close(done)
			defer bucket.Close()
			elector.Run(klog.NewContext(ctx, klog.Logger{})) // it has no log but klog's
		}()
		return done, nil
	}
	return c
}

// lock keeps client-go's record in a register.
type lock struct {
	id  string
	reg cas.Register
	// version is of the last read or write: what client-go's own locks keep as the
	// object with its resourceVersion. The elector makes one call at a time.
	version cas.Version
}

var _ resourcelock.Interface = (*lock)(nil)

// Get implements resourcelock.Interface.
func (l *lock) Get(ctx context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	v, err := l.reg.Load(ctx)
	if errors.Is(err, cas.NotFound) {
		return nil, nil, apierrors.NewNotFound(schema.GroupResource{Resource: "leases"}, l.Describe())
	}
	if err != nil {
		return nil, nil, err
	}
	var rec resourcelock.LeaderElectionRecord
	if err := json.Unmarshal(v.Data, &rec); err != nil {
		return nil, nil, fmt.Errorf("record of %s: %w", l.Describe(), err)
	}
	l.version = v.Version
	return &rec, v.Data, nil
}

// Create implements resourcelock.Interface.
func (l *lock) Create(ctx context.Context, rec resourcelock.LeaderElectionRecord) error {
	return l.write(rec, func(data []byte) (cas.Version, error) { return l.reg.Create(ctx, data) })
}

// Update implements resourcelock.Interface.
func (l *lock) Update(ctx context.Context, rec resourcelock.LeaderElectionRecord) error {
	return l.write(rec, func(data []byte) (cas.Version, error) { return l.reg.Replace(ctx, data, l.version) })
}

func (l *lock) write(rec resourcelock.LeaderElectionRecord, send func([]byte) (cas.Version, error)) error {
	data, err := json.Marshal(rec)
	if err != nil {
		return fmt.Errorf("record of %s: %w", l.Describe(), err)
	}
	v, err := send(data)
	if err == nil {
		l.version = v
	}
	return err
}

// RecordEvent implements resourcelock.Interface.
func (*lock) RecordEvent(string) {}

// Identity implements resourcelock.Interface.
func (l *lock) Identity() string { return l.id }

// Describe implements resourcelock.Interface.
func (l *lock) Describe() string { return l.reg.Describe() }
