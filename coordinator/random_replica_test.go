package coordinator

import (
	"errors"
	"fmt"
	"time"

	"github.com/sf2loki/sf2loki-ha/cas"
	"github.com/sf2loki/sf2loki-ha/internal/boottime"
)

// simReplica is one replica: a machine, its clock, its guard and its work. A
// restart gives it a new machine and a new process number.
type simReplica struct {
	s       *sim
	name    string
	cfg     Config
	rate    float64 // of its clock
	offset  int64
	wall    int64 // offset of its wall clock
	m       *machine
	process int
	k       knowledge

	frozenUntil int64
	cutUntil    int64 // no request gets through until then
	queue       []input
	wakes       int // number of the wake that counts
	work        *simWork
	stopBy      int64 // a final stop must have finished by then; 0: none asked
}

// simWork is the work of one term under its guard.
type simWork struct {
	term   termState
	killAt Instant
	told   bool
	acting bool
	gone   bool
}

func (r *simReplica) local(real int64) Instant {
	return Instant(r.offset + int64(float64(real)*r.rate))
}

func (r *simReplica) real(at Instant) int64 {
	return int64(float64(int64(at)-r.offset)/r.rate) + 1
}

// boot starts a new process, unless one runs.
func (r *simReplica) boot() {
	if r.m != nil && r.m.phase != finished {
		return
	}
	r.process++
	name := fmt.Sprintf("%s%d", r.name, r.process)
	ids := 0
	id := func() string { ids++; return fmt.Sprintf("%s.%d", name, ids) }
	if r.s.rolling && r.s.rng.IntN(2) == 0 {
		r.cfg.Revision = fmt.Sprint("r", r.s.rng.IntN(3))
	}
	r.m = newMachine(r.cfg, name, r.s.fenced, id, r.s.rng.Float64)
	r.m.hasRequests = r.s.people
	r.k = knowledge{versions: map[cas.Version]bool{}, terms: map[string]bool{}, doubts: map[condition]bool{}, obeyed: map[string]bool{}}
	r.queue, r.stopBy, r.work = nil, 0, nil
	r.s.note(r.name, "process %s starts (ttl %v, rate %.4f)", name, r.cfg.TTL, r.rate)
	r.feed(input{kind: inTick})
}

// die is a SIGKILL: the guard sees the end of file and takes the work along.
func (r *simReplica) die() {
	r.s.note(r.name, "process is killed")
	if r.work != nil {
		r.work.gone, r.work.acting = true, false
	}
	r.m, r.work = nil, nil
	r.wakes++
	r.process++
}

// feed hands an input to the machine, or queues it while it is frozen.
func (r *simReplica) feed(in input) {
	switch {
	case r.m == nil || r.m.phase == finished:
	case r.s.now < r.frozenUntil:
		r.queue = append(r.queue, in)
	default:
		r.step(in)
	}
}

// thaw lets queued inputs happen, in any order, as Go's select would.
func (r *simReplica) thaw() {
	if r.m == nil || r.s.now < r.frozenUntil {
		return
	}
	queue := append(r.queue, input{kind: inTick})
	r.queue = nil
	r.s.rng.Shuffle(len(queue), func(i, j int) { queue[i], queue[j] = queue[j], queue[i] })
	for _, in := range queue {
		r.feed(in)
	}
}

func (r *simReplica) step(in input) {
	in.at, in.wall = r.local(r.s.now), time.Unix(0, r.s.now+r.wall)
	was := r.before(in)
	actions, wake := r.m.step(in)
	r.s.steps++
	if r.s.logging {
		r.trace(was, in, actions)
	}
	r.check(was, in, actions, wake)
	for _, a := range actions {
		r.perform(a)
	}
	r.wakes++
	if r.m.phase == finished {
		r.process++ // the process exits; the platform starts another
		r.s.after(time.Duration(r.s.rng.Int64N(int64(10*time.Second))), r.boot)
		return
	}
	if wake == boottime.Never {
		return
	}
	n := r.wakes
	at := max(r.real(wake), r.s.now+int64(time.Millisecond))
	if r.s.rng.IntN(8) == 0 {
		at += r.s.rng.Int64N(int64(20 * time.Millisecond)) // a busy machine
	}
	r.s.at(at, func() {
		if n == r.wakes {
			r.feed(input{kind: inTick})
		}
	})
}

func (r *simReplica) perform(a action) {
	switch a.kind {
	case doRead, doAsk, doWrite, doRequest:
		r.s.request(r, a)
	case doStart:
		r.startWork(a.term)
	case doExtend:
		r.work.term = a.term
		r.guard(r.work, a.killAt)
	case doEnd:
		r.work.told = true
		r.guard(r.work, a.killAt)
		r.drain(r.work)
	}
}

// guard kills the work at its instant, also while the supervisor is frozen.
func (r *simReplica) guard(w *simWork, killAt Instant) {
	w.killAt = killAt
	at := r.real(killAt)
	if at <= r.s.now+1 {
		r.gone(w, errors.New("killed"), 0)
		return
	}
	r.s.at(at, func() {
		if !w.gone && r.real(w.killAt) <= r.s.now {
			r.gone(w, errors.New("killed"), 0)
		}
	})
}

// gone ends the work; the machine hears of it a little later.
func (r *simReplica) gone(w *simWork, err error, floor int64) {
	if w.gone {
		return
	}
	w.gone, w.acting = true, false
	r.s.note(r.name, "    work of term %s is gone (%v)", w.term.id, err)
	process := r.process
	r.s.after(time.Duration(r.s.rng.Int64N(int64(5*time.Millisecond))), func() {
		if process == r.process {
			r.feed(input{kind: inWorkEnded, err: err, floor: floor})
		}
	})
}

// drain is work that was told to end: at once, slowly, or never by itself.
func (r *simReplica) drain(w *simWork) {
	switch r.s.rng.IntN(4) {
	case 0:
	case 1:
		r.s.after(time.Duration(r.s.rng.Int64N(int64(8*time.Second))), func() { r.gone(w, nil, 0) })
	default:
		r.s.after(time.Duration(r.s.rng.Int64N(int64(50*time.Millisecond))), func() { r.gone(w, nil, 0) })
	}
}

// startWork seals the document, if there is one, and acts from then on.
func (r *simReplica) startWork(t termState) {
	w := &simWork{term: t}
	r.work = w
	r.guard(w, t.killAt)
	if w.gone {
		return
	}
	if !r.s.fenced {
		r.act(w)
	} else {
		f := r.s.fate(r)
		if f.applied {
			r.s.after(f.applyIn, func() {
				floor, ok := r.s.store.seal(t.epoch, t.id, r.cfg.TTL)
				switch {
				case !ok:
					r.s.refusals++
					r.s.note(r.name, "    seal of epoch %d refused: sealed at %d", t.epoch, floor)
					r.s.after(f.backIn, func() { r.gone(w, errors.New("fenced"), floor) })
				case f.answers:
					r.s.after(f.backIn, func() { r.act(w) })
				}
			})
		}
		r.s.after(r.cfg.TTL/2, func() {
			if !w.acting {
				r.gone(w, errors.New("not sealed in time"), 0)
			}
		})
	}
	switch {
	case r.s.calm || r.s.rng.IntN(4) > 0:
	case r.s.rng.IntN(2) == 0:
		r.s.after(time.Duration(r.s.rng.Int64N(int64(20*time.Second))), func() { r.fail(w, nil) })
	case r.s.rng.IntN(2) == 0:
		r.s.after(time.Duration(r.s.rng.Int64N(int64(10*time.Second))), func() { r.fail(w, errors.New("not sealed")) })
	default:
		r.crashes(w, 1)
	}
}

// crashes is work that fails again and again, or settles in between.
func (r *simReplica) crashes(w *simWork, n int) {
	process := r.process
	r.s.after(time.Duration(r.s.rng.Int64N(int64(2*time.Second))), func() {
		switch {
		case w.gone || r.s.calm || process != r.process:
		case r.s.rng.IntN(6) == 0:
			r.feed(input{kind: inWorkSettled, term: w.term.id})
		case n == 3:
			r.fail(w, fmt.Errorf("simulated: %w", ErrCrashLoop))
		default:
			r.feed(input{kind: inWorkFailed, term: w.term.id})
			r.crashes(w, n+1)
		}
	})
}

func (r *simReplica) fail(w *simWork, err error) {
	if !r.s.calm {
		r.gone(w, err, 0)
	}
}

// trace writes what happened in one step.
func (r *simReplica) trace(was situation, in input, actions []action) {
	kind := [...]string{"", "answer", "work ended", "stop", "work failed", "work settled"}[in.kind]
	if in.kind == inResult && in.err != nil {
		kind += " " + string(cas.ClassOf(in.err))
	}
	if in.kind == inStop {
		kind += fmt.Sprintf(" final=%v", in.final)
	}
	if kind != "" && kind != "answer" && (in.kind != inResult || was.answer) {
		r.s.note(r.name, "%s", kind)
	}
	for _, a := range actions {
		switch {
		case a.kind == doWrite:
			r.s.note(r.name, "  write %s epoch %d term %s id %s on %q", a.rec.State, a.rec.Epoch, a.rec.Term, a.rec.WriteID, a.cond.version)
		case a.kind == doAsk:
			r.s.note(r.name, "  reads %s", a.ask.name())
		case a.kind == doRequest:
			r.s.note(r.name, "  asks for %+v", *a.request.Handover)
		case a.kind == doEmit && a.event.Kind == Observed:
			r.s.note(r.name, "  sees %q %s epoch %d absent=%v", a.event.Lease.Version, a.event.Lease.Record.State, a.event.Epoch, a.event.Absent)
		case a.kind == doEmit && a.event.Kind != Requested:
			r.s.note(r.name, "  %s epoch %d %v", a.event.Kind, a.event.Epoch, a.event.Err)
		case a.kind == doExtend || a.kind == doStart:
			r.s.note(r.name, "  deadline in %v, kill in %v", a.term.deadline.Sub(in.at), max(a.killAt, a.term.killAt).Sub(in.at))
		}
	}
}
