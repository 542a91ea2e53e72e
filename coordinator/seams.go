package coordinator

import (
	"context"
	"errors"
	"sync"

	"github.com/sf2loki/sf2loki-ha/cas"
)

// stores is everything that requests go to.
type stores struct {
	lease    LeaseStore
	fence    FenceReader  // nil: no floor
	requests RequestStore // nil: nobody can ask for anything
	// both runs two functions and returns after both have: side by side, except
	// where one history has to be one history.
	both func(f, g func())
}

// request reports whether a is a request, and how to make it: the answer goes
// into the input that the machine gets.
func (s stores) request(a action) (func(context.Context, *input), bool) {
	switch a.kind {
	case doRead:
		return func(ctx context.Context, in *input) { in.lease, in.err = s.lease.Read(ctx) }, true
	case doAsk:
		return func(ctx context.Context, in *input) { s.inquire(ctx, a.ask, in) }, true
	case doRequest:
		return func(ctx context.Context, in *input) {
			in.err = s.requests.WriteRequest(ctx, a.request, a.cond.version)
		}, true
	case doWrite:
		return func(ctx context.Context, in *input) { in.version, in.err = s.write(ctx, a) }, true
	}
	return nil, false
}

func (s stores) write(ctx context.Context, a action) (cas.Version, error) {
	if a.cond.absent {
		return s.lease.Create(ctx, a.rec)
	}
	return s.lease.Replace(ctx, a.rec, a.cond.version)
}

// inquire reads the fence and the request object at once: a takeover waits for
// the slower of the two, not for both.
func (s stores) inquire(ctx context.Context, what inquiry, in *input) {
	var fence, request error
	readFence := func() {
		if what.fence {
			in.fence, fence = floor(ctx, s.fence)
		}
	}
	readRequest := func() {
		if what.request {
			in.request, request = s.requests.ReadRequest(ctx)
		}
	}
	s.both(readFence, readRequest)
	in.err = errors.Join(fence, request)
}

func floor(ctx context.Context, r FenceReader) (Fence, error) {
	epoch, term, ttl, found, err := r.Floor(ctx)
	return Fence{Epoch: epoch, Term: term, TTL: ttl, Found: found}, err
}

// sideBySide is what both is outside of simulators.
func sideBySide(f, g func()) {
	var wg sync.WaitGroup
	wg.Go(f)
	wg.Go(g)
	wg.Wait()
}

// tenure is the term under way as its work knows it.
type tenure struct {
	term *Term
	end  context.CancelCauseFunc
}

// begin makes the term that an action starts, and the context of its work.
// report takes what the work says about itself.
func (n *tenure) begin(ctx context.Context, t termState, clock Clock, report func(inputKind)) context.Context {
	n.term = newTerm(t.epoch, t.id, t.deadline, t.killAt, clock)
	n.term.failures, n.term.report = t.failures, report
	ctx, n.end = context.WithCancelCause(withTerm(ctx, n.term))
	return ctx
}

// obey does to the term what an action decides.
func (n *tenure) obey(a action) {
	switch a.kind {
	case doExtend:
		n.term.move(a.term.deadline, a.killAt)
		if a.cause != nil {
			n.term.end(a.cause)
		}
	case doEnd:
		n.term.tell()
		if errors.Is(a.cause, ErrLost) {
			n.term.end(a.cause)
		}
		n.term.move(a.term.deadline, a.killAt)
		n.end(a.cause)
	}
}

// over is after lead has returned. It returns what the machine is told.
func (n *tenure) over(err error) input {
	n.term.end(ErrStopping)
	n.end(ErrStopping)
	in := input{kind: inWorkEnded, err: err}
	var fenced interface{ FencedEpoch() int64 }
	if errors.As(err, &fenced) {
		in.floor = fenced.FencedEpoch()
	}
	return in
}

// held is the term, or nil.
func (n *tenure) held() *Term {
	if n == nil {
		return nil
	}
	return n.term
}
