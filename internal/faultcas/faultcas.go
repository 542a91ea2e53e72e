package faultcas

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/sf2loki/sf2loki-ha/cas"
)

// Op names a request: load, create or replace.
type Op string

// The requests of a register.
const (
	Load    Op = "load"
	Create  Op = "create"
	Replace Op = "replace"
)

// Fault is what happens to one request. The zero Fault is no fault.
type Fault struct {
	// Delay passes before the request arrives, Late after it was applied and
	// before its answer.
	Delay, Late time.Duration
	// Refuse answers with this class and applies nothing.
	Refuse cas.Class
	// Lose applies the request and answers with this class.
	Lose cas.Class
	// Hang applies nothing and does not answer before Free, also when the
	// context ends.
	Hang bool
	// LandLater answers Ambiguous at once and applies the write after this time,
	// as a request does that waited in a network queue.
	LandLater time.Duration
	// NoVersion applies the write and answers success without a version.
	NoVersion bool
}

// Register is a cas.Register with faults. Create it with Wrap.
type Register struct {
	reg  cas.Register
	plan func(op Op, n int) Fault

	freed chan struct{}

	mu    sync.Mutex
	calls map[Op]int
	total int
}

// Wrap puts the plan in front of reg. n counts all requests from 1. A nil plan
// is no fault at all.
func Wrap(reg cas.Register, plan func(op Op, n int) Fault) *Register {
	return &Register{reg: reg, plan: plan, calls: map[Op]int{}, freed: make(chan struct{})}
}

// Free lets every request that hangs fail, at the end of a test.
func (r *Register) Free() { close(r.freed) }

// Calls returns how many requests of that kind were made.
func (r *Register) Calls(op Op) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.calls[op]
}

// Plan replaces the plan; the count goes on.
func (r *Register) Plan(plan func(op Op, n int) Fault) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.plan = plan
}

// Describe implements cas.Register.
func (r *Register) Describe() string { return r.reg.Describe() }

// Load implements cas.Register.
func (r *Register) Load(ctx context.Context) (cas.Value, error) {
	return through(ctx, r, Load, r.reg.Load)
}

// Create implements cas.Register.
func (r *Register) Create(ctx context.Context, data []byte) (cas.Version, error) {
	return through(ctx, r, Create, func(ctx context.Context) (cas.Version, error) { return r.reg.Create(ctx, data) })
}

// Replace implements cas.Register.
func (r *Register) Replace(ctx context.Context, data []byte, old cas.Version) (cas.Version, error) {
	return through(ctx, r, Replace, func(ctx context.Context) (cas.Version, error) { return r.reg.Replace(ctx, data, old) })
}

// through runs one request through its fault.
func through[T any](ctx context.Context, r *Register, op Op, apply func(context.Context) (T, error)) (T, error) {
	var none T
	f := r.next(op)
	// A request that is on its way arrives whatever its sender does.
	applied := context.WithoutCancel(ctx)
	fail := func(c cas.Class, detail string) (T, error) {
		return none, &cas.Error{Class: c, Op: string(op), Object: r.Describe(), Err: fmt.Errorf("injected: %s", detail)}
	}
	switch {
	case f.Hang:
		<-r.freed
		return fail(cas.Ambiguous, "hung")
	case f.LandLater > 0:
		time.AfterFunc(f.LandLater, func() { _, _ = apply(applied) })
		return fail(cas.Ambiguous, "lands later")
	case f.Refuse != "":
		if err := sleep(ctx, f.Delay); err != nil {
			return fail(cas.Ambiguous, err.Error())
		}
		return fail(f.Refuse, "refused")
	}
	if err := sleep(ctx, f.Delay); err != nil {
		// The sender gave up while the request was on its way.
		_, _ = apply(applied)
		return fail(cas.Ambiguous, err.Error())
	}
	v, err := apply(applied)
	if e := sleep(ctx, f.Late); e != nil {
		return fail(cas.Ambiguous, e.Error())
	}
	switch {
	case f.Lose != "":
		return fail(f.Lose, "answer lost")
	case f.NoVersion && err == nil:
		return none, nil
	}
	return v, err
}

func (r *Register) next(op Op) Fault {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.calls[op]++
	r.total++
	if r.plan == nil {
		return Fault{}
	}
	return r.plan(op, r.total)
}

func sleep(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return ctx.Err()
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
