package history

import (
	"github.com/sf2loki/sf2loki-ha/coordinator"
	"github.com/sf2loki/sf2loki-ha/e2e/faultproxy"
	"github.com/sf2loki/sf2loki-ha/internal/boottime"
)

// term is one term of the lease, as its accepted writes show it.
type term struct {
	id       string
	epoch    int64
	replica  string
	acquired faultproxy.Exchange
}

// lease judges the accepted writes of the lease, in order, and returns its terms
// by their ids.
func (j *judgement) lease(chain []faultproxy.Exchange) map[string]*term {
	terms := map[string]*term{}
	var last *term
	released := false
	for _, x := range chain {
		d := x.Document
		if d == nil || d.Kind != "lease" {
			j.problem("I2", x.Answered, "the lease was overwritten by something else: %s", brief(x))
			continue
		}
		t := terms[d.Term]
		switch {
		case t == nil:
			t = &term{id: d.Term, epoch: d.Epoch, replica: x.Replica, acquired: x}
			terms[d.Term] = t
			j.report.Figures.Terms++
			if last != nil && d.Epoch <= last.epoch {
				j.problem("I2", x.Answered, "epoch %d was acquired after epoch %d: %s", d.Epoch, last.epoch, brief(x))
			}
			if last != nil && last.replica != t.replica {
				j.report.Figures.Takeovers++
			}
		case t != last:
			j.problem("I2", x.Answered, "the term of epoch %d wrote the lease after that of epoch %d: %s", t.epoch, last.epoch, brief(x))
		case released && d.State == coordinator.Held:
			j.problem("I2", x.Answered, "the released term of epoch %d holds again: %s", t.epoch, brief(x))
		}
		if d.Epoch != t.epoch {
			j.problem("I2", x.Answered, "a term changed its epoch from %d to %d: %s", t.epoch, d.Epoch, brief(x))
		}
		if x.Replica != t.replica {
			j.problem("I2", x.Answered, "the term of %s was written by %s: %s", t.replica, x.Replica, brief(x))
		}
		last, released = t, d.State == coordinator.Released
	}
	return terms
}

// checkpoints judges the accepted writes of the document, in order, and returns
// when each term had sealed it.
func (j *judgement) checkpoints(chain []faultproxy.Exchange, terms map[string]*term) map[string]boottime.Instant {
	seals := map[string]boottime.Instant{}
	sealed := faultproxy.Document{}
	for _, x := range chain {
		if x.Document == nil || x.Document.Kind != "checkpoint" {
			j.problem("I3", x.Answered, "the checkpoint document was overwritten by something else: %s", brief(x))
			continue
		}
		d := *x.Document
		switch owner := terms[d.Term]; {
		case owner == nil || owner.epoch != d.Epoch:
			j.problem("I3", x.Answered, "written with a pair that never had the lease: %s", brief(x))
		case owner.acquired.Arrived >= x.Arrived:
			j.problem("I3", x.Answered, "written before its term had the lease: %s", brief(x))
		case owner.replica != x.Replica:
			j.problem("I3", x.Answered, "%s wrote in a term of %s: %s", x.Replica, owner.replica, brief(x))
		}
		same := d.Epoch == sealed.Epoch && d.Term == sealed.Term
		if !same {
			j.report.Figures.Seals++
			if d.Epoch <= sealed.Epoch {
				j.problem("I3", x.Answered, "written under epoch %d while epoch %d had sealed it: %s", d.Epoch, sealed.Epoch, brief(x))
			}
			if position(d) != position(sealed) {
				j.problem("I3", x.Answered, "a seal changed the position from %+v to %+v: %s", position(sealed), position(d), brief(x))
			}
		} else if p := position(d); p != position(sealed) && (p.Epoch != d.Epoch || p.Term != d.Term) {
			j.problem("I3", x.Answered, "a canary of epoch %d moved the position under the seal of epoch %d: %s", p.Epoch, d.Epoch, brief(x))
		}
		if position(d).N < position(sealed).N {
			j.problem("I6", x.Answered, "the position went back from record %d to %d: %s", position(sealed).N, position(d).N, brief(x))
		}
		if d.Keys < sealed.Keys {
			j.problem("I6", x.Answered, "of %d checkpoints %d are left: %s", sealed.Keys, d.Keys, brief(x))
		}
		if seals[d.Term] == 0 {
			seals[d.Term] = x.Answered
		}
		sealed = d
	}
	return seals
}

func position(d faultproxy.Document) faultproxy.Position {
	if d.Position == nil {
		return faultproxy.Position{}
	}
	return *d.Position
}
