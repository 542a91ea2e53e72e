package failoverbench

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/sf2loki/sf2loki-ha/cas"
)

// Latency is the round trip of a request.
type Latency struct {
	Read, Write time.Duration
}

func (l Latency) of(write bool) time.Duration {
	if write {
		return l.Write
	}
	return l.Read
}

// Link is one replica's way to the store: it keeps when requests arrived there and
// when the last write landed, and can be cut, which is how a replica crashes.
type Link struct {
	latency Latency
	cut     chan struct{}
	onWay   sync.WaitGroup

	mu            sync.Mutex
	reads, writes []time.Time
	landed        time.Time
}

func newLink(latency Latency) *Link { return &Link{latency: latency, cut: make(chan struct{})} }

// Cut ends everything. Call it once.
func (l *Link) Cut() { close(l.cut) }

func (l *Link) isCut() bool {
	select {
	case <-l.cut:
		return true
	default:
		return false
	}
}

// arrive takes note of a request at the store.
func (l *Link) arrive(write bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if now := time.Now(); write {
		l.writes = append(l.writes, now)
	} else {
		l.reads = append(l.reads, now)
	}
}

// land takes note of a write that was accepted.
func (l *Link) land(at time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if at.After(l.landed) {
		l.landed = at
	}
}

// Landed is when the last write landed.
func (l *Link) Landed() time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.landed
}

// traffic is what arrived after from, until now. Renewals are regular.
func (l *Link) traffic(from time.Time) traffic {
	l.mu.Lock()
	defer l.mu.Unlock()
	return traffic{reads: counted(l.reads, from, time.Now()), writes: regular(l.writes, from)}
}

var errCut = errors.New("the replica has crashed")

// over sends a request over the link. What was sent goes its way when the link is
// cut or its sender gives up; only the answer is not heard.
func over[T any](ctx context.Context, l *Link, op string, send func(context.Context) (T, error)) (T, error) {
	var none T
	lost := func(err error) (T, error) {
		return none, &cas.Error{Class: cas.Ambiguous, Op: op, Err: err}
	}
	if l.isCut() {
		<-ctx.Done()
		return lost(errCut)
	}
	type answer struct {
		v   T
		err error
	}
	answered := make(chan answer, 1)
	l.onWay.Go(func() {
		v, err := send(ctx)
		answered <- answer{v, err}
	})
	select {
	case a := <-answered:
		if l.isCut() {
			<-ctx.Done()
			return lost(errCut)
		}
		return a.v, a.err
	case <-ctx.Done():
		return lost(ctx.Err())
	}
}

// linked is a bucket at the end of a link.
type linked struct {
	cas.Bucket
	link *Link
}

// Register implements cas.Bucket.
func (b linked) Register(name string) cas.Register {
	return linkedRegister{b.Bucket.Register(name), b.link}
}

type linkedRegister struct {
	cas.Register
	link *Link
}

func (r linkedRegister) Load(ctx context.Context) (cas.Value, error) {
	return over(ctx, r.link, "load", r.Register.Load)
}

func (r linkedRegister) Create(ctx context.Context, data []byte) (cas.Version, error) {
	return over(ctx, r.link, "create", func(ctx context.Context) (cas.Version, error) { return r.Register.Create(ctx, data) })
}

func (r linkedRegister) Replace(ctx context.Context, data []byte, old cas.Version) (cas.Version, error) {
	return over(ctx, r.link, "replace", func(ctx context.Context) (cas.Version, error) { return r.Register.Replace(ctx, data, old) })
}
