package answers

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/sf2loki/sf2loki-ha/coordinator"
)

func TestNoElectionIsLeftOut(t *testing.T) {
	cells := 0
	for _, situation := range situations {
		row := elections[situation]
		for _, r := range replies {
			w, ok := row[r.name]
			if !ok || (w.never == "") == (w.requests == "") {
				t.Errorf("%s, %s: an empty cell", situation, r.name)
				continue
			}
			cells++
		}
		if len(row) != len(replies) {
			t.Errorf("%s has %d cells, there are %d rows", situation, len(row), len(replies))
		}
	}
	if want := len(situations) * len(replies); cells != want || len(elections) != len(situations) {
		t.Errorf("%d cells of %d", cells, want)
	}
}

func TestEachAnswerInEachSituation(t *testing.T) {
	for _, s := range Services() {
		for _, situation := range situations {
			for _, r := range replies {
				w := elections[situation][r.name].of(s)
				if w.never != "" {
					continue
				}
				t.Run(string(s)+"/"+situation+"/"+r.name, func(t *testing.T) {
					t.Parallel()
					meet(t, s, situation, r.plan(s, situation), w)
				})
			}
		}
	}
}

// of is the cell for that service.
func (w want) of(s Service) want {
	switch {
	case s != K8s || w.never != "":
		return w
	case w.k8s != nil:
		return *w.k8s
	}
	// An update reads first.
	var out []string
	for _, r := range strings.Split(w.requests, ", ") {
		if op, _, _ := strings.Cut(r, " "); op != Load && op != Create && len(out) > 0 && out[len(out)-1] != Load {
			out = append(out, Load)
		}
		out = append(out, r)
	}
	w.requests = strings.Join(out, ", ")
	return w
}

// meet brings a replica into a situation, lets the plan happen, and looks at what
// comes of it.
func meet(t *testing.T, s Service, situation string, plan []step, want want) {
	var w *world
	var r *replica
	switch situation {
	case claimAbsent, claimStale, stopping:
		old := stranger()
		first := &old
		if situation == claimAbsent {
			first = nil
		}
		w = newWorld(t, s, first)
		r = start(t, w)
		r.happened(coordinator.Observed, 1)
		if situation == stopping {
			plan = append([]step{}, plan...)
			if len(plan) == 0 {
				plan = []step{{}}
			}
			plan[0].gate = r.stop // the claim has arrived, and waits for its answer
		}
		w.arm(plan...)
		r.clock.jump(ttl)
	case renewal:
		w, r = leads(t, s)
		w.arm(plan...)
		r.clock.jump(renew)
	case releasing:
		w, r = leads(t, s)
		r.stop()
		r.happened(coordinator.Renewed, 1) // the stop is announced
		w.arm(plan...)
		r.letEnd()
	}
	armed := time.Now()
	switch want.outcome {
	case wins, stays:
		r.goesOn(want.outcome == stays)
	case loses:
		r.hasLost()
	case waits:
		r.hasWaited()
	case unsure:
		r.await("a read in vain", func() bool { return w.arrivals() == want.requests })
		r.clock.jump(ttl)
		r.hasEnded(want.outcome)
	default:
		r.hasEnded(want.outcome)
	}
	if got := w.arrivals(); got != want.requests {
		t.Errorf("requests\n     %s\nwant %s", got, want.requests)
	}
	if n, took := w.requests(), time.Since(armed); float64(n) > 10+10*took.Seconds() {
		t.Errorf("%d requests in %v: a store in trouble is not flooded", n, took)
	}
	if gap := w.closest(); s == GCS && gap < time.Second/2 {
		t.Errorf("two writes %v apart; the service takes one a second", gap)
	}
	if got := r.count(coordinator.WriteSettled) > 0; got != want.settled {
		t.Errorf("settled by a read: %v, want %v;%s", got, want.settled, r.story())
	}
}

// goesOn: the replica leads, and renews on the version that it has now.
func (r *replica) goesOn(same bool) {
	r.t.Helper()
	r.happened(coordinator.Acquired, 1)
	renewed := r.count(coordinator.Renewed)
	if same {
		r.happened(coordinator.Renewed, 1)
		renewed = 1
	}
	r.clock.jump(renew)
	r.happened(coordinator.Renewed, renewed+1)
	if terms := r.terms(); len(terms) != 1 {
		r.t.Errorf("%d terms", len(terms))
	}
	rec, ok := r.w.record()
	if !ok || rec.Term != r.terms()[0] || rec.State != coordinator.Held {
		r.t.Errorf("the lease is %+v", rec)
	}
	if n := r.count(coordinator.Lost, coordinator.Expired, coordinator.SteppingDown); n != 0 {
		r.t.Errorf("the term ended;%s", r.story())
	}
	if ends := r.worked(); len(ends) != 0 {
		r.t.Errorf("the work was told to end: %v", ends)
	}
}

// hasLost: the work is told so, and the replica is a standby like any other.
func (r *replica) hasLost() {
	r.t.Helper()
	r.happened(coordinator.Lost, 1)
	r.letEnd()
	r.await("the next poll", func() bool { return strings.HasSuffix(r.w.arrivals(), Load) && r.count(coordinator.BecameStandby) == 2 })
	if ends := r.worked(); len(ends) != 1 || !errors.Is(ends[0].cause, coordinator.ErrLost) {
		r.t.Errorf("the work ended with %v", ends)
	}
	if rec, _ := r.w.record(); rec.Holder == "replica" {
		r.t.Errorf("a loser wrote over the lease it lost: %+v", rec)
	}
}

// hasWaited: the replica reads on and leads nothing.
func (r *replica) hasWaited() {
	r.t.Helper()
	r.happened(coordinator.ClaimLost, 1)
	r.happened(coordinator.Observed, 2)
	if n := len(r.terms()); n != 0 {
		r.t.Errorf("%d terms", n)
	}
}

// hasEnded: Run has returned.
func (r *replica) hasEnded(want outcome) {
	r.t.Helper()
	r.finished()
	rec, ok := r.w.record()
	released := ok && rec.State == coordinator.Released && rec.Holder == "replica"
	if released != (want == gives) || released != (r.count(coordinator.ReleasedLease) == 1) {
		r.t.Errorf("released: %v, %d events; the lease is %+v;%s", released, r.count(coordinator.ReleasedLease), rec, r.story())
	}
}

// worked are the ends of the work so far.
func (r *replica) worked() []end {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]end(nil), r.ends...)
}
