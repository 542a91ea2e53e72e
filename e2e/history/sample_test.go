package history

import (
	"fmt"
	"testing"
	"time"

	"github.com/sf2loki/sf2loki-ha/coordinator"
	"github.com/sf2loki/sf2loki-ha/e2e/cluster"
	"github.com/sf2loki/sf2loki-ha/e2e/faultproxy"
	"github.com/sf2loki/sf2loki-ha/internal/boottime"
)

const (
	leaseKey = "leader.lease"
	docKey   = "state.json"
	ttl      = 3 * time.Second
)

// script writes a history down, one step after the other.
type script struct {
	h       History
	now     boottime.Instant
	version map[string]string // of the two objects
	made    int
	n       int64 // last record acted
	fence   faultproxy.Document
}

func newScript() *script {
	return &script{
		h:   History{Run: Run{Backend: "sample", Seed: 1, Lease: leaseKey, Checkpoints: docKey, TTL: ttl}},
		now: boottime.Instant(time.Hour), version: map[string]string{leaseKey: faultproxy.Absent, docKey: faultproxy.Absent},
	}
}

func (s *script) pass(d time.Duration) { s.now = s.now.Add(d) }

// exchange adds one that takes 10 ms and was told.
func (s *script) exchange(x faultproxy.Exchange) *faultproxy.Exchange {
	x.ID = len(s.h.Exchanges) + 1
	x.Arrived, x.Sent = s.now, s.now.Add(time.Millisecond)
	s.pass(10 * time.Millisecond)
	x.Answered, x.Told = s.now.Add(-2*time.Millisecond), s.now.Add(-time.Millisecond)
	s.h.Exchanges = append(s.h.Exchanges, x)
	return &s.h.Exchanges[len(s.h.Exchanges)-1]
}

// write writes on the current version and is accepted.
func (s *script) write(replica, key string, d faultproxy.Document) *faultproxy.Exchange {
	s.made++
	d.WriteID = fmt.Sprint("w", s.made)
	x := faultproxy.Exchange{Status: 200, Version: fmt.Sprint("v", s.made), Applied: faultproxy.Yes, Document: &d}
	x.Replica, x.Key, x.Op, x.Condition = replica, key, faultproxy.Replace, s.version[key]
	if x.Condition == faultproxy.Absent {
		x.Op = faultproxy.Create
	}
	s.version[key] = x.Version
	return s.exchange(x)
}

// refuse is a write on an old version.
func (s *script) refuse(replica, key, version string) *faultproxy.Exchange {
	x := faultproxy.Exchange{Status: 412, Applied: faultproxy.No, Document: &faultproxy.Document{}}
	x.Replica, x.Key, x.Op, x.Condition = replica, key, faultproxy.Replace, version
	return s.exchange(x)
}

func (s *script) load(replica, key string) *faultproxy.Exchange {
	x := faultproxy.Exchange{Status: 200, Version: s.version[key]}
	if x.Version == faultproxy.Absent {
		x.Status = 404
	}
	x.Replica, x.Key, x.Op = replica, key, faultproxy.Load
	return s.exchange(x)
}

func (s *script) renew(replica string, epoch int64, state coordinator.State) *faultproxy.Exchange {
	return s.write(replica, leaseKey, faultproxy.Document{Kind: "lease", Epoch: epoch, Term: termOf(epoch), State: state})
}

func termOf(epoch int64) string { return fmt.Sprint("term", epoch) }

func (s *script) seal(replica string, epoch int64) *faultproxy.Exchange {
	s.fence.Kind, s.fence.Epoch, s.fence.Term = "checkpoint", epoch, termOf(epoch)
	return s.write(replica, docKey, s.fence)
}

func (s *script) commit(replica string, epoch int64) *faultproxy.Exchange {
	s.fence.Keys, s.fence.Position = 2, &faultproxy.Position{N: s.n, Epoch: epoch, Term: termOf(epoch)}
	return s.write(replica, docKey, s.fence)
}

func (s *script) act(replica string, epoch int64, records int) {
	for range records {
		s.n++
		s.repeat(replica, epoch, s.n)
	}
}

func (s *script) repeat(replica string, epoch, n int64) {
	s.pass(20 * time.Millisecond)
	s.h.Acts = append(s.h.Acts, cluster.Act{N: n, Boot: int64(s.now), Epoch: epoch, Term: termOf(epoch), PID: int(epoch) + 100, Event: "record", Replica: replica})
}

func (s *script) event(replica, what string, whole bool) *Event {
	s.h.Events = append(s.h.Events, Event{At: s.now, Replica: replica, What: what, Whole: whole})
	return &s.h.Events[len(s.h.Events)-1]
}

// term is a replica's leadership from its acquisition to the middle of it.
func (s *script) term(replica string, epoch int64) {
	s.load(replica, leaseKey)
	s.renew(replica, epoch, coordinator.Held)
	s.seal(replica, epoch)
	s.act(replica, epoch, 20)
	s.commit(replica, epoch)
	s.renew(replica, epoch, coordinator.Held)
	s.act(replica, epoch, 10)
	s.commit(replica, epoch)
}

// sample is a sound run: A is killed, B takes over and is frozen, A takes over from
// it, and B comes back for a moment.
func sample() *script {
	s := newScript()
	s.load("A", leaseKey)
	s.event("A", Start, false)
	s.term("A", 1)
	s.event("A", Kill, false)
	s.pass(ttl)
	s.term("B", 2)
	s.act("B", 2, 3) // not committed
	s.n -= 3
	s.event("B", Freeze, true)
	s.pass(ttl)
	s.term("A", 3)
	s.event("B", Thaw, true)
	s.repeat("B", 2, s.n-10)
	s.refuse("B", docKey, "v5")
	s.act("A", 3, 10)
	s.commit("A", 3).Told = 0
	s.load("A", docKey)
	s.renew("A", 3, coordinator.Released)
	s.load("B", leaseKey)
	return s
}

func judge(t *testing.T, h *History) Report {
	t.Helper()
	return h.Judge(time.Minute)
}

func rules(r Report) map[string]bool {
	found := map[string]bool{}
	for _, p := range r.Problems {
		found[p.Rule] = true
	}
	return found
}
