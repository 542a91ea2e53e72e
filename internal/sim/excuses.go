package sim

import "time"

// judgeTakeover is I1 and I2 at the instant an acquisition is applied: no other
// term of the lease may still be valid by its holder's own clock.
//
// What an operator may break is exactly this. Without a checkpoint document, a
// process that never read a record of the running term cannot know its ttl or its
// epoch; and an absence that began before the term was acquired looks the same
// after the object was deleted again, as does a record that was put back where
// versions are digests. With a document the former is so only for a term that had
// not sealed it when the claimant read it, or whose seal an operator took away: its
// seal decides between the two.
func (w *world) judgeTakeover(r *register, q request, l *lineage) {
	g, p := l.g, q.task.p
	if !g.touched || q.on != "" && r.now.corrupt == nil && r.now.rec.Epoch == g.epochs {
		w.require(l.epoch > g.epochs, "I2: epoch %d lands after %d", l.epoch, g.epochs)
	}
	for _, o := range w.terms {
		unknown := !w.fenced || o.sealed == 0 || o.sealed > l.informed || w.document.tampered
		again := q.on == "" && o.landed && l.sighted < o.landedAt && unknown
		again = again || q.on != "" && r.digests && r.now.byHand && l.sighted < r.now.written
		if again && o.g == g && o.byHand && o != l {
			l.forgiven, o.usurped = true, true
		}
	}
	for _, other := range w.replicas {
		if other == p.r || other.g != g || other.p == nil || other.p.work == nil || other.p.work.gone {
			continue
		}
		is := other.p.m.State()
		left := other.real(is.Deadline) - w.now
		o := w.terms[other.p.work.term.ID()]
		switch {
		case is.Lost || is.Phase == "standby" || is.Phase == "finished" || left <= int64(10*time.Microsecond):
		case o.usurped: // it is the operator's victim already
		case o.byHand && !w.fenced && (p.dead || !p.k.terms[o.id]):
			l.forgiven, o.usurped = true, true
		case o.byHand && w.fenced && o.began == 0:
			// The seal decides between the two.
		default:
			w.fail("I1: %s acquires epoch %d while term %s of %s has %v left", p.r.name, l.epoch, o.id, other.name, time.Duration(left))
		}
	}
}
