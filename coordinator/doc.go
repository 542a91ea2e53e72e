// Package coordinator elects one leader among replicas that share nothing but
// one conditionally written object, and runs a function only while this replica
// leads.
//
//	e, err := coordinator.New(coordinator.FromRegister(register), coordinator.Config{Identity: "task-1"})
//	err = e.Run(ctx, func(ctx context.Context, t *coordinator.Term) error {
//		// ctx ends when the work has to stop; return by t.KillAt().
//	})
//
// # What it guarantees
//
// At most one term is valid at any instant, as long as the machines' clocks
// tick at nearly the same rate (Config.Drift, 1 % by default). Wall-clock
// offsets and steps, lost answers, slow stores and partitions do not matter:
//
//   - A holder counts its lease from before the send of the write that landed,
//     less the drift; an observer waits a whole ttl from after the receive of
//     the first read that showed the state it claims. Both err towards "nobody
//     leads". No time stamp of another machine is ever compared with a clock.
//   - Every write carries one condition. A clean conflict is a loss, at once. A
//     conflict after an attempt without a definite answer is a question, and is
//     settled by reading and comparing the ids of all attempts.
//   - A lease is released by writing a tombstone, after lead has returned. The
//     object is never deleted and its epoch never goes back.
//   - Not knowing is not absence: only a definite "this key does not exist" can
//     be claimed, and it has to stand for a whole window like any other state.
//
// Epochs strictly increase while the object exists. With [WithFence] they also
// exceed every epoch that ever sealed the checkpoint document, so that a
// deleted lease does not set them back.
//
// With [WithRequests] a second object beside the lease carries what people ask
// for: a hold, during which nobody leads; a step-down of one term or process; and
// a handover to a replica of a new revision. Nobody claims without having read
// it in the same attempt. Crash back-off spans the replicas: it is in the record.
//
// # What it does not guarantee
//
// The election cannot stop work that ignores its context: the claim holds if
// lead returns when its context ends, by [Term.KillAt]. Between a check and an
// act any process may be frozen, so a resource that must never see two writers
// has to compare the term (epoch and id) itself, as package checkpoint does.
// While the store is unreachable the leader stops at its deadline although
// nobody can take over. A store that ignores conditions breaks everything.
//
// # How it is built
//
// machine.go, candidate.go, leader.go, release.go, ask.go and handover.go are the
// pure decision: a state and an input give a new state and actions. elector.go feeds it with
// time and answers and performs the actions; requests run beside its loop, so
// that a deadline passes even while a call hangs.
package coordinator
