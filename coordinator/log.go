package coordinator

import (
	"context"
	"log/slog"

	"github.com/sf2loki/sf2loki-ha/cas"
	"github.com/sf2loki/sf2loki-ha/internal/lasting"
)

// LogTo returns an observer that writes one line per transition. A lost race is
// calm, an answer in doubt a warning, a fault that a person must fix an error;
// a fault that lasts is said once, again every five minutes, and once more when
// it is over.
func LogTo(l *slog.Logger) func(Event) {
	t := &troubleLog{log: l}
	return t.observe
}

// troubleLog remembers what it said, so that a lasting fault is one line.
type troubleLog struct {
	log     *slog.Logger
	trouble lasting.Troubles // by kind of request
	term    string           // the term last named as holder
	state   State
}

func (t *troubleLog) observe(e Event) {
	var args []any
	if e.Epoch != 0 {
		args = append(args, "epoch", e.Epoch)
	}
	for _, a := range []struct{ key, value string }{
		{"term", e.Term}, {"holder", e.Holder}, {"reason", e.Reason}, {"asked", e.Asked}, {"by", e.By}, {"op", e.Op}, {"class", string(e.Class)},
	} {
		if a.value != "" {
			args = append(args, a.key, a.value)
		}
	}
	switch {
	case e.Left <= 0:
	case e.Kind == Observed && e.Lease.Record.State == Released:
		// When it is claimed depends on what the attempt reads.
	case e.Kind == Observed:
		args = append(args, "claim_in", e.Left)
	case e.Kind == OnHold:
		args = append(args, "for", e.Left, "hint", "nobody leads until the hold is over or taken back")
	default:
		args = append(args, "kill_in", e.Left)
	}
	if e.Err != nil {
		args = append(args, "error", e.Err.Error())
	}
	switch e.Kind {
	case Requested:
		t.requested(e)
	case StoreFailed, WriteInDoubt:
		t.failed(e, args)
	case Observed:
		t.observed(e, args)
	case Renewed, ClaimLost:
		t.log.Debug(string(e.Kind), args...)
	case ReleaseFailed:
		if e.Class == cas.Conflict {
			// The work ended too late for a release; the other replica is not waiting.
			t.log.Info(string(e.Kind), append(args, "hint", "another replica has taken over already")...)
			return
		}
		t.log.Warn(string(e.Kind), append(args, "hint", "the lease runs out by itself; a standby waits one ttl")...)
	case RequestUnclear:
		t.log.Error(string(e.Kind), append(args, "hint", "what cannot be understood asks for nothing: see docs/requests.md, and write it again")...)
	case Lost, Expired, OnHold:
		t.log.Warn(string(e.Kind), args...)
	case WorkEnded:
		if e.Err == nil {
			t.log.Info(string(e.Kind), args...)
		} else {
			t.log.Error(string(e.Kind), args...)
		}
	case Overran:
		t.log.Error(string(e.Kind), append(args, "hint", "the work has not been reported gone in time: the supervisor woke late from a freeze, or a process cannot be killed; the guard kills without this process")...)
	default:
		t.log.Info(string(e.Kind), args...)
	}
}

// observed says who holds the lease; renewals of one term are not news.
func (t *troubleLog) observed(e Event, args []any) {
	switch {
	case e.Absent:
		t.log.Info("lease absent", "claim_in", e.Left)
	case e.Lease.Corrupt != nil:
		t.log.Error("lease corrupt", "error", e.Lease.Corrupt.Error(),
			"hint", "it counts as held until it stood unchanged for the window; then it is replaced")
	case e.Lease.Record.Term != t.term || e.Lease.Record.State != t.state:
		t.term, t.state = e.Lease.Record.Term, e.Lease.Record.State
		t.log.Info("lease observed", append(args, "state", string(t.state))...)
	}
}

// request names the kind of request an event is about: a read that works says
// nothing about writes that are denied.
func request(e Event) string {
	switch e.Op {
	case "read", "fence", "request", "inquire", "nominate":
		return e.Op
	}
	return "write"
}

// failed says each class of a trouble once, and again after a while.
func (t *troubleLog) failed(e Event, args []any) {
	level := slog.LevelError
	switch {
	case !t.trouble.News(request(e), string(e.Class), e.At):
		level = slog.LevelDebug
	case e.Class == cas.Ambiguous || e.Class == cas.Contended:
		level = slog.LevelWarn
	}
	t.log.Log(context.Background(), level, string(e.Kind), args...)
}

// requested notices that a trouble is over.
func (t *troubleLog) requested(e Event) {
	if e.Err != nil && e.Class != cas.NotFound && e.Class != cas.Conflict {
		return
	}
	if t.trouble.Calmed(request(e), e.At) {
		t.log.Info("store recovered", "op", request(e))
	}
}
