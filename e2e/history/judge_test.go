package history

import (
	"bytes"
	"flag"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sf2loki/sf2loki-ha/coordinator"
	"github.com/sf2loki/sf2loki-ha/e2e/cluster"
	"github.com/sf2loki/sf2loki-ha/e2e/faultproxy"
)

func TestASoundHistoryHasNoProblemAndItsFigures(t *testing.T) {
	s := sample()
	r := judge(t, &s.h)
	for _, p := range r.Problems {
		t.Error(p)
	}
	f := r.Figures
	if f.Terms != 3 || f.Takeovers != 2 || f.Seals != 3 || f.Kills != 1 || f.Freezes != 1 || f.Duplicates != 4 || f.AfterThaw != 1 || f.Unanswered != 1 || f.Acts != len(s.h.Acts) || f.Dark < ttl || f.Dark > ttl+100*time.Millisecond {
		t.Errorf("%+v", f)
	}
}

// Each way to break a history is found, under its own rule.
func TestABrokenHistoryIsJudgedBroken(t *testing.T) {
	for name, tt := range map[string]struct {
		breaks func(*script)
		rules  []string
	}{
		"a record is missing": {func(s *script) { s.h.Acts = slices.DeleteFunc(s.h.Acts, func(a cluster.Act) bool { return a.N == 40 }) }, []string{"gap"}},
		"an epoch is used twice": {func(s *script) {
			x := s.renew("B", 3, coordinator.Held)
			x.Document.Term = "another"
		}, []string{"I2", "linearizable"}},
		"an epoch goes back":                      {func(s *script) { s.renew("B", 1, coordinator.Held).Document.Term = "another" }, []string{"I2", "linearizable"}},
		"a former term writes the lease":          {func(s *script) { s.renew("B", 2, coordinator.Held) }, []string{"I2", "linearizable"}},
		"a former term writes beside the new one": {func(s *script) { s.renew("B", 4, coordinator.Held); s.renew("A", 3, coordinator.Held) }, []string{"I2", "linearizable"}},
		"a former term seals again":               {func(s *script) { s.seal("B", 2) }, []string{"I3", "linearizable"}},
		"a released term holds again":             {func(s *script) { s.renew("A", 3, coordinator.Held) }, []string{"I2"}},
		"a term changes its epoch":                {func(s *script) { s.renew("A", 4, coordinator.Held).Document.Term = termOf(3) }, []string{"I2"}},
		"two replicas share a term":               {func(s *script) { s.renew("B", 3, coordinator.Released) }, []string{"I2"}},
		"the lease becomes something else": {func(s *script) {
			s.write("A", leaseKey, faultproxy.Document{Kind: "checkpoint", Epoch: 3, Term: termOf(3)})
		}, []string{"I2"}},
		"a commit of a former term is accepted": {func(s *script) {
			s.fence.Epoch, s.fence.Term = 2, termOf(2)
			s.commit("B", 2)
		}, []string{"I3", "linearizable"}},
		"a canary of a former term commits under the new seal": {func(s *script) {
			s.n++
			s.commit("A", 2)
		}, []string{"I3"}},
		"a seal without the lease": {func(s *script) { s.seal("B", 4) }, []string{"I3"}},
		"a seal before the lease": {func(s *script) {
			s.seal("B", 4)
			s.renew("B", 4, coordinator.Held)
		}, []string{"I3"}},
		"a seal by the other replica": {func(s *script) { s.renew("B", 4, coordinator.Held); s.seal("A", 4) }, []string{"I3"}},
		"a seal moves the position": {func(s *script) {
			s.renew("B", 4, coordinator.Held)
			s.fence.Position = &faultproxy.Position{N: 1000, Epoch: 3}
			s.seal("B", 4)
		}, []string{"I3"}},
		"a position goes back":         {func(s *script) { s.n = 5; s.commit("A", 3) }, []string{"I6", "linearizable"}},
		"a checkpoint disappears":      {func(s *script) { s.commit("A", 3).Document.Keys = 1 }, []string{"I6"}},
		"the document becomes a lease": {func(s *script) { s.write("A", docKey, faultproxy.Document{Kind: "lease", Epoch: 3, Term: termOf(3)}) }, []string{"I3", "linearizable"}},
		"the document is deleted": {func(s *script) {
			x := s.write("A", docKey, faultproxy.Document{})
			x.Op, x.Document = faultproxy.Delete, nil
		}, []string{"order", "I3", "linearizable"}},
		"a write has no condition":          {func(s *script) { x := s.commit("A", 3); x.Op, x.Condition = faultproxy.Put, "" }, []string{"order", "linearizable"}},
		"two writes on one version":         {func(s *script) { v := s.version[docKey]; s.commit("A", 3); s.commit("A", 3).Condition = v }, []string{"order", "linearizable"}},
		"a write on a version of nobody":    {func(s *script) { s.commit("A", 3).Condition = "vX" }, []string{"order", "linearizable"}},
		"two canaries act at once":          {func(s *script) { s.repeat("B", 2, s.n) }, []string{"I1", "I4"}},
		"two canaries of one term":          {func(s *script) { s.repeat("A", 3, s.n); s.h.Acts[len(s.h.Acts)-1].PID++; s.repeat("A", 3, s.n) }, []string{"I1"}},
		"old work acts too long after thaw": {func(s *script) { s.event("B", Thaw, true); s.pass(AfterThaw); s.repeat("B", 2, s.n) }, []string{"I1", "I4"}},
		"old work acts after a freeze of the supervisor alone": {func(s *script) {
			s.event("B", Thaw, false)
			s.repeat("B", 2, s.n)
		}, []string{"I1", "I4"}},
		"work acts on without a lease": {func(s *script) { s.pass(ttl); s.repeat("A", 3, s.n) }, []string{"I4"}},
		"work acts before the seal":    {func(s *script) { s.renew("B", 4, coordinator.Held); s.repeat("B", 4, s.n); s.seal("B", 4) }, []string{"I3"}},
		"work of no term":              {func(s *script) { s.repeat("B", 9, s.n) }, []string{"I1"}},
		"a load shows an old version": {func(s *script) {
			v := s.version[docKey]
			s.commit("A", 3)
			s.load("B", docKey).Version = v
		}, []string{"linearizable"}},
		"an object vanishes for a load": {func(s *script) { s.load("B", docKey).Version = faultproxy.Absent }, []string{"linearizable"}},
		"a conflict on the current version": {func(s *script) {
			s.refuse("B", docKey, s.version[docKey])
		}, []string{"linearizable"}},
		"a write that was not told is not there": {func(s *script) {
			s.commit("A", 3).Told = 0
			v := s.version[docKey]
			x := s.commit("A", 3)
			x.Condition = "v1"
			s.load("A", docKey).Version = v
		}, []string{"order", "linearizable"}},
		"data of another version": {func(s *script) {
			s.load("B", docKey).Document = &faultproxy.Document{Kind: "checkpoint", WriteID: "w1"}
		}, []string{"linearizable"}},
	} {
		t.Run(name, func(t *testing.T) {
			s := sample()
			tt.breaks(s)
			r := judge(t, &s.h)
			found := rules(r)
			for _, rule := range tt.rules {
				if !found[rule] {
					t.Errorf("%s is not found: %v", rule, r.Problems)
				}
				delete(found, rule)
			}
			if len(found) > 0 {
				t.Errorf("more than %v is found: %v", tt.rules, r.Problems)
			}
		})
	}
}

// What a proxy does must not look like a fault of the replicas.
func TestFaultsOfTheNetworkAreNoProblem(t *testing.T) {
	for name, happens := range map[string]func(*script){
		"a write whose answer is lost": func(s *script) { s.commit("A", 3).Told = 0; s.load("A", docKey); s.commit("A", 3) },
		"a lost write that lands after later reads": func(s *script) {
			v := s.version[docKey]
			at := s.now
			s.commit("A", 3).Told = 0
			x := s.load("B", docKey)
			x.Version, x.Arrived = v, at
			s.load("B", docKey)
		},
		"a write that never arrived": func(s *script) {
			v := s.version[docKey]
			x := s.commit("A", 3)
			x.Applied, x.Told, x.Answered, x.Sent, x.Version, x.Status = faultproxy.No, 0, 0, 0, "", 0
			s.version[docKey] = v
			s.commit("A", 3)
		},
		"a refused write": func(s *script) {
			x := s.refuse("A", docKey, s.version[docKey])
			x.Status, x.Sent, x.Answered = 503, 0, 0
		},
		"a replay": func(s *script) {
			x := *s.commit("A", 3)
			again := s.refuse("A", docKey, x.Condition)
			again.Of, again.Told = x.ID, 0
		},
		"a write of which the proxy knows nothing, which landed": func(s *script) {
			x := s.commit("A", 3)
			x.Applied, x.Told, x.Answered, x.Version = faultproxy.Unknown, 0, 0, ""
			l := s.load("A", docKey)
			l.Document = x.Document
			s.commit("A", 3)
		},
		"a write of which nobody knows": func(s *script) {
			v := s.version[docKey]
			x := s.commit("A", 3)
			x.Applied, x.Told, x.Answered, x.Version = faultproxy.Unknown, 0, 0, ""
			s.version[docKey] = v
			s.load("A", docKey)
			s.commit("A", 3)
		},
		"a torn load": func(s *script) {
			s.h.Run.Torn = true
			s.load("B", docKey).Document = &faultproxy.Document{Kind: "checkpoint", WriteID: "w1"}
		},
		"a thaw on a machine that is late": func(s *script) {
			s.event("B", Thaw, true).Lag = 100 * time.Millisecond
			s.pass(AfterThaw)
			s.repeat("B", 2, s.n)
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := sample()
			happens(s)
			for _, p := range judge(t, &s.h).Problems {
				t.Error(p)
			}
		})
	}
}

// Many writes without an answer must not make the search endless.
func TestALongHistoryIsJudgedSoon(t *testing.T) {
	s := sample()
	s.renew("A", 3, coordinator.Released)
	s.pass(ttl)
	s.term("B", 4)
	for i := range 3000 {
		x := s.commit("B", 4)
		if i%7 == 0 {
			x.Told = 0
		}
		if i%11 == 0 {
			s.refuse("A", docKey, "v3")
		}
		s.load("A", docKey)
		s.renew("B", 4, coordinator.Held)
	}
	begun := time.Now()
	for _, p := range judge(t, &s.h).Problems {
		t.Error(p)
	}
	if took := time.Since(begun); took > 30*time.Second {
		t.Errorf("judged in %v", took)
	}
}

var kept = flag.String("history", "", "a file that a run left: it is judged instead of the sample")

func TestAHistoryOnDiskIsJudgedAsItWas(t *testing.T) {
	s := sample()
	s.commit("A", 3).Condition = "vX"
	var file bytes.Buffer
	if err := s.h.Write(&file); err != nil {
		t.Fatal(err)
	}
	h, err := Read(bytes.NewReader(file.Bytes()))
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(*h, s.h) {
		t.Error("another history was read than written")
	}
	if got, want := judge(t, h), judge(t, &s.h); !reflect.DeepEqual(got, want) || len(got.Problems) == 0 {
		t.Errorf("judged as\n%+v, was\n%+v", got, want)
	}
	if _, err := Read(strings.NewReader("{\"act\":")); err == nil {
		t.Error("half a file was read")
	}
	if *kept == "" {
		return
	}
	f, err := os.Open(*kept)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if h, err = Read(f); err != nil {
		t.Fatal(err)
	}
	r := judge(t, h)
	t.Log(r.Figures)
	for _, p := range r.Problems {
		t.Errorf("%v\n%s", p, h.Timeline(p.At, 3*time.Second, time.Second))
	}
}

func TestTheTimelineShowsWhatHappenedAroundAnInstant(t *testing.T) {
	s := sample()
	s.commit("A", 3)
	x := s.h.Exchanges[len(s.h.Exchanges)-1]
	lines := s.h.Timeline(x.Arrived, 200*time.Millisecond, 10*time.Millisecond)
	for _, want := range []string{"B thaw", "A replace state.json", "+0.000s", "record"} {
		if !strings.Contains(s.h.Timeline(x.Arrived, 2*time.Second, 10*time.Millisecond), want) {
			t.Errorf("%q is missing", want)
		}
	}
	if strings.Contains(lines, "A start") {
		t.Errorf("the start does not belong here:\n%s", lines)
	}
}
