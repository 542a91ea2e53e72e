package sim

import (
	"errors"
	"time"

	"github.com/sf2loki/sf2loki-ha/checkpoint"
	"github.com/sf2loki/sf2loki-ha/coordinator"
)

// judgeSend judges a write of a lease at its send.
func (w *world) judgeSend(q request) {
	p, t := q.task.p, q.task
	if q.write && q.object == documentName && !t.loose {
		// A session asks its term before every attempt: what it sends later could
		// land although the work is over.
		is := p.work.term.CheckFence()
		w.require(p.work.term.ID() == t.term && is == nil, "I4: writes the document for a term that is over: %v", is)
	}
	if !q.write || q.object != p.r.g.lease {
		return
	}
	rec, err := coordinator.ParseRecord(q.data)
	if err != nil {
		w.fail("wrote a lease that cannot be read: %v", err)
		return
	}
	k, now := &p.k, p.r.Now()
	t.write = &leaseWrite{on: q.on, rec: rec}
	w.note(p.r.name, "sends %s: epoch %d term %s write %s on %q", rec.State, rec.Epoch, rec.Term, rec.WriteID, q.on)
	w.require(q.on == "" || k.versions[q.on], "a write on version %q, which was never read", q.on)
	if k.writes++; k.writes > 1 && p.r.cfg.MinWriteInterval > 0 {
		w.require(now.Sub(k.lastWrite) >= p.r.cfg.MinWriteInterval, "two writes within %v", now.Sub(k.lastWrite))
	}
	p.judgeHolder(t, rec, now)
	k.lastWrite, k.renewed = now, false
	l := w.terms[rec.Term]
	if l == nil {
		l = &lineage{g: p.r.g, id: rec.Term, epoch: rec.Epoch, replica: p.r, sent: map[string]coordinator.Instant{}}
		w.terms[rec.Term] = l
	}
	l.sent[rec.WriteID] = now
	switch {
	case rec.State == coordinator.Released:
		// Rule 8.
		w.require(p.work == nil || p.work.gone || p.work.term.ID() != rec.Term, "rule 8: released while its work runs")
	case t.phase == "standby":
		l.sighted, l.informed = k.sinceReal, k.fenceAt
		p.judgeClaim(rec, now)
		k.fence, k.request = nil, nil
	}
}

// judgeHolder judges a write of a lease by who holds it.
func (p *process) judgeHolder(t *task, rec coordinator.Record, now coordinator.Instant) {
	w, k, is := p.r.w, &p.k, p.m.State()
	if t.phase == "standby" {
		return
	}
	switch {
	case rec.State == coordinator.Released:
		w.require(t.phase == "releasing", "a tombstone is written while %s", t.phase)
	case t.phase == "leading":
		w.require(!k.renewed || now.Sub(k.lastWrite) >= p.r.cfg.RenewInterval, "renews again after %v", now.Sub(k.lastWrite))
		w.require(!rec.Stopping, "a leader says that it stops")
	default:
		// A term that was told to end is renewed only while its work drains because
		// somebody asked for that, and says so.
		w.require(t.phase == "draining" && errors.Is(p.work.cause(), coordinator.ErrStopping) && !is.Lost && now < is.KillAt,
			"a term that is over is renewed while %s", t.phase)
		w.require(rec.Stopping, "a leader that stops does not say so")
	}
	if rec.Term != is.Term {
		return
	}
	if k.failedOf == rec.Term && k.failed > 0 {
		w.require(rec.Work.Failures >= k.failed && rec.Work.Incarnations[len(rec.Work.Incarnations)-1] == p.m.Incarnation(),
			"the record says nothing of %d failures of the work", k.failed)
	}
	w.require(k.saidOf != rec.Term || rec.Obeyed == k.said, "%q was obeyed, the record says %q", k.said, rec.Obeyed)
}

// judgeClaim is rules 1, 10 and 11, and what people ask for.
func (p *process) judgeClaim(claim coordinator.Record, now coordinator.Instant) {
	w, k := p.r.w, &p.k
	p.judgeAsked(now)
	// Rule 12: a replica whose work failed leaves the lease to others, but not
	// longer than a tombstone stands for one ttl.
	if out := k.stayOut; k.lease.exists && k.lease.corrupt == nil && k.lease.rec.State == coordinator.Released {
		w.require(now >= min(out, k.since.Add(p.r.cfg.TTL)), "claims with %v of its stay-out left", out.Sub(now))
	} else {
		w.require(now >= out, "claims with %v of its stay-out left", out.Sub(now))
	}
	w.require(claim.Epoch > k.epoch, "I2: claims epoch %d, has seen %d", claim.Epoch, k.epoch)
	fence := checkpoint.Fence{}
	if w.fenced {
		w.require(k.fence != nil, "rule 1: claims without having read the document in this attempt")
		if k.fence == nil {
			return
		}
		fence = *k.fence
		w.require(fence.Lease == "" || fence.Lease == p.r.cfg.Lease, "claims a lease whose document belongs to %s", fence.Lease)
		w.require(claim.Epoch > fence.Epoch, "rule 1: claims epoch %d, the document is sealed at %d", claim.Epoch, fence.Epoch)
	}
	rec, window := k.lease.rec, p.r.cfg.TTL
	outranked := rec.Epoch < fence.Epoch || rec.Epoch == fence.Epoch && fence.Term != "" && fence.Term != rec.Term
	copied := rec.Lease != "" && rec.Lease != p.r.cfg.Lease
	w.require(!k.lease.exists || k.lease.corrupt != nil || rec.MinVersion <= coordinator.RecordVersion, "claims a record that is for newer readers alone")
	switch {
	case !k.lease.exists:
		window = max(window, k.ttl)
	case k.lease.corrupt != nil && k.ttl > 0:
		window = max(window, k.ttl)
	case k.lease.corrupt != nil || rec.Incarnation == "":
		window = max(window, time.Minute)
	default:
		window = max(window, rec.TTL)
		if rec.Epoch < k.epoch || outranked || copied {
			window = max(window, k.ttl)
		}
	}
	if now.Sub(k.since) >= window {
		return
	}
	trusted := k.lease.exists && k.lease.corrupt == nil && rec.State == coordinator.Released && !copied && rec.Epoch >= k.epoch && !outranked
	if k.heldAt == rec.Epoch && k.heldBy != "" {
		trusted = trusted && k.heldBy == rec.Incarnation
	} else {
		trusted = trusted && fence.Found
	}
	w.require(trusted, "rules 10, 11: claims after %v of a window of %v", now.Sub(k.since), window)
}

// judgeAsked judges a claim by what people ask for.
func (p *process) judgeAsked(now coordinator.Instant) {
	w, k := p.r.w, &p.k
	if !w.people {
		return
	}
	w.require(k.request != nil, "claims without having read the request object in this attempt")
	if k.request == nil {
		return
	}
	// An answer that waited in a frozen process is none: what people ask for may
	// have changed since. At the end of a hold the document is read after it.
	old, limit := time.Duration(w.now-k.requestAt), time.Duration(float64(2*p.r.cfg.CallTimeout)/p.r.rate)+200*time.Millisecond
	w.require(old <= limit, "claims by what people asked for %v ago", old)
	if k.request.Hold != nil {
		w.require(now >= k.holdEnd, "claims during a hold with %v left", k.holdEnd.Sub(now))
	}
	if k.lease.exists && k.lease.corrupt == nil {
		wait := pause(k.lease.rec, p.m.Incarnation())
		w.require(now.Sub(k.since) >= wait, "claims %v after a back-off of %v began", now.Sub(k.since), wait)
	}
}
