package sim

import (
	"strconv"

	"github.com/sf2loki/sf2loki-ha/cas"
)

// Operation is one request on an object, as its caller saw it.
type Operation struct {
	Client string
	Object string
	Write  bool
	// On is the state that a write is made on, Token the one it makes or a read
	// found: 0 is absence. A write that nobody knows the outcome of has the token of
	// the state it made, if it ever was applied.
	On, Token int
	// Conflict: the condition was false. Done: there was a definite answer.
	Conflict, Done bool
	Call, Return   int64
	// Epoch and Term are those of the lease or the fence that a write carries.
	Epoch int64
	Term  string

	replay bool // the answer is that to a replay of it
}

func (op *Operation) notItsOwn() {
	if op != nil {
		op.replay = true
	}
}

// begins records a request, if that is asked for.
func (w *world) begins(q request) *Operation {
	if !w.logging {
		return nil
	}
	op := &Operation{Client: q.task.p.name, Object: q.object, Write: q.write, On: token(cas.Version(q.on)), Call: w.now}
	w.ops = append(w.ops, op)
	return op
}

// ends records its answer.
func (w *world) ends(op *Operation, a answer) {
	if op == nil {
		return
	}
	op.Return = w.now
	switch class := cas.ClassOf(a.err); {
	case op.replay: // nobody was told of the request itself
	case class == "" && op.Write:
		op.Done, op.Token = true, token(a.version)
	case class == "":
		op.Done, op.Token = true, token(a.value.Version)
	case class == cas.NotFound:
		op.Done = true
	case class == cas.Conflict:
		op.Done, op.Conflict = true, true
	}
}

// wrote records what somebody did who asks for no condition.
func (w *world) wrote(r *register) {
	if w.logging {
		w.ops = append(w.ops, &Operation{Client: "operator", Object: r.name, Write: true, On: -1, Token: token(r.now.version), Done: true, Call: w.now, Return: w.now})
	}
}

func token(v cas.Version) int {
	n, _ := strconv.Atoi(string(v)[min(1, len(v)):])
	return n
}
