package coordinator

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/sf2loki/sf2loki-ha/cas"
	"github.com/sf2loki/sf2loki-ha/internal/boottime"
)

// inquiry is what is read beside the lease, in one go: the fence of the
// checkpoint document, the request object, or both.
type inquiry struct{ fence, request bool }

func (i inquiry) any() bool { return i.fence || i.request }

// name is the operation in events and logs.
func (i inquiry) name() string {
	switch {
	case i.fence && i.request:
		return "inquire"
	case i.fence:
		return "fence"
	}
	return "request"
}

// purpose is what an inquiry is made for. An attempt to claim uses nothing that
// was read for something else.
type purpose uint8

const (
	forClaim purpose = iota
	forNomination
	forRehearsal
	forLeader
)

// hold is the hold that was read last, on our own clock.
type hold struct {
	id      string
	version cas.Version // of the document
	until   Instant
}

// forget drops what was read for an attempt: the next one reads it again.
func (m *machine) forget() { m.fence, m.request = nil, nil }

// missing is what an attempt still has to read.
func (m *machine) missing() inquiry {
	return inquiry{
		// During a hold only its end is of interest.
		fence:   m.hasFence && m.fence == nil && m.now >= m.held.until,
		request: m.hasRequests && m.request == nil,
	}
}

func (m *machine) ask(why purpose, what inquiry, until Instant) {
	op := m.send(opAsk, until)
	op.ask, op.why = what, why
	m.out = append(m.out, action{kind: doAsk, op: op.id, ask: what, timeout: op.timeout()})
}

// free reports whether the lease may be written or read now as far as the
// request in flight decides. What a holder reads beside the lease never holds
// up a renewal.
func (m *machine) free() bool { return m.op == nil || m.op.kind == opAsk && m.phase != standby }

// yield drops a holder's read of the request object once something else is due;
// its answer will be ignored.
func (m *machine) yield() {
	if m.op == nil || !m.free() || m.now < m.dueAt() && m.phase == leading {
		return
	}
	op := m.op
	m.op = nil
	if m.phase == leading {
		// A leader that never gets an answer must say so.
		m.note(op, cas.Ambiguous)
		m.onAsked(op, Fence{}, RequestState{}, fmt.Errorf("read request: %w: no answer before the renewal was due", cas.Ambiguous))
	}
}

// asks reports whether a leader should read the request object now.
func (m *machine) asks() bool { return m.hasRequests && m.askDue && m.now < m.dueAt() }

// onAsked takes what was read beside the lease.
func (m *machine) onAsked(op *operation, f Fence, r RequestState, err error) {
	if err == nil && m.now > op.giveUp {
		// It was waiting in a frozen process: what it says may be long over.
		err = fmt.Errorf("%s: %w: the answer was taken too late", op.ask.name(), cas.Ambiguous)
	}
	if err == nil && op.ask.request {
		m.unclear(r)
	}
	switch {
	case err != nil:
		// Not knowing is not "nothing is asked": a candidate waits. A leader goes
		// on, because its lease is good; it reads again with the next renewal.
		m.emit(Event{Kind: StoreFailed, Op: op.ask.name(), Class: cas.ClassOf(err), Err: err})
		m.claimNotBefore = m.now.Add(m.cfg.PollInterval)
		m.nominee.notBefore = m.now.Add(m.cfg.RenewInterval)
		m.rehearseFrom = m.nominee.notBefore
	case m.phase == standby:
		m.rehearseFrom = m.now.Add(rehearsalInterval)
		if op.ask.fence {
			m.fence = &f
			// Kept whatever becomes of this attempt: who sealed with that ttl may
			// still be at work when another document is read.
			m.ttlMax = max(m.ttlMax, min(f.TTL, MaxTTL))
			m.sealed(f)
		}
		if op.ask.request {
			m.request = &r
			m.noteHold(r)
		}
		switch {
		case op.why == forClaim:
			// The attempt goes on in this step.
		case op.why == forNomination && m.stop == nil && m.now >= m.nominateAt():
			// At once: a poll that is due as well would make it read again.
			m.nominate()
		default:
			m.forget()
		}
	case m.phase == leading:
		m.obey(r)
	}
}

// seal is what a fence says about the term that sealed.
type seal struct {
	epoch int64
	term  string
}

// sealed compares the fence with what was read of it before. A seal that is new,
// and not of a term whose record we saw, is of somebody who acquired since then: the
// lease was not absent all the time, and whoever had it may still be working. So
// absence counts from the next read that shows it.
func (m *machine) sealed(f Fence) {
	by := seal{f.Epoch, f.Term}
	news := by != m.lastSeal && by != seal{m.lastHeld.epoch, m.lastHeld.term}
	m.lastSeal = by
	if news && m.seen.absent {
		m.seen = sighting{}
		m.forget()
		m.nextAt = m.now
	}
}

// unclear says what of a document asks for nothing, once for each version: whoever
// wrote it believes that it was heard.
func (m *machine) unclear(r RequestState) {
	if r.Problem != nil && (!m.saidUnclear || m.unclearIn != r.Version) {
		m.emit(Event{Kind: RequestUnclear, Class: cas.Corrupt, Err: r.Problem})
	}
	m.saidUnclear, m.unclearIn = r.Problem != nil, r.Version
}

// rehearsalInterval is how often a standby reads what it would need to claim.
const rehearsalInterval = time.Hour

// rehearseAt is when a standby that has nothing to claim reads the fence and the
// request object for once, and again every hour. A permission that is missing, or
// a document that is damaged, must be said before the failover that needs it.
func (m *machine) rehearseAt() Instant {
	if !m.hasFence && !m.hasRequests || !m.seen.known || m.stop != nil || m.doubt != nil {
		return boottime.Never
	}
	return m.rehearseFrom
}

func (m *machine) rehearse() {
	m.forget()
	m.ask(forRehearsal, m.missing(), boottime.Never)
}

// noteHold remembers a hold, counted from now: the store has said how old it
// is, and from here on our own clock decides. Of one document the earliest end
// counts: a store that does not know the age, or whose clock went back, must not
// prolong a hold with every read.
func (m *machine) noteHold(r RequestState) {
	was, now := m.held, hold{}
	h := r.Request.Hold
	if h != nil && h.For > r.Age {
		now = hold{id: h.ID, version: r.Version, until: m.now.Add(h.For - r.Age)}
		if was.version == now.version {
			now.until = min(now.until, was.until)
		}
	}
	m.held = now
	switch active, wasActive := m.now < now.until, was.id != ""; {
	case active && was.id != now.id:
		m.emit(Event{Kind: OnHold, Reason: h.Reason, Asked: h.ID, By: h.By, Left: now.until.Sub(m.now)})
	case !active && wasActive:
		m.emit(Event{Kind: Resumed})
		m.held.id = "" // said; the end stays known
	}
}

// blocked reports whether a hold that was read in this attempt forbids to claim,
// and when to look again: at the end of the hold, or earlier, because it may be
// taken back.
func (m *machine) blocked() bool {
	if m.now >= m.held.until {
		return false
	}
	m.forget()
	m.claimNotBefore = min(m.held.until, m.now.Add(m.cfg.PollInterval))
	return true
}

// obey does what a leader is asked to do.
func (m *machine) obey(r RequestState) {
	// 1. A hold is for everybody.
	m.noteHold(r)
	if m.now < m.held.until {
		m.asked(partHold, m.held.id, "hold: "+r.Request.Hold.Reason)
		return
	}
	// 2. A step-down is for the term, or the process, that it names, and is
	// obeyed once: the id stands in the next record.
	if s := r.Request.StepDown; s != nil && !m.hasObeyed(partStepDown, s.ID) && s.Target.names(m.term.epoch, m.term.id, m.incarnation) {
		m.asked(partStepDown, s.ID, "step-down: "+s.Reason)
		return
	}
	// 3. A handover is for the term it names, and only to a revision that has
	// never led: one that has, and lost the lease again, would come back for ever.
	h := r.Request.Handover
	if h == nil || m.hasObeyed(partHandover, h.ID) || !h.Target.names(m.term.epoch, m.term.id, m.incarnation) {
		return
	}
	if h.Incarnation != m.incarnation && h.Revision != m.cfg.Revision && !m.mine.ledBy(h.Revision) {
		m.successor = h.Incarnation
		m.asked(partHandover, h.ID, "handover to revision "+h.Revision)
	}
}

// asked ends the term on request.
func (m *machine) asked(part, id, reason string) {
	// A hold in between must not make us forget a step-down that still stands in
	// the document.
	m.obeyed = append(m.obeyed, part+" "+id)
	m.obeyed = m.obeyed[max(0, len(m.obeyed)-maxObeyed):]
	m.lastObeyed = id
	if len(reason) > maxReason {
		reason = strings.ToValidUTF8(reason[:maxReason], "") + "…"
	}
	m.onStop(reason, false)
}

// hasObeyed reports whether this process obeyed that part before. An id is that
// of its part: people copy documents.
func (m *machine) hasObeyed(part, id string) bool { return slices.Contains(m.obeyed, part+" "+id) }

// maxObeyed is how many requests a process remembers to have obeyed. The
// document holds three at a time.
const maxObeyed = 32

// maxReason is how much of a reason that people gave goes into the record.
const maxReason = 200
