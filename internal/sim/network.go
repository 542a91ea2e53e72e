package sim

import (
	"context"
	"errors"
	"time"

	"github.com/sf2loki/sf2loki-ha/cas"
)

// door is an object as one process reaches it. It implements cas.Register.
type door struct {
	p    *process
	name string
}

func (d door) Describe() string { return "sim://" + d.name }

// request is one request on its way.
type request struct {
	object string
	write  bool
	on     condition
	data   []byte
	task   *task
	sent   int64
}

func (d door) Load(ctx context.Context) (cas.Value, error) {
	a := d.send(ctx, request{object: d.name})
	switch cas.ClassOf(a.err) {
	case "":
		d.p.r.w.running.loads = append(d.p.r.w.running.loads, loaded{d.name, a.object, a.at})
	case cas.NotFound:
		d.p.r.w.running.loads = append(d.p.r.w.running.loads, loaded{d.name, object{}, a.at})
	}
	return a.value, a.err
}

func (d door) Create(ctx context.Context, data []byte) (cas.Version, error) {
	a := d.send(ctx, request{object: d.name, write: true, data: data})
	return a.version, a.err
}

func (d door) Replace(ctx context.Context, data []byte, old cas.Version) (cas.Version, error) {
	a := d.send(ctx, request{object: d.name, write: true, on: condition(old), data: data})
	return a.version, a.err
}

// fate is what the network does to one request.
type fate struct {
	arrives bool
	after   time.Duration // it reaches the bucket so long after its send
	answers bool          // the bucket's own answer comes back ...
	back    time.Duration // ... so long after that
	instead cas.Class     // else, if not "", this one comes, after back
	again   time.Duration // it reaches the bucket a second time, and that answer comes back
}

func (w *world) fate(r *replica, q request) fate {
	quick := func() time.Duration { return time.Millisecond + w.upTo(15*time.Millisecond) }
	f := fate{arrives: true, after: quick(), answers: true, back: quick()}
	switch {
	case w.outage.hits(w.now, q) && w.outage.class != "":
		return fate{instead: w.outage.class, back: quick()}
	case w.outage.hits(w.now, q):
		return fate{instead: w.pick(cas.Ambiguous, cas.Ambiguous, ""), back: quick()}
	case w.now < r.cutUntil && r.oneWay: // answers get lost
		f.answers, f.instead = false, ""
		return f
	case w.now < r.cutUntil:
		return fate{instead: w.pick(cas.Ambiguous, cas.Ambiguous, ""), back: quick()}
	case w.rng.Float64() >= w.trouble:
		return f
	}
	switch w.rng.IntN(8) {
	case 0: // lost
		return fate{instead: w.pick(cas.Ambiguous, ""), back: quick()}
	case 1: // refused
		return fate{instead: w.pick(cas.Contended, cas.Denied, cas.Ambiguous, cas.NoBucket), back: quick()}
	case 2: // the answer is lost
		f.answers, f.instead = false, w.pick(cas.Ambiguous, cas.Contended, "")
	case 3: // it arrives long after its caller gave up
		f.after = min(w.upTo(20*time.Second), time.Duration(max(w.end-w.now, 0)))
		f.answers, f.instead = false, ""
	case 4: // slow on the way there
		f.after = w.upTo(2 * time.Second)
	case 5: // slow on the way back
		f.back = w.upTo(2 * time.Second)
	case 6: // an error comes first
		f.answers, f.instead, f.back, f.after = false, cas.Ambiguous, 0, w.upTo(time.Second)
	case 7: // a proxy sends it twice
		if w.replays {
			f.again = w.upTo(time.Second)
		}
	}
	return f
}

func (w *world) pick(of ...cas.Class) cas.Class { return of[w.rng.IntN(len(of))] }

// send carries a request to the bucket and back, and waits.
func (d door) send(ctx context.Context, q request) answer {
	w, t := d.p.r.w, d.p.r.w.running
	q.task, q.sent = t, w.now
	op := w.begins(q)
	a := t.await(ctx, func(wait int) {
		w.judgeSend(q)
		w.tally.Requests++
		f := w.fate(d.p.r, q)
		if f.arrives {
			w.after(f.after, func() {
				a := w.apply(q, op)
				switch {
				case f.again > 0:
					w.after(f.again, func() {
						a := w.apply(q, nil)
						if cas.ClassOf(a.err) == cas.Conflict {
							d.p.replayed = true
							op.notItsOwn()
						}
						w.after(f.back, func() { t.wake(wait, a) })
					})
				case f.answers:
					w.after(f.back, func() { t.wake(wait, a) })
				}
			})
		}
		if !f.answers && f.instead != "" {
			w.after(f.back, func() { t.wake(wait, answer{err: f.instead}) })
		}
		if t.timeout > 0 {
			d.p.r.after(t.timeout, func() { t.wake(wait, answer{err: cas.Ambiguous}) })
		}
	})
	w.ends(op, a)
	if a.err == nil && q.write && t.write != nil {
		t.write.version = a.version
	}
	if a.err != nil {
		var known *cas.Error
		if !errors.As(a.err, &known) {
			a.err = &cas.Error{Class: cas.ClassOf(a.err), Op: "request", Object: d.Describe(), Err: a.err}
		}
	}
	return a
}

// apply is the instant at which a request meets its object.
func (w *world) apply(q request, op *Operation) answer {
	r := w.bucket.open(q.object)
	if !q.write {
		return r.load(w.now)
	}
	if w.limited && w.now-r.took < int64(time.Second) {
		w.tally.Throttled++
		return answer{err: &cas.Error{Class: cas.Contended, Op: "write", Object: q.object, Status: 429}}
	}
	if !r.holds(q.on) {
		return answer{err: &cas.Error{Class: cas.Conflict, Op: "write", Object: q.object}}
	}
	w.accept(r, q)
	if op != nil {
		op.Token = token(r.now.version)
		op.Epoch, op.Term = r.now.rec.Epoch, r.now.rec.Term
		if r.name == documentName {
			op.Epoch, op.Term = r.now.fence.Epoch, r.now.fence.Term
		}
	}
	return answer{version: r.now.version}
}
