package sim

import (
	"errors"
	"strings"
	"time"

	"github.com/sf2loki/sf2loki-ha/cas"
	"github.com/sf2loki/sf2loki-ha/coordinator"
)

// situation is what was true before a step.
type situation struct {
	state coordinator.MachineState
	taken *task // the request whose answer the step takes, or nil
}

// before learns what the input tells, and remembers where the election stood.
func (p *process) before() situation {
	was := situation{state: p.m.State()}
	// An answer to a request that was given up is not taken.
	if t := p.answered; t != nil && t.id == was.state.Call {
		was.taken = t
		p.learn(t, p.answer.Err())
	}
	return was
}

// after judges one step of an election by the rules.
func (p *process) after(was situation, s coordinator.Step) {
	w, k, is, now := p.r.w, &p.k, p.m.State(), p.r.Now()
	if t := p.call; t != nil && t.id == was.state.Call && was.taken == nil && is.Call != t.id && t.write != nil {
		k.doubts[t.write.on] = true // given up
	}
	// I4: no instant beyond what a write that landed has bought.
	if is.Term != "" && (is.Phase == "leading" || is.Phase == "draining") {
		l := w.terms[is.Term]
		bought := l.counts.Add(lifetime(p.r.cfg))
		w.require(is.Deadline <= bought, "I4: the deadline is %v beyond what the writes that landed have bought", is.Deadline.Sub(bought))
		w.require(is.KillAt <= is.Deadline.Add(-p.r.cfg.KillMargin), "I4: the kill instant leaves no margin")
		if was.state.Term == is.Term && now >= was.state.KillAt && !is.Lost {
			w.require(is.KillAt <= was.state.KillAt, "I4: a term is prolonged after its work was killed")
		}
	}
	if s.Start != nil {
		w.require(p.work == nil || p.work.gone, "work starts while that of the former term runs")
	}
	// Rule 6: a clean conflict is a loss at once, without a request in between.
	if t := was.taken; t != nil && t.write != nil && was.state.Phase == "leading" && cas.ClassOf(p.answer.Err()) == cas.Conflict && !k.doubts[t.write.on] {
		w.require(is.Lost && s.Call == nil, "rule 6: a clean conflict is not a loss at once")
		w.require(is.KillAt <= now, "rule 6: work that lost its lease is given grace")
	}
	if p.work != nil && was.state.Phase == "leading" && is.Phase == "draining" {
		p.judgeObeyed()
	}
	p.judgeCalm(s)
}

// judgeTold judges what the work of a term was told by a step: at once that it
// has to end, and every instant.
func (p *process) judgeTold(was situation) {
	w, work, is := p.r.w, p.work, p.m.State()
	if work == nil || work.gone || is.Term != work.term.ID() {
		return
	}
	cause := work.cause()
	w.require((cause != nil) == (is.Phase != "leading"), "%s, and its work was told %v", is.Phase, cause)
	w.require(work.term.KillAt() == is.KillAt || is.Lost && work.term.KillAt() < is.KillAt, "the work was told to be gone %v after the instant of its term", work.term.KillAt().Sub(is.KillAt))
	// A requested stop has a limit, which no renewal and no second request moves.
	k, now := &p.k, p.r.Now()
	if was.state.Phase == "leading" && is.Phase == "draining" {
		k.toldOf, k.toldAt = is.Term, now
	}
	if is.Phase != "draining" {
		return
	}
	limit := k.toldAt.Add(p.r.cfg.Budget().Drain)
	w.require(is.KillAt <= limit, "the work may drain %v longer than its limit", is.KillAt.Sub(limit))
	// Work that is not gone a margin after its end is said to be late, and no other.
	late := p.lateFrom(is)
	w.require(now < late || k.overran == is.Term || was.state.Phase != "draining", "nobody says that the work is late by %v", now.Sub(late))
}

// lateFrom is when work that was told to end is late.
func (p *process) lateFrom(is coordinator.MachineState) coordinator.Instant {
	return is.KillAt.Add(p.r.cfg.KillMargin)
}

// judgeOverran judges the complaint that work is late.
func (p *process) judgeOverran(e coordinator.Event) {
	k, w := &p.k, p.r.w
	w.require(k.overran != e.Term, "said twice that the work is late")
	w.require(p.r.Now() >= p.lateFrom(p.m.State()), "work that is not late is called late")
	k.overran = e.Term
}

// lifetime is how long a write that landed lets its holder act, by its clock.
func lifetime(c coordinator.Config) time.Duration {
	return time.Duration(float64(c.TTL) * (1 - c.Drift))
}

// judgeCalm finds busy loops, floods and elections that sleep for ever.
func (p *process) judgeCalm(s coordinator.Step) {
	w, k, now := p.r.w, &p.k, p.r.Now()
	k.idle++
	if s.Wake > now || s.Call != nil || s.Start != nil || p.answered != nil {
		k.idle = 0
	}
	w.require(k.idle < 4, "busy loop: %s wants to wake %v ago", p.m.State().Phase, now.Sub(s.Wake))
	if s.Wake == coordinator.Never {
		phase := p.m.State().Phase
		w.require(phase == "finished" || phase == "draining", "%s sleeps for ever", phase)
	}
	if s.Call == nil {
		return
	}
	k.requests = append(k.requests, now)
	// A leader that is refused asks again after a sixth of a call at the earliest.
	most := max(15, int(6*time.Second/p.r.cfg.CallTimeout)+1)
	if n := len(k.requests); n > 3*most {
		k.requests = k.requests[n-3*most:]
		w.require(now.Sub(k.requests[0]) > 5*time.Second, "flood: %d requests within %v", 3*most, now.Sub(k.requests[0]))
	}
	if n := len(k.requests); n > most-1 {
		w.require(now.Sub(k.requests[n-most]) > time.Second, "flood: %d requests within %v", most, now.Sub(k.requests[n-most]))
	}
}

// judgeLoss is I7: a term whose lease nobody else has written is not given up.
func (p *process) judgeLoss(e coordinator.Event) {
	l := p.r.w.terms[e.Term]
	p.r.w.require(l.touched || p.replayed, "I7: term %s gives up although nobody else wrote its lease: %v", e.Term, e.Err)
}

// judgeObeyed judges the end of a term by what was last read of the request
// object.
func (p *process) judgeObeyed() {
	w, k := p.r.w, &p.k
	cause := p.work.cause()
	if cause == nil || k.request == nil || errors.Is(cause, coordinator.ErrLost) {
		return
	}
	asked := func(part, id string, target coordinator.Target) {
		t := p.work.term
		mine := target.Incarnation == p.name || target.Incarnation == "" && target.Epoch == t.Epoch() && target.Term == t.ID()
		mine = mine || target.Incarnation == p.m.Incarnation()
		w.require(mine, "obeyed %s, which is about %+v", id, target)
		w.require(!k.obeyed[part+id], "obeyed %s again", id)
		k.obeyed[part+id], k.said, k.saidOf = true, id, t.ID()
	}
	switch text := cause.Error(); {
	case strings.Contains(text, "hold: "):
		k.said, k.saidOf = k.request.Hold.ID, p.work.term.ID()
	case strings.Contains(text, "step-down: "):
		asked("step-down ", k.request.StepDown.ID, k.request.StepDown.Target)
	case strings.Contains(text, "handover to"):
		h := k.request.Handover
		asked("handover ", h.ID, h.Target)
		w.handovers++
		w.require(h.Incarnation != p.m.Incarnation() && h.Revision != p.r.cfg.Revision, "handed over to itself, or to its own revision")
		w.require(p.r.g.touched || !p.r.g.led[h.Revision], "handed over to revision %s, which has led", h.Revision)
	}
}
