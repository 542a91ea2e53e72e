package answers

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sf2loki/sf2loki-ha/cas/gcs"
	"github.com/sf2loki/sf2loki-ha/cas/s3"
	"github.com/sf2loki/sf2loki-ha/coordinator"
	"github.com/sf2loki/sf2loki-ha/coordinator/k8slease"
	"github.com/sf2loki/sf2loki-ha/internal/boottime"
)

// TestMain hides the machine's credentials and lets the elections wait side by
// side: they spend their time in timers.
func TestMain(m *testing.M) {
	none := filepath.Join(os.TempDir(), "sf2loki-ha-no-such-file")
	for k, v := range map[string]string{
		"AWS_ACCESS_KEY_ID": "AKIATEST", "AWS_SECRET_ACCESS_KEY": "test-secret-key", "AWS_SESSION_TOKEN": "", "AWS_PROFILE": "",
		"AWS_REGION": "", "AWS_DEFAULT_REGION": "", "AWS_ENDPOINT_URL": "", "AWS_ENDPOINT_URL_S3": "",
		"AWS_CONFIG_FILE": none, "AWS_SHARED_CREDENTIALS_FILE": none, "AWS_EC2_METADATA_DISABLED": "true",
		"STORAGE_EMULATOR_HOST": "", "GOOGLE_APPLICATION_CREDENTIALS": "",
	} {
		if err := os.Setenv(k, v); err != nil {
			panic(err)
		}
	}
	flag.Parse()
	if err := flag.Set("test.parallel", "32"); err != nil {
		panic(err)
	}
	os.Exit(m.Run())
}

// openStore opens the service's own client on a world.
func openStore(t testing.TB, w *world) coordinator.LeaseStore {
	t.Helper()
	switch w.service {
	case S3:
		b, err := s3.Open(t.Context(), s3.Config{Bucket: Bucket, EndpointURL: w.url})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = b.Close() })
		return coordinator.FromRegister(b.Register(Key))
	case GCS:
		b, err := gcs.Open(t.Context(), gcs.Config{Bucket: Bucket, EndpointURL: w.url})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = b.Close() })
		return coordinator.FromRegister(b.Register(Key))
	}
	file := filepath.Join(t.TempDir(), "kubeconfig")
	text := fmt.Sprintf(`{apiVersion: v1, kind: Config, current-context: c, clusters: [{name: c, cluster: {server: %q}}], users: [{name: u, user: {}}], contexts: [{name: c, context: {cluster: c, user: u}}]}`, w.url)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	s, err := k8slease.Open(t.Context(), k8slease.Config{Namespace: Namespace, Name: LeaseName, Kubeconfig: file})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// The machine under these tests may be busy: a request has long to be answered,
// and what else would take long is skipped by moving the clock.
const (
	ttl      = 120 * time.Second
	renew    = 40 * time.Second
	poll     = time.Second
	callTime = 6 * time.Second
	// soon bounds every wait of a test.
	soon = 60 * time.Second
)

// clock is the system's boot-time clock, moved forward by the test.
type clock struct{ ahead atomic.Int64 }

func (c *clock) Now() coordinator.Instant {
	return boottime.Now() + coordinator.Instant(c.ahead.Load())
}

func (c *clock) jump(d time.Duration) { c.ahead.Add(int64(d)) }

// replica is an elector with the service's own client on a world.
type replica struct {
	t     testing.TB
	w     *world
	clock *clock // the world's
	// asked is the Done of Run's context: sending on it asks for a stop, and returns
	// when the election's loop has taken it.
	asked chan struct{}
	once  sync.Once
	ended chan struct{}
	err   error
	// mayEnd lets the work return after its context has ended.
	mayEnd chan struct{}

	mu     sync.Mutex
	events []coordinator.Event
	ends   []end
	more   chan struct{} // closed at each change
}

// end is the end of a term's work.
type end struct {
	cause error
	at    time.Time
}

// start starts a replica on a world.
func start(t testing.TB, w *world) *replica {
	t.Helper()
	r := &replica{t: t, w: w, clock: &w.clock, asked: make(chan struct{}), ended: make(chan struct{}), mayEnd: make(chan struct{}), more: make(chan struct{})}
	cfg := coordinator.Config{Identity: "replica", TTL: ttl, RenewInterval: renew, PollInterval: poll, CallTimeout: callTime}
	if w.service == GCS {
		cfg.MinWriteInterval = time.Second
	}
	e, err := coordinator.New(openStore(t, w), cfg, coordinator.WithClock(r.clock), coordinator.WithObserver(r.observe))
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(r.ended)
		r.err = e.Run(stoppable{context.Background(), r.asked}, r.lead)
	}()
	t.Cleanup(func() {
		r.stop()
		r.letEnd()
		for waiting := true; waiting; {
			select {
			case <-r.ended:
				waiting = false
			case <-time.After(100 * time.Millisecond):
				r.clock.jump(ttl) // whatever it still waits for
			}
		}
	})
	return r
}

// stoppable is a context that ends when something is sent.
type stoppable struct {
	context.Context
	asked chan struct{}
}

func (s stoppable) Done() <-chan struct{} { return s.asked }

// stop asks for a stop, once, and returns when it was taken.
func (r *replica) stop() {
	r.once.Do(func() {
		select {
		case r.asked <- struct{}{}:
		case <-r.ended:
		}
	})
}

// letEnd lets this and every later term's work return at its end.
func (r *replica) letEnd() {
	r.mu.Lock()
	defer r.mu.Unlock()
	select {
	case <-r.mayEnd:
	default:
		close(r.mayEnd)
	}
}

func (r *replica) lead(ctx context.Context, _ *coordinator.Term) error {
	<-ctx.Done()
	r.change(func() { r.ends = append(r.ends, end{context.Cause(ctx), time.Now()}) })
	<-r.mayEnd
	return nil
}

func (r *replica) observe(e coordinator.Event) {
	r.change(func() { r.events = append(r.events, e) })
}

func (r *replica) change(f func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	f()
	close(r.more)
	r.more = make(chan struct{})
}

// count is the number of events of these kinds.
func (r *replica) count(kinds ...coordinator.EventKind) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	n := 0
	for _, e := range r.events {
		for _, k := range kinds {
			if e.Kind == k {
				n++
			}
		}
	}
	return n
}

// await waits until a condition holds. Both events and requests are looked at.
func (r *replica) await(what string, holds func() bool) {
	r.t.Helper()
	timeout := time.NewTimer(soon)
	defer timeout.Stop()
	for {
		r.mu.Lock()
		more := r.more
		r.mu.Unlock()
		if holds() {
			return
		}
		select {
		case <-more:
		case <-time.After(10 * time.Millisecond): // requests announce themselves to nobody
		case <-timeout.C:
			r.t.Fatalf("%s: not within %v; requests: %s; events: %s", what, soon, r.w.arrivals(), r.story())
		}
	}
}

// happened waits for the n-th event of a kind.
func (r *replica) happened(kind coordinator.EventKind, n int) {
	r.t.Helper()
	r.await(fmt.Sprintf("%d times %s", n, kind), func() bool { return r.count(kind) >= n })
}

// story is what happened, for a failure.
func (r *replica) story() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := ""
	for _, e := range r.events {
		if e.Kind != coordinator.Requested || e.Err != nil {
			out += fmt.Sprintf("\n  %s %s %s %v", e.Kind, e.Op, e.Class, e.Err)
		}
	}
	return out
}

// terms are the ids of the terms that were acquired.
func (r *replica) terms() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var out []string
	for _, e := range r.events {
		if e.Kind == coordinator.Acquired {
			out = append(out, e.Term)
		}
	}
	return out
}

// finished waits until Run has returned.
func (r *replica) finished() {
	r.t.Helper()
	select {
	case <-r.ended:
		if r.err != nil {
			r.t.Errorf("Run: %v", r.err)
		}
	case <-time.After(soon):
		r.t.Fatalf("Run does not return; requests: %s; events: %s", r.w.arrivals(), r.story())
	}
}

// leads brings a replica of a fresh world, in which a stale lease is state 1, to
// its first term: state 2.
func leads(t testing.TB, s Service) (*world, *replica) {
	t.Helper()
	old := stranger()
	w := newWorld(t, s, &old)
	r := start(t, w)
	r.happened(coordinator.Observed, 1)
	r.clock.jump(ttl)
	r.happened(coordinator.Acquired, 1)
	return w, r
}
