package coordinator

import (
	"sort"
	"strings"
	"testing"
	"time"

	"github.com/sf2loki/sf2loki-ha/cas"
)

// situations are the states of a machine, each with one request in flight.
// Every one of them meets every input of inputs: the table below has no empty
// cell.
var situations = map[string]func(b *bench){
	"standby, first read": func(b *bench) { b.tick(0) },
	"standby, read": func(b *bench) {
		b.tick(0)
		b.reads(Lease{Version: "v1", Record: held(4, "x")})
		b.tick(time.Second)
	},
	"standby, fence read": func(b *bench) {
		b.tick(0)
		b.reads(Lease{Version: "v1", Record: held(4, "x")})
		b.until(doAsk, 8*time.Second)
	},
	"standby, claim": func(b *bench) {
		b.tick(0)
		b.reads(Lease{Version: "v1", Record: held(4, "x")})
		b.claims()
	},
	"standby, claim in doubt, read": func(b *bench) {
		b.tick(0)
		b.reads(Lease{Version: "v1", Record: held(4, "x")})
		b.claims()
		b.fails(cas.Ambiguous)
		b.until(doRead, time.Second)
	},
	"standby, inquiry": func(b *bench) {
		b.m.hasRequests = true
		b.tick(0)
		b.reads(Lease{Version: "v1", Record: held(4, "x")})
		b.until(doAsk, 8*time.Second)
	},
	"standby on hold, request read": func(b *bench) {
		b.m.hasRequests = true
		b.tick(0)
		b.reads(Lease{Version: "v1", Record: held(4, "x")})
		b.until(doAsk, 8*time.Second)
		b.answer(input{fence: Fence{Epoch: 2, Found: true}, request: holdFor(time.Hour, 0)})
		b.until(doAsk, 2*time.Second)
	},
	"standby, rehearsal": func(b *bench) {
		b.m.hasRequests, b.m.rehearseFrom = true, 0
		b.tick(0)
		b.reads(Lease{Version: "v1", Record: held(4, "x")})
	},
	"standby, nomination": func(b *bench) {
		b.m.hasRequests, b.m.cfg.Revision = true, "r2"
		old := held(4, "x")
		old.Revision = "r1"
		b.tick(0)
		b.reads(Lease{Version: "v1", Record: old})
		b.answer(input{fence: Fence{Epoch: 2, Found: true}})
	},
	"leading, request read": func(b *bench) {
		b.m.hasRequests = true
		b.leads()
		b.until(doWrite, 3*time.Second)
		b.answer(input{version: "v2"})
	},
	"draining (hold), renewal": func(b *bench) {
		b.m.hasRequests = true
		b.leads()
		b.until(doAsk, 3*time.Second)
		b.answer(input{request: holdFor(time.Hour, 0)})
	},
	"leading, renewal": func(b *bench) { b.leads(); b.until(doWrite, 3*time.Second) },
	"leading in doubt, renewal": func(b *bench) {
		b.leads()
		b.until(doWrite, 3*time.Second)
		b.fails(cas.Ambiguous)
		b.until(doWrite, time.Second)
	},
	"leading in doubt, settling read": func(b *bench) { b.questioned() },
	"draining (stop), renewal": func(b *bench) {
		b.leads()
		b.step(input{kind: inStop, reason: "shutdown", final: true})
	},
	"draining (expired), renewal": func(b *bench) {
		b.leads()
		b.until(doWrite, 3*time.Second)
		b.now = b.m.term.stopAt.Add(-10 * time.Millisecond)
		b.m.op.giveUp = b.now.Add(time.Hour) // a call that ignores its deadline
		b.tick(20 * time.Millisecond)
	},
	"draining (lost), nothing": func(b *bench) {
		b.leads()
		b.until(doWrite, 3*time.Second)
		b.fails(cas.Conflict)
	},
	"releasing, tombstone": func(b *bench) { b.leads(); b.tick(time.Second); b.step(input{kind: inWorkEnded}) },
	"releasing in doubt, settling read": func(b *bench) {
		b.leads()
		b.tick(time.Second)
		b.step(input{kind: inWorkEnded})
		b.fails(cas.Ambiguous)
		b.until(doWrite, time.Second)
		b.fails(cas.Conflict)
		b.until(doRead, time.Second)
	},
}

// inputs are what may happen. "ours" and "theirs" are successful answers: the
// record of the attempt in doubt, or of the write in flight, and a foreign one.
var inputs = map[string]func(b *bench){
	"ours": func(b *bench) { b.success(true) }, "theirs": func(b *bench) { b.success(false) },
	"silence": func(b *bench) {
		if b.m.op != nil {
			b.now = b.m.op.giveUp
		}
		b.tick(0)
	},
	"stop":         func(b *bench) { b.step(input{kind: inStop, reason: "shutdown", final: true}) },
	"step-down":    func(b *bench) { b.step(input{kind: inStop, reason: "asked"}) },
	"work ends":    func(b *bench) { b.step(input{kind: inWorkEnded}) },
	"work fails":   func(b *bench) { b.step(input{kind: inWorkFailed}) },
	"work settles": func(b *bench) { b.step(input{kind: inWorkSettled}) },
	"freeze":       func(b *bench) { b.tick(time.Hour) },
}

func init() {
	for _, c := range cas.Classes() {
		inputs[string(c)] = func(b *bench) {
			if b.m.op != nil {
				b.fails(c)
			} else {
				b.tick(0)
			}
		}
	}
}

// claims brings a standby to its claim.
func (b *bench) claims() {
	b.until(doAsk, 8*time.Second)
	b.answer(input{fence: Fence{Epoch: 2, Found: true}})
}

func (b *bench) questioned() {
	b.leads()
	b.until(doWrite, 3*time.Second)
	b.fails(cas.Ambiguous)
	b.until(doWrite, time.Second)
	b.fails(cas.Conflict)
	b.until(doRead, time.Second)
}

// success answers the request in flight.
func (b *bench) success(ours bool) {
	op := b.m.op
	switch {
	case op == nil:
		b.tick(0)
	case op.kind == opAsk && ours:
		b.answer(input{fence: Fence{Epoch: 2, Found: true}})
	case op.kind == opAsk:
		// Somebody asks that nobody leads.
		b.answer(input{fence: Fence{Epoch: 2, Found: true}, request: holdFor(time.Minute, 0)})
	case op.kind == opWrite:
		b.answer(input{version: "written"})
	case ours && b.m.doubt != nil:
		b.reads(Lease{Version: "landed", Record: b.m.doubt.attempts[0].rec})
	default:
		b.reads(Lease{Version: "foreign", Record: held(9, "stranger")})
	}
}

// outcome is what the table compares: the phase, whether the work was told to
// end (and "now" if without grace), and the request that is in flight.
func (b *bench) outcome() string {
	words := []string{[]string{"standby", "leading", "draining", "releasing", "finished"}[b.m.phase]}
	for _, a := range b.last {
		if a.kind == doEnd || a.kind == doExtend && a.cause != nil {
			words = append(words, "end")
			if a.killAt <= b.now {
				words = append(words, "now")
			}
		}
		if a.kind == doStart {
			words = append(words, "start")
		}
	}
	if b.m.op != nil {
		words = append(words, map[string]string{"read": "read", "fence": "fence", "request": "request", "inquire": "inquiry", "nominate": "nomination", "create": "write", "replace": "write", "release": "tombstone"}[opName(b.m.op)])
	}
	return strings.Join(words, " ")
}

func TestEverySituationMeetsEveryInput(t *testing.T) {
	seen := 0
	for _, situation := range keys(situations) {
		for _, in := range keys(inputs) {
			t.Run(situation+"/"+in, func(t *testing.T) {
				b := newBench(t, fast, true)
				situations[situation](b)
				b.last = nil
				inputs[in](b)
				want, ok := cells[situation][in]
				if !ok {
					t.Fatalf("an empty cell: the machine answers %q", b.outcome())
				}
				if got := b.outcome(); got != want {
					t.Errorf("got %q, want %q", got, want)
				}
			})
			seen++
		}
	}
	for situation, row := range cells {
		if len(row) != len(inputs) {
			t.Errorf("%s has %d cells, there are %d inputs", situation, len(row), len(inputs))
		}
	}
	if want := len(situations) * len(inputs); seen != want || len(cells) != len(situations) {
		t.Errorf("%d cells of %d, %d rows", seen, want, len(cells))
	}
}

func keys[V any](m map[string]V) []string {
	var list []string
	for k := range m {
		list = append(list, k)
	}
	sort.Strings(list)
	return list
}
