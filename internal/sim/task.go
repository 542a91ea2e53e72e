package sim

import (
	"context"
	"iter"
	"slices"
	"time"

	"github.com/sf2loki/sf2loki-ha/cas"
)

// task is code of a process that waits for answers: a coroutine. One runs at a
// time, and only while the event that resumed it is handled, so that a history
// has one order.
type task struct {
	w *world
	p *process
	// id and phase are those of a request of the election: its number, and where
	// the election stood at its send.
	id    uint64
	phase string
	// term is the one on whose behalf it runs, for the judges; "" for none.
	term string
	// loose: it is of work that writes the document itself.
	loose bool
	// seals: its writes of the document are seals.
	seals bool
	// timeout is how long it waits for one answer, by the machine's clock. 0 is
	// for ever.
	timeout time.Duration
	// loads are the definite answers to its reads.
	loads []loaded
	// write is its write of a lease, or nil.
	write *leaseWrite

	routine *routine
	wait    int // number of the wait; an answer to another one is void
	parked  bool
	done    bool
	ctx     context.Context
	answer  answer
	dead    bool
}

// routine is a coroutine, which is used for one task after another: a new one
// would have to grow its stack again.
type routine struct {
	job   func()
	next  func() (struct{}, bool)
	stop  func()
	yield func(struct{}) bool
}

func (w *world) newRoutine() *routine {
	if n := len(w.idle); n > 0 {
		r := w.idle[n-1]
		w.idle = w.idle[:n-1]
		return r
	}
	r := &routine{}
	r.next, r.stop = iter.Pull(func(yield func(struct{}) bool) {
		r.yield = yield
		for {
			r.job()
			if !yield(struct{}{}) {
				return
			}
		}
	})
	return r
}

// answer is what a request brought.
type answer struct {
	value   cas.Value
	version cas.Version
	object  object // what was loaded, for the judges
	at      int64  // when the bucket answered, in real time
	err     error
}

// spawn runs f as a task of p until it first waits.
func (p *process) spawn(t *task, f func()) {
	t.w, t.p = p.r.w, p
	t.routine = t.w.newRoutine()
	t.routine.job = func() {
		f()
		t.done = true
	}
	p.tasks = append(p.tasks, t)
	t.resume()
}

func (t *task) resume() {
	outer := t.w.running
	t.w.running = t
	t.routine.next()
	t.w.running = outer
	if !t.done {
		return
	}
	t.w.idle = append(t.w.idle, t.routine)
	if i := slices.Index(t.p.tasks, t); i >= 0 {
		t.p.tasks = slices.Delete(t.p.tasks, i, i+1)
	}
}

// await parks the task until somebody wakes it with the number that is passed to
// arrange.
func (t *task) await(ctx context.Context, arrange func(wait int)) answer {
	t.wait++
	dead := answer{err: &cas.Error{Class: cas.Ambiguous, Op: "request", Object: "of a dead process"}}
	if t.dead {
		return dead
	}
	if ctx.Err() != nil {
		return answer{err: context.Cause(ctx)}
	}
	arrange(t.wait)
	t.ctx, t.parked = ctx, true
	alive := t.routine.yield(struct{}{})
	t.parked = false
	if !alive {
		t.dead = true
		return dead
	}
	return t.answer
}

// wake resumes the task with an answer, once its process runs, if it still waits
// for that one.
func (t *task) wake(wait int, a answer) {
	t.p.deliver(func() {
		if t.parked && t.wait == wait && !t.dead {
			t.answer = a
			t.resume()
		}
	})
}

// interrupt wakes the tasks whose context has ended.
func (p *process) interrupt() {
	for _, t := range p.tasks {
		if t.parked && t.ctx.Err() != nil {
			wait := t.wait
			p.r.w.after(0, func() { t.wake(wait, answer{err: context.Cause(t.ctx)}) })
		}
	}
}

// end unwinds the tasks of a process that is no more: nothing they still do is
// heard of.
func (p *process) end() {
	for len(p.tasks) > 0 {
		t := p.tasks[len(p.tasks)-1]
		p.tasks = p.tasks[:len(p.tasks)-1]
		t.dead = true
		outer := t.w.running
		t.w.running = t
		t.routine.stop()
		t.w.running = outer
	}
}

// pacer is the clock of a process's checkpoint document.
type pacer struct{ p *process }

func (c pacer) Now() time.Time { return time.Unix(0, int64(c.p.r.Now())) }

func (c pacer) Sleep(ctx context.Context, d time.Duration) error {
	t := c.p.r.w.running
	a := t.await(ctx, func(wait int) {
		c.p.r.after(d, func() { t.wake(wait, answer{}) })
	})
	if err := context.Cause(ctx); err != nil {
		return err
	}
	return a.err
}
