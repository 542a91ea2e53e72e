package history

import (
	"cmp"
	"slices"
	"time"

	"github.com/sf2loki/sf2loki-ha/e2e/cluster"
	"github.com/sf2loki/sf2loki-ha/e2e/faultproxy"
	"github.com/sf2loki/sf2loki-ha/internal/boottime"
)

// AfterThaw is how long old work may act after the end of a freeze of its whole
// replica.
const AfterThaw = 200 * time.Millisecond

// process is the work of one replica, once started.
type process struct {
	replica string
	pid     int
	term    string
	epoch   int64
}

// acts judges by the acts alone, and the terms they were done in.
func (j *judgement) acts(lease []faultproxy.Exchange, terms map[string]*term, seals map[string]boottime.Instant) {
	acts := slices.Clone(j.h.Acts)
	slices.SortStableFunc(acts, func(a, b cluster.Act) int { return cmp.Compare(a.Boot, b.Boot) })
	first := map[process]int64{}
	for _, a := range acts {
		if p := processOf(a); first[p] == 0 {
			first[p] = a.Boot
		}
	}
	told := map[string]bool{} // one problem a kind and process
	complain := func(rule string, p process, a cluster.Act, format string, args ...any) {
		if key := rule + p.term + p.replica; !told[key] {
			told[key] = true
			j.problem(rule, boottime.Instant(a.Boot), format, args...)
		}
	}
	renewals := map[string][]boottime.Instant{}
	for _, x := range lease {
		if x.Document != nil {
			renewals[x.Document.Term] = append(renewals[x.Document.Term], x.Arrived)
		}
	}
	for i, a := range acts {
		if i > 0 {
			j.report.Figures.Dark = max(j.report.Figures.Dark, time.Duration(a.Boot-acts[i-1].Boot))
		}
		p := processOf(a)
		// Before its term began.
		if t := terms[p.term]; t == nil || t.epoch != p.epoch || t.replica != p.replica {
			complain("I1", p, a, "%s acted as epoch %d, which it never had: record %d", p.replica, p.epoch, a.N)
			continue
		}
		if sealed := seals[p.term]; sealed == 0 || boottime.Instant(a.Boot) < sealed {
			complain("I3", p, a, "epoch %d acted before it had sealed the document: record %d", p.epoch, a.N)
		}
		// After its term was over.
		excused := j.justThawed(a)
		if newer, since := newest(first, p, a.Boot); newer != nil {
			if excused {
				j.report.Figures.AfterThaw++
			} else {
				complain("I1", p, a, "%s acted as epoch %d %v after %s had begun to act as epoch %d: record %d", p.replica, p.epoch, since, newer.replica, newer.epoch, a.N)
			}
		}
		var sent boottime.Instant
		for _, at := range renewals[p.term] {
			if at <= boottime.Instant(a.Boot) {
				sent = max(sent, at)
			}
		}
		if late := boottime.Instant(a.Boot).Sub(sent) - j.h.Run.TTL; late > 0 && !excused {
			complain("I4", p, a, "%s acted as epoch %d %v after the end of its lease: record %d", p.replica, p.epoch, late, a.N)
		}
	}
}

func processOf(a cluster.Act) process { return process{a.Replica, a.PID, a.Term, a.Epoch} }

// newest is a process that had acted before that instant and is newer than p: of a
// later term, or of the same one and started later.
func newest(first map[process]int64, p process, at int64) (*process, time.Duration) {
	for q, began := range first {
		if q != p && began < at && (q.epoch > p.epoch || q.epoch == p.epoch && began > first[p]) {
			return &q, time.Duration(at - began)
		}
	}
	return nil, 0
}

// justThawed reports whether the whole replica had been frozen until just before
// the act.
func (j *judgement) justThawed(a cluster.Act) bool {
	for _, e := range j.h.Events {
		if e.What == Thaw && e.Whole && e.Replica == a.Replica && a.Boot >= int64(e.At) && a.Boot <= int64(e.At.Add(AfterThaw+e.Lag)) {
			return true
		}
	}
	return false
}
