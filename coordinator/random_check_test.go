package coordinator

import (
	"errors"
	"strings"
	"time"

	"github.com/sf2loki/sf2loki-ha/cas"
	"github.com/sf2loki/sf2loki-ha/internal/boottime"
)

// knowledge is what one process has been told, kept apart from the machine so
// that the rules can be judged without it.
type knowledge struct {
	versions map[cas.Version]bool // may be written on
	terms    map[string]bool      // whose records were read
	doubts   map[condition]bool   // conditions with an attempt without a definite answer
	epoch    int64
	ttl      time.Duration
	heldBy   string // incarnation of the held record of heldAt
	heldAt   int64

	known     bool
	object    object
	since     Instant
	sinceReal int64
	fence     *Fence // read since the last claim
	request   *RequestState
	asked     Instant         // receipt of request
	holdOf    cas.Version     // the document that was read last
	holdEnd   Instant         // by the earliest reading of it
	obeyed    map[string]bool // ids of step-downs and handovers

	lastWrite Instant
	writes    int
	requests  []Instant
	ticks     int // in a row that did nothing and want another at once
}

// situation is what was true before a step.
type situation struct {
	phase  phase
	op     *operation
	answer bool // the input is the answer of op
}

// before learns what the input tells, and remembers where the machine stood.
func (r *simReplica) before(in input) situation {
	was := situation{phase: r.m.phase, op: r.m.op}
	was.answer = in.kind == inResult && was.op != nil && was.op.id == in.op
	if !was.answer {
		return was
	}
	k := &r.k
	class := cas.ClassOf(in.err)
	switch was.op.kind {
	case opRead:
		switch class {
		case "":
			k.versions[in.lease.Version] = true
			k.learn(object{exists: true, version: in.lease.Version, rec: in.lease.Record, corrupt: in.lease.Corrupt}, in.at, r.s.now)
		case cas.NotFound:
			k.learn(object{}, in.at, r.s.now)
		}
	case opAsk:
		if in.err == nil && was.op.ask.fence {
			f := in.fence
			k.fence = &f
			k.ttl = max(k.ttl, f.TTL)
		}
		if in.err == nil && was.op.ask.request {
			q := in.request
			end := Instant(0)
			if h := q.Request.Hold; h != nil {
				end = in.at.Add(h.For - q.Age)
				if k.holdOf == q.Version {
					end = min(end, k.holdEnd) // the earliest that one document gave
				}
			}
			k.request, k.asked, k.holdOf, k.holdEnd = &q, in.at, q.Version, end
		}
	case opWrite:
		switch {
		case in.err == nil:
			k.versions[in.version] = true
			k.learn(object{exists: true, version: in.version, rec: was.op.rec}, in.at, r.s.now)
		case !class.Definite():
			k.doubts[was.op.cond] = true
		}
	}
	return was
}

func (k *knowledge) learn(o object, at Instant, real int64) {
	if !k.known || o.exists != k.object.exists || o.version != k.object.version {
		k.known, k.object, k.since, k.sinceReal = true, o, at, real
	}
	if !o.exists || o.corrupt != nil {
		return
	}
	k.terms[o.rec.Term] = true
	k.epoch, k.ttl = max(k.epoch, o.rec.Epoch), max(k.ttl, o.rec.TTL)
	if o.rec.State != Released && o.rec.Epoch >= k.heldAt {
		k.heldAt, k.heldBy = o.rec.Epoch, o.rec.Incarnation
	}
}

// check judges one step by the rules.
func (r *simReplica) check(was situation, in input, actions []action, wake Instant) {
	s, k := r.s, &r.k
	if !was.answer && was.op != nil && was.op.kind == opWrite && r.m.op != was.op {
		k.doubts[was.op.cond] = true // given up
	}
	requests, lost := 0, false
	for _, a := range actions {
		switch a.kind {
		case doRead, doAsk, doWrite, doRequest:
			requests++
			k.requests = append(k.requests, in.at)
			if a.kind == doWrite {
				r.checkWrite(a, in.at)
			}
		case doStart:
			s.require(r.work == nil || r.work.gone, "work starts while the former term's work runs")
			r.checkTerm(a.term, a.term.killAt)
		case doExtend:
			s.require(r.work != nil, "extends a term that was never started")
			r.checkTerm(a.term, a.killAt)
			if a.cause == nil {
				s.require(in.at < r.work.killAt, "I4: a term is prolonged after its work was killed")
			}
		case doEnd:
			s.require(r.work != nil, "ends a term that was never started")
			lost = lost || errors.Is(a.cause, ErrLost)
			r.checkObeyed(a.cause.Error())
			s.require(!errors.Is(a.cause, ErrLost) || a.killAt <= in.at, "rule 6: lost work is given grace")
		case doEmit:
			if a.event.Kind == Lost {
				s.require(s.store.terms[a.event.Term].touched, "I7: term %s gives up although nobody else wrote the lease", a.event.Term)
			}
		}
	}
	s.require(requests <= 1, "two requests in one step")
	if was.answer && was.op.kind == opWrite && was.phase == leading && cas.ClassOf(in.err) == cas.Conflict && !k.doubts[was.op.cond] {
		s.require(lost && requests == 0, "rule 6: a clean conflict is not a loss at once")
	}
	if r.m.phase == finished {
		s.require(r.work == nil || r.work.gone, "finished while work runs")
	}
	// No busy loop, no flood.
	k.ticks++
	if wake > in.at || in.kind != inTick || len(actions) > 0 {
		k.ticks = 0
	}
	s.require(k.ticks < 3, "busy loop: phase %d wants to wake %v ago", r.m.phase, in.at.Sub(wake))
	s.require(wake != boottime.Never || r.m.phase == finished || r.m.phase == draining, "phase %d sleeps for ever", r.m.phase)
	if n := len(k.requests); requests > 0 && n > 45 {
		k.requests = k.requests[n-45:]
		s.require(in.at.Sub(k.requests[0]) > 5*time.Second, "45 requests within %v", in.at.Sub(k.requests[0]))
	}
	if n := len(k.requests); requests > 0 && n > 14 {
		s.require(in.at.Sub(k.requests[n-15]) > time.Second, "15 requests within %v", in.at.Sub(k.requests[n-15]))
	}
}

// checkTerm is I4: no instant beyond what a write that landed has bought, by
// the figures of design.md section 7.
func (r *simReplica) checkTerm(t termState, killAt Instant) {
	bought := r.s.store.terms[t.id].counts.Add(time.Duration(float64(r.cfg.TTL) * (1 - r.cfg.Drift)))
	r.s.require(t.deadline <= bought, "I4: deadline %v beyond what the writes that landed have bought", t.deadline.Sub(bought))
	r.s.require(killAt <= t.deadline.Add(-r.cfg.KillMargin), "the kill instant leaves no margin")
}

// checkWrite judges a write at its send.
func (r *simReplica) checkWrite(a action, now Instant) {
	s, k := r.s, &r.k
	s.require(a.cond.absent || k.versions[a.cond.version], "a write on version %q that was never read", a.cond.version)
	if k.writes++; k.writes > 1 && r.cfg.MinWriteInterval > 0 {
		s.require(now.Sub(k.lastWrite) >= r.cfg.MinWriteInterval, "two writes within %v", now.Sub(k.lastWrite))
	}
	k.lastWrite = now
	l := s.store.terms[a.rec.Term]
	if l == nil {
		l = &lineage{epoch: a.rec.Epoch, sentAt: map[string]Instant{}}
		s.store.terms[a.rec.Term] = l
	}
	l.sentAt[a.rec.WriteID] = now
	switch {
	case a.rec.State == Released:
		s.require(r.work == nil || r.work.gone || r.work.term.id != a.rec.Term, "released while its work runs")
	case r.m.phase == standby:
		l.firstSeen = k.sinceReal
		r.checkClaim(a, now)
		k.fence, k.request = nil, nil
	}
}

// checkObeyed judges the end of a term by what was last read of the request
// object.
func (r *simReplica) checkObeyed(cause string) {
	s, k := r.s, &r.k
	asked := func(id string, target Target) {
		s.require(k.request != nil && target.names(r.work.term.epoch, r.work.term.id, r.m.incarnation), "obeyed %s, which is about %+v", id, target)
		s.require(!k.obeyed[id], "obeyed %s again", id)
		k.obeyed[id] = true
	}
	switch {
	case strings.Contains(cause, "step-down"):
		asked(k.request.Request.StepDown.ID, k.request.Request.StepDown.Target)
	case strings.Contains(cause, "handover"):
		h := k.request.Request.Handover
		asked(h.ID, h.Target)
		s.handovers++
		s.require(s.store.touched || !s.store.led[h.Revision], "handed over to revision %s, which has led", h.Revision)
	}
}

// checkAsked judges a claim by what people ask for.
func (r *simReplica) checkAsked(now Instant) {
	s, k := r.s, &r.k
	if !s.people {
		return
	}
	s.require(k.request != nil, "claims without having read the request object in this attempt")
	if k.request == nil {
		return
	}
	if k.request.Request.Hold != nil {
		s.require(now >= k.holdEnd, "claims during a hold with %v left", k.holdEnd.Sub(now))
	}
	if k.object.exists && k.object.corrupt == nil {
		pause := k.object.rec.Work.pause(r.m.incarnation)
		s.require(now.Sub(k.since) >= pause, "claims %v after a back-off of %v began", now.Sub(k.since), pause)
	}
}

// checkClaim is rules 1, 10 and 11.
func (r *simReplica) checkClaim(a action, now Instant) {
	s, k := r.s, &r.k
	r.checkAsked(now)
	s.require(a.rec.Epoch > k.epoch, "I2: claims epoch %d, has seen %d", a.rec.Epoch, k.epoch)
	fence := Fence{}
	if s.fenced {
		s.require(k.fence != nil, "rule 1: claims without having read the document in this attempt")
		if k.fence == nil {
			return
		}
		fence = *k.fence
		s.require(a.rec.Epoch > fence.Epoch, "rule 1: claims epoch %d, the document is sealed at %d", a.rec.Epoch, fence.Epoch)
	}
	rec := k.object.rec
	window := r.cfg.TTL
	switch {
	case !k.object.exists:
		window = max(window, k.ttl)
	case k.object.corrupt != nil && k.ttl > 0:
		window = max(window, k.ttl)
	case k.object.corrupt != nil || rec.Incarnation == "":
		window = max(window, time.Minute)
	default:
		window = max(window, rec.TTL)
	}
	if now.Sub(k.since) >= window {
		return
	}
	trusted := k.object.exists && k.object.corrupt == nil && rec.State == Released && rec.Epoch >= k.epoch && rec.Epoch >= fence.Epoch
	if k.heldAt == rec.Epoch && k.heldBy != "" {
		trusted = trusted && k.heldBy == rec.Incarnation
	} else {
		trusted = trusted && fence.Found
	}
	s.require(trusted, "rules 10, 11: claims after %v of a window of %v", now.Sub(k.since), window)
}

// claimLands is I1 and I2 at the instant an acquisition is applied.
//
// What an operator may break is exactly this: without a checkpoint document, a
// process that never read a record of the running term cannot know its ttl or
// its epoch; and an absence that began before the term was acquired looks the
// same after the object was deleted again (rule 10 has no condition that tells
// two absences apart). With a document the term must not have sealed it.
func (s *sim) claimLands(r *simReplica, process int, a action, l *lineage) {
	if !s.store.touched || !a.cond.absent && s.store.now.corrupt == nil && s.store.now.rec.Epoch == s.store.epochs {
		s.require(a.rec.Epoch > s.store.epochs, "I2: epoch %d lands after %d", a.rec.Epoch, s.store.epochs)
	}
	for _, ol := range s.store.terms {
		if a.cond.absent && ol.byHand && ol.landed && l.firstSeen < ol.landedAt {
			l.forgiven, ol.usurped = true, true
		}
	}
	for _, o := range s.replicas {
		if o == r || o.m == nil || o.work == nil || o.work.gone || o.m.lost {
			continue
		}
		left := o.real(o.m.term.deadline) - s.now
		ol := s.store.terms[o.work.term.id]
		switch {
		case o.m.phase == standby || o.m.phase == finished || left <= int64(10*time.Microsecond):
		case ol.usurped: // it is the operator's victim already
		case ol.byHand && !s.fenced && (r.process != process || !r.k.terms[o.work.term.id]):
			l.forgiven, ol.usurped = true, true
		case ol.byHand && s.fenced && !o.work.acting:
			// The seal decides between the two.
		default:
			s.fail("I1: %s acquires epoch %d while the term %s of %s has %v left", r.name, a.rec.Epoch, o.work.term.id, o.name, time.Duration(left))
		}
	}
}

func (s *sim) excused(term string) bool {
	return s.store.terms[term].forgiven || s.store.terms[term].usurped
}

// act is the work's first protected act.
func (r *simReplica) act(w *simWork) {
	if w.gone {
		return
	}
	s := r.s
	w.acting = true
	s.note(r.name, "    work of epoch %d term %s acts", w.term.epoch, w.term.id)
	for _, o := range s.replicas {
		if o != r && o.work != nil && o.work.acting && !s.excused(w.term.id) && !s.excused(o.work.term.id) {
			s.fail("I1: %s and %s work at one instant, terms %s and %s", o.name, r.name, o.work.term.id, w.term.id)
		}
	}
}
