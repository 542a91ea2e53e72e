package cas

import (
	"context"
	"fmt"
	"sync"
	"time"
)

// probeObject is one object of the probe, as several clients see it.
type probeObject struct {
	p    *prober
	name string
	regs []Register

	mu   sync.Mutex
	next time.Time // before it, no write is sent
}

// object returns the probe's object of that name. Objects begin with different
// clients, so that requests that run side by side use different connections.
func (p *prober) object(name string, first int) *probeObject {
	o := &probeObject{p: p, name: p.run + "-" + name}
	for i := range p.clients {
		o.regs = append(o.regs, p.clients[(first+i)%len(p.clients)].Register(o.name))
	}
	return o
}

// document has fresh bytes of constant length: two writes differ in nothing
// else, which is what a renewal looks like.
func (o *probeObject) document() []byte {
	return fmt.Appendf(nil, `{"probe":%d,"object":%q,"note":"written by the store probe of sf2loki-ha; may be deleted","nonce":%q}`,
		ProbeVersion, o.name, probeToken(16))
}

// pace waits until the object may be written again.
func (o *probeObject) pace(ctx context.Context) error {
	o.mu.Lock()
	wait := time.Until(o.next)
	o.mu.Unlock()
	if wait <= 0 {
		return nil
	}
	t := time.NewTimer(wait)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (o *probeObject) wrote() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.next = time.Now().Add(o.p.cfg.WriteInterval)
}

// write sends one write through a client. Whatever comes back, the object may
// exist from now on.
func (o *probeObject) write(ctx context.Context, client int, send func(context.Context, Register) (Version, error)) (Version, error) {
	o.p.mu.Lock()
	o.p.written[o.name] = true
	o.p.requests++
	o.p.mu.Unlock()
	defer o.wrote()
	ctx, cancel := context.WithTimeout(ctx, o.p.cfg.CallTimeout)
	defer cancel()
	r := o.regs[client%len(o.regs)]
	v, err := send(ctx, r)
	if err == nil && v == "" {
		err = &Error{Class: Ambiguous, Op: "probe", Object: r.Describe(), Err: errNoProbeVersion}
	}
	return v, err
}

func (o *probeObject) create(ctx context.Context, client int, data []byte) (Version, error) {
	if err := o.pace(ctx); err != nil {
		return "", err
	}
	return o.write(ctx, client, func(ctx context.Context, r Register) (Version, error) { return r.Create(ctx, data) })
}

func (o *probeObject) replace(ctx context.Context, client int, data []byte, old Version) (Version, error) {
	if err := o.pace(ctx); err != nil {
		return "", err
	}
	return o.write(ctx, client, func(ctx context.Context, r Register) (Version, error) { return r.Replace(ctx, data, old) })
}

func (o *probeObject) load(ctx context.Context, client int) (Value, error) {
	o.p.count()
	ctx, cancel := context.WithTimeout(ctx, o.p.cfg.CallTimeout)
	defer cancel()
	return o.regs[client%len(o.regs)].Load(ctx)
}
