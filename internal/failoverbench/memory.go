package failoverbench

import (
	"context"
	"time"

	"github.com/sf2loki/sf2loki-ha/cas"
	"github.com/sf2loki/sf2loki-ha/cas/mem"
)

// Place is a store that pairs share.
type Place interface {
	// Name names it in the report.
	Name() string
	// Open returns a client of its own for one replica. What arrives is counted,
	// and delayed, on the link.
	Open(link *Link) (cas.Bucket, error)
}

// Memory is a store in this process whose requests take time.
type Memory struct{ store *mem.Store }

// NewMemory returns an empty store.
func NewMemory() *Memory { return &Memory{mem.New()} }

// Name implements Place.
func (*Memory) Name() string { return "memory" }

// Open implements Place.
func (m *Memory) Open(link *Link) (cas.Bucket, error) { return slow{m.store.Open(), link}, nil }

// slow is a bucket of a store far away.
type slow struct {
	cas.Bucket
	link *Link
}

func (b slow) Register(name string) cas.Register {
	return slowRegister{b.Bucket.Register(name), b.link}
}

type slowRegister struct {
	reg  cas.Register
	link *Link
}

func (r slowRegister) Describe() string { return r.reg.Describe() }

func (r slowRegister) Load(ctx context.Context) (cas.Value, error) {
	return travel(ctx, r.link, false, func(ctx context.Context) (cas.Value, error) { return r.reg.Load(ctx) })
}

func (r slowRegister) Create(ctx context.Context, data []byte) (cas.Version, error) {
	return travel(ctx, r.link, true, func(ctx context.Context) (cas.Version, error) { return r.reg.Create(ctx, data) })
}

func (r slowRegister) Replace(ctx context.Context, data []byte, old cas.Version) (cas.Version, error) {
	return travel(ctx, r.link, true, func(ctx context.Context) (cas.Version, error) { return r.reg.Replace(ctx, data, old) })
}

// travel takes half of the latency there and half back. A request that was sent
// arrives, whatever becomes of its sender.
func travel[T any](ctx context.Context, l *Link, write bool, apply func(context.Context) (T, error)) (T, error) {
	half := l.latency.of(write) / 2
	<-time.After(half)
	l.arrive(write)
	v, err := apply(context.WithoutCancel(ctx))
	if write && err == nil {
		l.land(time.Now())
	}
	<-time.After(half)
	return v, err
}
