package sim

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/sf2loki/sf2loki-ha/cas"
	"github.com/sf2loki/sf2loki-ha/checkpoint"
	"github.com/sf2loki/sf2loki-ha/coordinator"
)

// process is one supervisor process: an election, and the work of its terms.
type process struct {
	r    *replica
	name string
	m    *coordinator.Machine
	doc  *checkpoint.Store
	work *work // of the term under way, or nil
	dead bool

	frozenUntil int64
	thawed      int64
	queue       []func()
	tasks       []*task
	wakes       int   // number of the wake that counts
	stopBy      int64 // a requested stop has ended by then; 0: none was requested
	call        *task // the request that its election waits for
	answered    *task // whose answer is being taken
	answer      coordinator.Input
	k           knowledge
	replayed    bool // it was told of a conflict that only a replay met
}

func newProcess(r *replica, name string) *process {
	p := &process{r: r, name: name, k: newKnowledge()}
	w, ids := r.w, 0
	id := func() string { ids++; return fmt.Sprintf("%s.%d", name, ids) }
	opts := []coordinator.Option{
		coordinator.WithClock(r), coordinator.WithObserver(p.observe), coordinator.WithRandom(id, w.rng.Float64),
	}
	if w.fenced {
		p.doc = checkpoint.Open(door{p, documentName}, checkpoint.WithLease(r.cfg.Lease, r.cfg.TTL),
			checkpoint.WithMinWriteInterval(r.cfg.MinWriteInterval), checkpoint.WithClock(pacer{p}),
			checkpoint.WithRandom(func() string { return "d" + id() }, w.rng.Float64))
		opts = append(opts, coordinator.WithFence(p.doc))
	}
	if w.people {
		opts = append(opts, coordinator.WithRequests(coordinator.RequestsFrom(door{p, r.g.requests()})))
	}
	m, err := coordinator.NewMachine(newLeaseStore(door{p, r.g.lease}), r.cfg, p.reported, opts...)
	if err != nil {
		panic(err) // a profile that is not valid
	}
	p.m = m
	return p
}

// deliver lets something reach the process: now, or once it is no longer frozen.
func (p *process) deliver(f func()) {
	switch {
	case p.dead:
	case p.r.w.now < p.frozenUntil:
		p.queue = append(p.queue, f)
	default:
		f()
	}
}

// thaw lets what waited happen, in any order, as Go's select would.
func (p *process) thaw() {
	if p.dead || p.r.w.now < p.frozenUntil {
		return
	}
	w := p.r.w
	p.thawed = w.now
	queue := append(p.queue, func() { p.step(coordinator.Tick()) })
	p.queue = nil
	w.rng.Shuffle(len(queue), func(i, j int) { queue[i], queue[j] = queue[j], queue[i] })
	for i, f := range queue {
		// What one leads to comes before the next.
		w.after(time.Duration(i)*10*time.Microsecond, func() { p.deliver(f) })
	}
}

// thawWork lets work that writes the document itself go on.
func (p *process) thawWork() {
	queue := p.queue
	p.queue = nil
	for _, f := range queue {
		p.deliver(f)
	}
}

// feed hands an input to the election.
func (p *process) feed(in coordinator.Input) { p.deliver(func() { p.step(in) }) }

// reported takes what the work says about itself.
func (p *process) reported(in coordinator.Input) {
	work := p.work
	p.r.w.after(0, func() {
		p.deliver(func() {
			if p.work == work {
				p.k.note(work)
			}
			p.step(in)
		})
	})
}

func (p *process) observe(e coordinator.Event) {
	w := p.r.w
	if e.Kind == coordinator.Lost {
		p.judgeLoss(e)
	}
	if e.Kind == coordinator.Overran {
		p.judgeOverran(e)
	}
	if errors.Is(e.Err, cas.Corrupt) {
		w.complaints++
	}
	if !w.logging || e.Kind == coordinator.Requested || e.Kind == coordinator.Renewed {
		return
	}
	what := ""
	if e.Kind == coordinator.Observed {
		what = fmt.Sprintf(" %s %s by %s, absent %v, corrupt %v", e.Lease.Version, e.Lease.Record.State, e.Lease.Record.Incarnation, e.Absent, e.Lease.Corrupt != nil)
	}
	if e.Err != nil {
		what += fmt.Sprintf(" (%.100v)", e.Err)
	}
	w.note(p.r.name, "%s %s epoch %d%s", e.Kind, e.Op, e.Epoch, what)
}

// step lets the election take one input, judges it, and does what it decided.
func (p *process) step(in coordinator.Input) {
	if p.dead || p.m.State().Phase == "finished" {
		return
	}
	w := p.r.w
	w.steps++
	before := p.before()
	s := p.m.Step(in, p.r.wallTime())
	p.after(before, s)
	p.judgeTold(before)
	// 1. The term: what the step changed, before anything else happens.
	switch {
	case s.Start != nil:
		p.startWork(s.Start)
	case p.work != nil:
		p.work.follow()
	}
	p.interrupt()
	// 2. The request.
	if s.Call != nil {
		p.make(s.Call)
	}
	// 3. The next tick.
	p.wakes++
	if s.Finished {
		p.exit()
		return
	}
	if s.Wake == coordinator.Never {
		return
	}
	n, at := p.wakes, max(p.r.real(s.Wake), w.now+int64(time.Millisecond))
	if w.oneIn(8) {
		at += int64(w.upTo(20 * time.Millisecond)) // a busy machine
	}
	w.at(at, func() {
		if n == p.wakes {
			p.feed(coordinator.Tick())
		}
	})
}

// make makes a request of the election. Its call keeps its deadline, or hangs
// beyond it, so that the election has to give it up by itself.
func (p *process) make(c *coordinator.Call) {
	t := &task{id: c.ID, phase: p.m.State().Phase}
	if !p.r.w.oneIn(4) {
		t.timeout = c.Timeout
	}
	p.call = t
	p.k.ops[c.Op]++
	if c.Op == "replace" {
		p.r.spring("renewal")
	}
	p.spawn(t, func() {
		in := c.Do(context.Background())
		if t.dead {
			return
		}
		p.r.w.after(0, func() {
			p.deliver(func() {
				p.answered, p.answer = t, in
				p.step(in)
				p.answered = nil
			})
		})
		if w := p.r.w; w.trouble > 0 && w.oneIn(16) {
			// Whatever it is that delivers answers, it does so twice.
			w.after(w.upTo(time.Second), func() { p.deliver(func() { p.step(in) }) })
		}
	})
}

// exit is the end of a process that was asked to stop. The platform starts
// another.
func (p *process) exit() {
	w, r := p.r.w, p.r
	w.require(p.work == nil || p.work.gone, "the process ends while its work runs")
	w.require(p.stopBy != 0, "the process ends, and nobody asked for that")
	w.note(r.name, "process ends")
	p.dead = true
	p.end()
	r.p = nil
	if r.next != nil {
		w.after(0, r.next)
	}
	w.after(w.upTo(10*time.Second), r.boot)
}

// stop is a SIGTERM. However bad the store is, the process ends in time: the
// drain, the attempts to release, and what a freeze adds.
func (p *process) stop() {
	w := p.r.w
	if p.stopBy != 0 {
		return
	}
	limit := p.r.cfg.Budget().Drain + 2*p.r.cfg.TTL + 6*p.r.cfg.CallTimeout + time.Second
	p.stopBy = max(w.now, p.frozenUntil) + int64(limit)
	w.note(p.r.name, "asked to end")
	p.feed(coordinator.Stop("shutdown", true))
	w.at(p.stopBy, func() {
		if !p.dead && w.now >= p.frozenUntil+int64(limit) {
			w.fail("a requested stop was lost: %s after %v", p.m.State().Phase, limit)
		}
	})
}
