package faultproxy

import (
	"strings"
	"time"

	"github.com/sf2loki/sf2loki-ha/internal/boottime"
)

// held is a request that waits for a later one to pass.
type held struct {
	id     int
	writes bool
	passed chan struct{} // closed by the later one
}

// holdBack waits until a later request for the same object has been answered by
// the store, or the time is over. It reports false at Close.
func (p *Proxy) holdBack(x *exchange) bool {
	if x.fault.HoldBack <= 0 {
		return p.ctx.Err() == nil
	}
	h := &held{id: x.ID, writes: x.Op.Writes(), passed: make(chan struct{})}
	p.mu.Lock()
	p.held[x.Key] = append(p.held[x.Key], h)
	p.mu.Unlock()
	timer := time.NewTimer(x.fault.HoldBack)
	defer timer.Stop()
	select {
	case <-h.passed:
		p.change(x, func(e *Exchange) { e.Fault = strings.Replace(e.Fault, heldBack, heldBack+" and overtaken", 1) })
	case <-timer.C:
	case <-p.ctx.Done():
	}
	return p.ctx.Err() == nil
}

// letPass tells those who wait that x has passed.
func (p *Proxy) letPass(x *exchange) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if x.Sent == 0 { // it did not
		return
	}
	waiting := p.held[x.Key][:0]
	for _, h := range p.held[x.Key] {
		if x.ID > h.id && (x.Op.Writes() || !h.writes) {
			close(h.passed)
		} else {
			waiting = append(waiting, h)
		}
	}
	p.held[x.Key] = waiting
}

// mayWrite counts a write of an object, and reports whether the store takes it.
func (p *Proxy) mayWrite(key string) bool {
	limit := p.cfg.WritesPerSecond
	if limit == 0 {
		return true
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	now := boottime.Now()
	recent := p.writes[key]
	for len(recent) > 0 && now.Sub(recent[0]) >= time.Second {
		recent = recent[1:]
	}
	allowed := len(recent) < limit
	if allowed {
		recent = append(recent, now)
	}
	p.writes[key] = recent
	return allowed
}
