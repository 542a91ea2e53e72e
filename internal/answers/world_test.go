package answers

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sf2loki/sf2loki-ha/coordinator"
	"github.com/sf2loki/sf2loki-ha/internal/wiretest"
)

// world is one lease behind the wire of one service. It honours conditions, and
// does to the writes of the one replica that uses it what a plan says.
type world struct {
	t       testing.TB
	service Service
	url     string

	clock clock // of the replica

	mu     sync.Mutex
	states []state // by number; 0 is the state at the start
	log    []arrival
	plan   []step
	lost   *write // a write that is under way and has not arrived
	loads  int    // until it arrives by itself; 0: with the next write
}

// state is one state of the lease.
type state struct {
	present bool
	doc     []byte
	lease   map[string]any // Kubernetes: the whole object
	// touched counts changes that are none of the lease: each has a
	// resourceVersion of its own.
	touched int
}

// write is what a request wants to write.
type write struct {
	sent  Sent
	lease map[string]any
}

// step is what happens to one write.
type step struct {
	before func(*world) // just before the condition is checked
	lose   bool         // not applied
	land   bool         // not applied now, but later: when the next write arrives,
	loads  int          // or at this load after it
	after  func(*world) // just after
	// say is what is answered instead of the truth.
	say  func(w *world, truth wiretest.Answer, s Sent) wiretest.Answer
	gate func() // comes first of all
}

// arrival is a request, with when its answer was sent.
type arrival struct {
	what     string
	at       coordinator.Instant
	answered time.Time
}

func newWorld(t testing.TB, s Service, first *coordinator.Record) *world {
	w := &world{t: t, service: s, states: []state{{}}}
	if first != nil {
		w.put(*first)
	}
	w.url = wiretest.StartFunc(t, w.serve).URL()
	return w
}

// now is the newest state. The caller holds the lock, or nobody else is there yet.
func (w *world) now() *state { return &w.states[len(w.states)-1] }

// put writes a record, as somebody else.
func (w *world) put(r coordinator.Record) {
	w.states = append(w.states, state{present: true, doc: []byte(Text(r)), lease: KubeLease(r, "")})
}

// token is the version of a state on the wire.
func (w *world) token(n int) string {
	switch w.service {
	case S3:
		return fmt.Sprintf(`"state-%d"`, n)
	case GCS:
		return strconv.Itoa(1000 + n)
	default:
		return strconv.Itoa(10*n + w.states[n].touched)
	}
}

// name is "@3" for the token of the third state, "@3'" for a former
// resourceVersion of it that was touched once.
func (w *world) name(token string) string {
	for n := range w.states {
		if w.service != K8s && w.token(n) == token {
			return fmt.Sprintf("@%d", n)
		}
	}
	if rv, err := strconv.Atoi(token); err == nil && w.service == K8s {
		return fmt.Sprintf("@%d", rv/10) + strings.Repeat("'", rv%10)
	}
	return "@" + token
}

func (w *world) serve(r wiretest.Request) wiretest.Answer {
	sent, err := w.service.Understand(r)
	if err != nil {
		w.t.Errorf("a request that the service would read in another way: %v", err)
		return Bare(400)
	}
	var st step
	w.mu.Lock()
	if sent.Op != Load && len(w.plan) > 0 {
		st, w.plan = w.plan[0], w.plan[1:]
	}
	w.log = append(w.log, arrival{what: w.describe(sent), at: w.clock.Now()})
	n := len(w.log) - 1
	w.mu.Unlock()
	if st.gate != nil {
		st.gate()
	}

	w.mu.Lock()
	defer w.mu.Unlock()
	a := w.answer(write{sent, body(w.service, r)}, st)
	w.log[n].answered = time.Now()
	return a
}

// describe reads "load", "create", "replace @1", "release @1".
func (w *world) describe(s Sent) string {
	op := s.Op
	if rec, err := coordinator.ParseRecord(s.Doc); err == nil && rec.State == coordinator.Released {
		op = "release"
	}
	if s.Op == Replace {
		op += " " + w.name(s.Condition)
	}
	return op
}

// answer does what a step says. The caller holds the lock.
func (w *world) answer(r write, st step) wiretest.Answer {
	if r.sent.Op == Load {
		if w.lost != nil && w.loads > 0 {
			if w.loads--; w.loads == 0 {
				w.arrive()
			}
		}
		return w.show(200)
	}
	w.arrive()
	if st.before != nil {
		st.before(w)
	}
	var truth wiretest.Answer
	switch {
	case st.land:
		w.lost, w.loads = &r, st.loads
	case !st.lose:
		truth = w.apply(r)
	}
	if st.after != nil {
		st.after(w)
	}
	if st.say != nil {
		return st.say(w, truth, r.sent)
	}
	return truth
}

// arrive lets the write that was under way land.
func (w *world) arrive() {
	if w.lost != nil {
		w.apply(*w.lost)
		w.lost = nil
	}
}

// apply writes if the condition holds, and answers with the truth.
func (w *world) apply(r write) wiretest.Answer {
	at := w.now()
	holds := r.sent.Condition == Absent && !at.present || at.present && r.sent.Condition == w.token(len(w.states)-1)
	if !holds {
		return w.refuse(r.sent, at.present)
	}
	w.states = append(w.states, state{present: true, doc: r.sent.Doc, lease: r.lease})
	token := w.token(len(w.states) - 1)
	switch w.service {
	case S3:
		return s3Stored(token)
	case GCS:
		return gcsStored(token)
	default:
		return w.show(map[string]int{Create: 201, Replace: 200}[r.sent.Op])
	}
}

// refuse is the true answer to a condition that does not hold.
func (w *world) refuse(s Sent, present bool) wiretest.Answer {
	switch {
	case w.service == S3 && !present:
		return Say(S3, Replace, NoKey)
	case w.service == K8s && s.Op == Create:
		return Say(K8s, Create, ConditionFalse)
	case w.service == K8s: // also where it is gone: its uid does not fit
		return kube409
	}
	return Say(w.service, s.Op, ConditionFalse)
}

// show is the object as a read, or a write of Kubernetes, shows it.
func (w *world) show(code int) wiretest.Answer {
	at, token := w.now(), w.token(len(w.states)-1)
	switch {
	case !at.present:
		return Say(w.service, Load, NoKey)
	case w.service == S3:
		return s3Object(token, string(at.doc))
	case w.service == GCS:
		return gcsObject(token, string(at.doc))
	}
	m := at.lease["metadata"].(map[string]any)
	m["uid"], m["resourceVersion"] = KubeUID, token
	return KubeObject(code, at.lease)
}

// body is the Lease that a write to Kubernetes carries.
func body(s Service, r wiretest.Request) map[string]any {
	var o map[string]any
	if s == K8s && len(r.Body) > 0 {
		d := json.NewDecoder(strings.NewReader(string(r.Body)))
		d.UseNumber()
		_ = d.Decode(&o) // Understand has read it
	}
	return o
}

// arm makes a plan for the writes from now on, and forgets what arrived.
func (w *world) arm(plan ...step) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.plan, w.log = plan, nil
}

// arrivals are the requests since then, one word for each run of loads. Loads
// before the first write are polls, and left out.
func (w *world) arrivals() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	var out []string
	for _, a := range w.log {
		if a.what == Load && (len(out) == 0 || out[len(out)-1] == Load) {
			continue
		}
		out = append(out, a.what)
	}
	return strings.Join(out, ", ")
}

// closest is the shortest time between two writes since then.
func (w *world) closest() time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	least, last := time.Hour, coordinator.Instant(0)
	for _, a := range w.log {
		if a.what == Load {
			continue
		}
		if last != 0 {
			least = min(least, a.at.Sub(last))
		}
		last = a.at
	}
	return least
}

// requests is the number of requests since then.
func (w *world) requests() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.log)
}

// answered is when the last answer was sent.
func (w *world) answered() time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.log[len(w.log)-1].answered
}

// record is the lease as it is now; false if there is none.
func (w *world) record() (coordinator.Record, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	rec, err := coordinator.ParseRecord(w.now().doc)
	return rec, err == nil && w.now().present
}
