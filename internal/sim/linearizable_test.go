package sim_test

import (
	"math"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/sf2loki/sf2loki-ha/internal/sim"
)

// object is the state of a register: the number of the write that made it, 0 if
// there is none, and whose term it is of.
type object struct {
	token int
	epoch int64
	term  string
	// hand: the operator wrote it, who may bring any epoch back.
	hand bool
}

// register is the specification of one object. The operator writes without
// condition; everybody else writes on the state that was named, within one term or
// with a higher epoch.
var register = porcupine.Model{
	Init: func() any { return object{} },
	Step: func(state, input, _ any) (bool, any) {
		s, op := state.(object), input.(*sim.Operation)
		next := object{token: op.Token, epoch: op.Epoch, term: op.Term}
		follows := s.token == op.On && (s.hand || next.term == s.term && next.epoch == s.epoch || next.epoch > s.epoch || next.term == "")
		switch {
		case !op.Write:
			return s.token == op.Token, s
		case op.On < 0:
			next.hand = true
			return true, next
		case op.Conflict:
			return s.token != op.On, s
		case op.Done:
			return follows, next
		case s.token == op.On && op.Token != 0:
			return follows, next // nobody was told, and it was applied
		}
		return true, s // or it was not
	},
}

// operations are those on one object. One without a definite answer has no
// return: it may take effect at any time, or never.
func operations(all []*sim.Operation, object string) []porcupine.Operation {
	var ops []porcupine.Operation
	clients := map[string]int{}
	for _, op := range all {
		switch {
		case op.Object != object, !op.Write && !op.Done, op.Write && !op.Done && op.Token == 0:
			continue // of an open write without effect nothing can be said
		}
		if _, ok := clients[op.Client]; !ok {
			clients[op.Client] = len(clients)
		}
		end := op.Return
		if !op.Done {
			end = math.MaxInt64
		}
		ops = append(ops, porcupine.Operation{ClientId: clients[op.Client], Input: op, Call: op.Call, Return: end})
	}
	return ops
}

// TestTheObjectsOfAHistoryAreLinearizable: what callers were told, of the lease
// and of the document, fits one order of what happened.
func TestTheObjectsOfAHistoryAreLinearizable(t *testing.T) {
	checked := 0
	for seed := range uint64(150) {
		r := sim.Play(seed, true)
		for _, object := range []string{"lease-1", "lease-1.request", "state"} {
			ops := operations(r.Operations, object)
			checked += len(ops)
			if result := porcupine.CheckOperationsTimeout(register, ops, 20*time.Second); result != porcupine.Ok {
				t.Errorf("seed %d: %d operations on %s: %s", seed, len(ops), object, result)
			}
		}
	}
	if checked < 10000 {
		t.Errorf("only %d operations", checked)
	}
	t.Logf("%d operations", checked)
}

// The specification can be violated: an answer that is moved makes it so.
func TestAHistoryThatIsNotLinearizableIsNoticed(t *testing.T) {
	for name, ops := range map[string][]*sim.Operation{
		"two writes on one state": {
			{Client: "a", Write: true, Token: 1, Done: true, Call: 1, Return: 2},
			{Client: "b", Write: true, Token: 2, Done: true, Call: 3, Return: 4},
		},
		"a stale read": {
			{Client: "a", Write: true, Token: 1, Done: true, Call: 1, Return: 2},
			{Client: "b", Done: true, Call: 3, Return: 4},
		},
		"a conflict with nobody": {
			{Client: "a", Write: true, Token: 1, Done: true, Call: 1, Return: 2},
			{Client: "b", Write: true, On: 1, Conflict: true, Done: true, Call: 3, Return: 4},
		},
		"an epoch that goes back": {
			{Client: "a", Write: true, Token: 1, Epoch: 2, Term: "x", Done: true, Call: 1, Return: 2},
			{Client: "b", Write: true, On: 1, Token: 2, Epoch: 1, Term: "y", Done: true, Call: 3, Return: 4},
		},
		"two terms of one epoch": {
			{Client: "a", Write: true, Token: 1, Epoch: 2, Term: "x", Done: true, Call: 1, Return: 2},
			{Client: "b", Write: true, On: 1, Token: 2, Epoch: 2, Term: "y", Done: true, Call: 3, Return: 4},
		},
		"a write that was refused and landed": {
			{Client: "a", Write: true, Token: 1, Done: true, Call: 1, Return: 2},
			{Client: "a", Write: true, On: 1, Conflict: true, Done: true, Call: 3, Return: 4},
			{Client: "b", Token: 2, Done: true, Call: 5, Return: 6},
		},
	} {
		for _, op := range ops {
			op.Object = "state"
		}
		if result := porcupine.CheckOperationsTimeout(register, operations(ops, "state"), time.Second); result != porcupine.Illegal {
			t.Errorf("%s: %s", name, result)
		}
	}
}
