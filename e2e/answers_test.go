//go:build linux

package e2e

import (
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sf2loki/sf2loki-ha/cas"
	"github.com/sf2loki/sf2loki-ha/e2e/cluster"
	"github.com/sf2loki/sf2loki-ha/internal/boottime"
	"github.com/sf2loki/sf2loki-ha/internal/proctree"
)

// atOnce is how soon after a clean conflict the work must be dead.
const atOnce = 100 * time.Millisecond

// thief takes the lease between a replica's renewal and its arrival at the store.
type thief struct {
	mu       sync.Mutex
	lease    cas.Register
	armed    bool
	err      error
	answered boottime.Instant // the 412 was sent, or 0
	after    []passed         // requests since then
}

type passed struct {
	what string
	at   boottime.Instant
}

const foreignRecord = `{"holder":"thief","expires_at":"2030-01-01T00:00:00Z","epoch":1000,"version":1,"incarnation":"thief","term":"t","write_id":"w","ttl_ms":6000,"renew_ms":2000,"state":"held"}`

// meets answers the first renewal after it was armed: the record has been
// overwritten on the very version that the renewal depends on, and so it says 412.
func (x *thief) meets(w http.ResponseWriter, r *http.Request) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.answered != 0 {
		x.after = append(x.after, passed{r.Method + " " + r.URL.Path, boottime.Now()})
		return false
	}
	version := r.Header.Get("If-Match")
	if !x.armed || isProbe(r) || r.Method != http.MethodPut || version == "" {
		return false
	}
	if _, x.err = x.lease.Replace(r.Context(), []byte(foreignRecord), cas.Version(version)); x.err != nil {
		return false
	}
	_, _ = io.Copy(io.Discard, r.Body)
	x.answered = boottime.Now()
	w.Header().Set("Content-Type", "application/xml")
	w.WriteHeader(http.StatusPreconditionFailed)
	_, _ = io.WriteString(w, "<Error><Code>PreconditionFailed</Code><Message>the condition does not hold</Message><Condition>If-Match</Condition></Error>")
	_ = http.NewResponseController(w).Flush()
	return true
}

func (x *thief) state() (answered boottime.Instant, after []passed, err error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.answered, append([]passed(nil), x.after...), x.err
}

func TestACleanConflictKillsTheWorkAtOnceWithNoFurtherRequest(t *testing.T) {
	x := &thief{}
	b := gateway(t, x.meets)
	x.lease = b.lease
	c := newCluster(t, b)
	r := start(t, c, "A")
	if !r.AwaitReady("ready", 40*time.Second) {
		t.Fatal("does not lead")
	}
	first, ok := c.History().Await(10*time.Second, func(cluster.Act) bool { return true })
	if !ok {
		t.Fatal("the canary does nothing")
	}
	work := []int{first.PID}
	all, err := proctree.List()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range proctree.Descendants(all, first.PID) {
		work = append(work, p.PID)
	}

	x.mu.Lock()
	x.armed = true
	x.mu.Unlock()
	gone, late := deaths(t, x, work)
	answered, after, err := x.state()
	if err != nil {
		t.Fatal(err)
	}
	took := gone.Sub(answered)
	t.Logf("%d processes were gone %v after the 412; it was looked for every 1 ms, at the worst after %v", len(work), took, late)
	if took > atOnce+late {
		t.Errorf("the work lived for %v after the 412, want %v and at most the %v between two looks", took, atOnce, late)
	}
	for _, p := range after {
		if p.at < gone {
			t.Errorf("%s %v before the work was gone", p.what, gone.Sub(p.at))
		}
	}

	// A standby like any other: it reads, and writes nothing.
	if !r.AwaitReady("standby", 5*time.Second) {
		t.Error("is no standby")
	}
	time.Sleep(2 * time.Second)
	_, after, _ = x.state()
	for _, p := range after {
		if !strings.HasPrefix(p.what, "GET ") {
			t.Errorf("%s %v after the loss", p.what, p.at.Sub(answered))
		}
	}
	if len(after) == 0 {
		t.Error("it does not poll")
	}
	if rec := b.record(t); rec.Holder != "thief" {
		t.Errorf("the loser wrote: %+v", rec)
	}
	metric, err := r.Metric("sf2loki_leader")
	if err != nil || metric != "0" {
		t.Errorf("sf2loki_leader %s, %v", metric, err)
	}
}

// deaths waits until all of these processes are dead. It returns when that was
// seen and, for how exact that is, the longest time between two looks since the
// answer.
func deaths(t *testing.T, x *thief, pids []int) (gone boottime.Instant, late time.Duration) {
	t.Helper()
	last := boottime.Now()
	for end := last.Add(20 * time.Second); last < end; {
		dead := 0
		for _, pid := range pids {
			if p, err := proctree.Read(pid); err != nil || p.Dead() {
				dead++
			}
		}
		now := boottime.Now()
		switch answered, _, err := x.state(); {
		case answered != 0:
			late = max(late, now.Sub(max(last, answered)))
		case err != nil:
			t.Fatal(err)
		case dead > 0:
			t.Fatal("the work ended before the answer")
		}
		if dead == len(pids) {
			return now, late
		}
		last = now
		time.Sleep(time.Millisecond)
	}
	t.Fatal("the work does not end")
	return 0, 0
}
