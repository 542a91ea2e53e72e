package coordinator

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/sf2loki/sf2loki-ha/cas"
)

// bench drives a machine by hand: no goroutines, no store.
type bench struct {
	t    *testing.T
	m    *machine
	now  Instant
	last []action
	wake Instant
}

func newBench(t *testing.T, cfg Config, hasFence bool) *bench {
	t.Helper()
	cfg.Identity, cfg.Lease = "me", "mem://lease"
	if err := cfg.Validate(); err != nil {
		t.Fatal(err)
	}
	n := 0
	id := func() string { n++; return fmt.Sprint("id-", n) }
	m := newMachine(cfg.WithDefaults(), "own", hasFence, id, func() float64 { return 0.5 })
	m.rehearseFrom = Never // the tests that are about it allow it
	return &bench{t: t, now: Instant(time.Hour), m: m}
}

func (b *bench) step(in input) []action {
	in.at, in.wall = b.now, time.Unix(0, int64(b.now))
	b.last, b.wake = b.m.step(in)
	return b.last
}

func (b *bench) tick(d time.Duration) []action {
	b.now = b.now.Add(d)
	return b.step(input{kind: inTick})
}

// request returns the request among the last actions.
func (b *bench) request() (action, bool) {
	for _, a := range b.last {
		if slices.Contains([]actionKind{doRead, doWrite, doAsk, doRequest}, a.kind) {
			return a, true
		}
	}
	return action{}, false
}

// answer answers the request in flight.
func (b *bench) answer(in input) []action {
	b.t.Helper()
	if b.m.op == nil {
		b.t.Fatal("no request is in flight")
	}
	in.kind, in.op = inResult, b.m.op.id
	return b.step(in)
}

func (b *bench) reads(l Lease) []action { b.t.Helper(); return b.answer(input{lease: l}) }

func (b *bench) fails(c cas.Class) []action {
	b.t.Helper()
	return b.answer(input{err: &cas.Error{Class: c, Op: "test"}})
}

// leads brings the machine to leadership at epoch 1.
func (b *bench) leads() {
	b.t.Helper()
	b.tick(0)
	b.fails(cas.NotFound)
	b.until(doWrite, 20*time.Second)
	b.answer(input{version: "v1"})
	if b.m.phase != leading {
		b.t.Fatalf("phase %d after a confirmed acquisition", b.m.phase)
	}
}

// until ticks, answering reads as before, until a request of that kind is sent.
func (b *bench) until(kind actionKind, limit time.Duration) action {
	b.t.Helper()
	for end := b.now.Add(limit); b.now < end; b.tick(50 * time.Millisecond) {
		if a, ok := b.request(); ok && a.kind == kind {
			return a
		}
		if b.m.op != nil && b.m.op.kind == opRead {
			if b.m.phase != standby {
				b.reads(Lease{Version: b.m.ver, Record: b.m.mine})
			} else if b.m.seen.known && !b.m.seen.absent {
				b.reads(b.m.seen.lease)
			} else {
				b.fails(cas.NotFound)
			}
			if a, ok := b.request(); ok && a.kind == kind {
				return a
			}
		}
		if b.m.op != nil && b.m.op.kind == opAsk && kind != doAsk {
			b.answer(input{fence: Fence{Found: true}})
			if a, ok := b.request(); ok && a.kind == kind {
				return a
			}
		}
	}
	b.t.Fatalf("no request of kind %d within %v", kind, limit)
	return action{}
}

func (b *bench) has(kind EventKind) bool {
	for _, a := range b.last {
		if a.kind == doEmit && a.event.Kind == kind {
			return true
		}
	}
	return false
}
