package sim

import (
	"time"

	"github.com/sf2loki/sf2loki-ha/checkpoint"
	"github.com/sf2loki/sf2loki-ha/coordinator"
)

// lineage is what is true about a term, which no process knows: what landed, who
// else wrote the lease since, and what its work did.
type lineage struct {
	g       *group
	id      string
	epoch   int64
	replica *replica

	landed   bool
	landedAt int64
	counts   coordinator.Instant // send of the latest write that landed, its holder's clock
	sent     map[string]coordinator.Instant
	sighted  int64 // real time of the sighting that it was claimed on
	informed int64 // real time of the document that its claimant had read
	sealed   int64 // real time of its first seal; 0: none

	touched  bool // another term's write, or the operator's, hit the object
	byHand   bool // the operator's did
	forgiven bool // see excuses.go
	usurped  bool

	began, lastAct int64 // of its work, in real time; 0: never
	told           int64 // the furthest commit that its work was told of
}

// sealing is what is true about the checkpoint document.
type sealing struct {
	fence checkpoint.Fence
	by    string // the term that sealed last
	done  int64

	// By the operator:
	tampered bool  // it was written by hand
	byHand   bool  // and by nobody else since
	reached  int64 // how far it had come before
}

// unfenced: it writes the document itself, and loaded it while its term was the
// operator's victim, or outside of what is promised. Nothing but the guard keeps
// such a load from coming after the seal of the next term.
func (t *task) unfenced() bool {
	return t.loose && t.p.r.w.terms[t.term].usurped
}

// positionKey is the checkpoint of the work.
const positionKey = "position"

// accept applies a write whose condition holds, and judges it.
func (w *world) accept(r *register, q request) {
	o := object{exists: true, data: q.data}
	switch q.object {
	case documentName:
		w.acceptDocument(&o, q)
	case q.task.p.r.g.lease:
		w.acceptLease(r, &o, q)
	}
	r.put(w.now, o)
	if w.logging {
		w.note("bucket", "%s -> %s, from %s, sent at %.3fs", q.object, r.now.version, q.task.p.name, float64(q.sent)/1e9)
	}
}

// acceptLease is I1 and I2 at the instant a write of a lease is applied.
func (w *world) acceptLease(r *register, o *object, q request) {
	o.rec = q.task.write.rec
	l := w.terms[o.rec.Term]
	if !l.landed || !r.now.exists || r.now.rec.Term != l.id {
		// Attempts of one acquisition may differ in their epoch; one of them lands,
		// and another one if an operator takes that one away.
		l.epoch = o.rec.Epoch
		w.judgeTakeover(r, q, l)
	}
	w.replaced(r, o.rec.Term)
	if at, ok := l.sent[o.rec.WriteID]; ok {
		l.counts = max(l.counts, at)
	}
	if !l.landed {
		l.landed, l.landedAt = true, w.now
		l.g.led[o.rec.Revision] = true
		l.g.epochs = max(l.g.epochs, o.rec.Epoch)
		w.tally.Terms++
		if w.ambush && !w.calm {
			w.ambush = false
			w.after(w.upTo(100*time.Millisecond), w.meddle)
		}
	}
}

// replaced marks the term whose record goes away.
func (w *world) replaced(r *register, by string) {
	if l := w.terms[r.now.rec.Term]; r.now.exists && l != nil && r.now.rec.Term != by {
		l.touched = true
	}
}

// acceptDocument is I2, I3 and I6 at the instant a write of the document is
// applied.
func (w *world) acceptDocument(o *object, q request) {
	d, term := &w.document, q.task.term
	was := w.bucket.open(documentName).now
	if d.read(o); o.corrupt != nil && was.corrupt != nil && q.task.loose {
		d.done = o.done // work that writes by itself knows nothing of the fence
		return
	}
	if o.corrupt != nil {
		w.fail("wrote a document that cannot be read: %v", o.corrupt)
		return
	}
	w.require(was.corrupt == nil, "overwrites a document that cannot be read: %v", was.corrupt)
	own := o.fence.Term == term && o.fence.Epoch == w.terms[term].epoch
	if q.task.seals {
		w.require(own, "I3: term %s seals with the fence of %s", term, o.fence.Term)
		w.require(o.fence.Epoch > d.fence.Epoch || o.fence.Term == d.fence.Term, "I2: a seal of epoch %d over one of epoch %d", o.fence.Epoch, d.fence.Epoch)
		w.require(d.fence.Lease == "" || o.fence.Lease == d.fence.Lease, "a seal of lease %q over one of lease %q", o.fence.Lease, d.fence.Lease)
		d.by = term
		if w.terms[term].sealed == 0 {
			w.terms[term].sealed = w.now
		}
	} else if !q.task.unfenced() {
		// Nothing protects the document of an operator from work that writes it
		// by itself and loads it after that: the guard has stopped all but one.
		w.require(term == d.by && o.fence.Term == d.fence.Term || d.byHand && q.task.loose,
			"I3: a commit of term %s is accepted, the document is sealed by %s", term, d.by)
		d.by = term
	}
	// What an operator put there may be ahead of the work that runs, which goes on from
	// where it is.
	w.require(o.done >= d.done || d.byHand, "I6: the checkpoint goes back from %d to %d", d.done, o.done)
	d.fence, d.done, d.byHand = o.fence, o.done, false
	w.tally.Commits++
}
