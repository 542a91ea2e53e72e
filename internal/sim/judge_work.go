package sim

import "time"

// freezeGrace is how long work may go on after a freeze of the whole replica,
// until its guard has fired.
const freezeGrace = 200 * time.Millisecond

// excused reports whether what this work does now is outside of the claim.
func (c *child) excused() bool {
	w := c.g.r.w
	switch {
	case w.now < c.g.outside+int64(freezeGrace): // supervisor and guard stood still while it ran
		return true
	case c.thawed > 0 && w.now < c.thawed+int64(freezeGrace):
		return true
	}
	return false
}

// judgeAct is I1 and I4 at an act.
func (c *child) judgeAct() {
	w, l := c.g.r.w, c.lineage
	w.tally.Acts++
	if c.excused() {
		return
	}
	// I4: it acts within what the writes that landed have bought.
	end := l.counts.Add(lifetime(c.g.r.cfg))
	w.require(c.g.r.Now() < end, "I4: term %s acts %v after its deadline", l.id, c.g.r.Now().Sub(end))
	// I1: no other term began to act since this one did. Terms that an operator
	// has made overlap are judged no more.
	if l.began == 0 {
		l.began = w.now
	}
	l.lastAct = w.now
	for _, o := range w.terms {
		if o == l || o.g != l.g || o.began <= l.began || l.forgiven || l.usurped || o.forgiven || o.usurped {
			continue
		}
		w.fail("I1: terms %s and %s act at one time", l.id, o.id)
	}
}

// judgeLoad: work that writes the document itself has to load it while its own
// seal stands. Nothing else protects a load that comes too late.
func (c *child) judgeLoad() {
	if !c.excused() {
		d := c.g.r.w.document
		c.g.r.w.require(d.by == c.term || d.byHand || c.version != c.g.r.w.bucket.open(documentName).now.version || c.lineage.usurped,
			"I4: the work of term %s loads the document that %s has sealed", c.term, d.by)
	}
}
