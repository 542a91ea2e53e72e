package history

import (
	"fmt"
	"math"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/sf2loki/sf2loki-ha/e2e/faultproxy"
	"github.com/sf2loki/sf2loki-ha/internal/boottime"
)

// forever is the end of an operation that was not answered.
const forever = math.MaxInt64

// object is the state of a register.
type object struct {
	version string
	epoch   int64
	term    string
	n       int64
}

// outcome is what is known of an operation.
type outcome int

const (
	loaded   outcome = iota
	accepted         // it had its effect
	conflict         // its condition was false
	perhaps          // nobody knows, and no load showed it
)

// operation is one operation on a register.
type operation struct {
	outcome   outcome
	condition string
	result    object // what was written, or loaded
	id        int
}

func (o operation) String() string {
	switch o.outcome {
	case loaded:
		return fmt.Sprintf("#%d load: %.8s", o.id, o.result.version)
	case conflict:
		return fmt.Sprintf("#%d write on %.8s: conflict", o.id, o.condition)
	}
	return fmt.Sprintf("#%d write on %.8s: %.8s, epoch %d", o.id, o.condition, o.result.version, o.result.epoch)
}

// register is the specification: one object under conditional writes, whose epoch
// goes up and whose position does not go back.
var register = porcupine.Model{
	Init: func() any { return object{version: faultproxy.Absent} },
	Step: func(state, input, _ any) (bool, any) {
		s, op := state.(object), input.(operation)
		switch op.outcome {
		case loaded:
			return s.version == op.result.version, s
		case conflict:
			return s.version != op.condition, s
		case perhaps:
			if s.version == op.condition && s.mayBecome(op.result) {
				return true, op.result
			}
			return true, s
		}
		return s.version == op.condition && s.mayBecome(op.result), op.result
	},
	DescribeOperation: func(input, _ any) string { return input.(operation).String() },
	DescribeState: func(state any) string {
		s := state.(object)
		return fmt.Sprintf("%.8s, epoch %d, record %d", s.version, s.epoch, s.n)
	},
}

// mayBecome: a new term has a higher epoch, and records are not taken back.
func (s object) mayBecome(next object) bool {
	return (next.term == s.term && next.epoch == s.epoch || next.epoch > s.epoch) && next.n >= s.n
}

func objectOf(x faultproxy.Exchange) object {
	o := object{version: x.Version}
	if d := x.Document; d != nil {
		o.epoch, o.term, o.n = d.Epoch, d.Term, position(*d).N
	}
	return o
}

// operations are the operations of callers on one object, from the arrival of the
// request to the answer as they got it. Without one an operation that had an effect
// has no end, and one that had none is left out, as are reads.
func operations(all []faultproxy.Exchange, key string) []porcupine.Operation {
	clients := map[string]int{}
	client := func(name string) int {
		if _, ok := clients[name]; !ok {
			clients[name] = len(clients)
		}
		return clients[name]
	}
	var ops []porcupine.Operation
	for _, x := range all {
		if x.Key != key {
			continue
		}
		op := operation{condition: x.Condition, result: objectOf(x), id: x.ID}
		from, to, who := x.Arrived, x.Told, x.Replica
		if x.Of != 0 { // a replay: the network is its caller
			from, to, who = x.Sent, x.Answered, "replays"
		}
		switch definite := to != 0; {
		case x.Op == faultproxy.Load && definite && x.Version != "":
			op.outcome = loaded
		case x.Applied == faultproxy.Yes:
			op.outcome = accepted
		case x.Applied == faultproxy.No && definite && isConflict(x):
			op.outcome = conflict
		case x.Applied == faultproxy.Unknown:
			op.outcome, to = perhaps, 0
		default:
			continue
		}
		end := int64(to)
		if to == 0 {
			end = forever
		}
		ops = append(ops, porcupine.Operation{ClientId: client(who), Input: op, Call: int64(from), Return: end})
	}
	return ops
}

// isConflict: the store says that the condition was false. S3 says so by a 404
// where the object is absent.
func isConflict(x faultproxy.Exchange) bool {
	return x.Status == 412 || x.Op == faultproxy.Replace && x.Status == 404
}

// register judges one object.
func (j *judgement) register(key string, limit time.Duration) {
	j.torn(key)
	ops := operations(j.exchanges, key)
	result, info := porcupine.CheckOperationsVerbose(register, ops, limit)
	switch result {
	case porcupine.Ok:
	case porcupine.Unknown:
		j.problem("linearizable", 0, "%s: no verdict on %d operations within %v", key, len(ops), limit)
	default:
		// The longest order that was found, and what could not follow it.
		var longest []porcupine.Operation
		for _, partition := range info.PartialLinearizationsOperations() {
			for _, order := range partition {
				if len(order) > len(longest) {
					longest = order
				}
			}
		}
		in := map[int]bool{}
		for _, op := range longest {
			in[op.Input.(operation).id] = true
		}
		var stuck *porcupine.Operation
		for i, op := range ops {
			if !in[op.Input.(operation).id] && (stuck == nil || op.Return < stuck.Return) {
				stuck = &ops[i]
			}
		}
		var at boottime.Instant
		text := "nothing"
		if stuck != nil {
			at, text = boottime.Instant(stuck.Call), stuck.Input.(operation).String()
		}
		after := "the beginning"
		if len(longest) > 0 {
			after = longest[len(longest)-1].Input.(operation).String()
		}
		j.problem("linearizable", at, "%s: of %d operations %d have an order; %s does not fit after %s", key, len(ops), len(longest), text, after)
	}
}

// torn counts loads whose data is not that of their version.
func (j *judgement) torn(key string) {
	made := map[string]faultproxy.Exchange{}
	for _, x := range j.exchanges {
		if x.Key == key && x.Applied == faultproxy.Yes {
			made[x.Version] = x
		}
	}
	for _, x := range j.exchanges {
		if x.Key != key || x.Op != faultproxy.Load || x.Document == nil {
			continue
		}
		if w, ok := made[x.Version]; ok && w.Document != nil && w.Document.WriteID != x.Document.WriteID {
			j.report.Figures.Torn++
			if !j.h.Run.Torn {
				j.problem("linearizable", x.Answered, "a load of %s shows other data than its version has: %s", key, brief(x))
			}
		}
	}
}
