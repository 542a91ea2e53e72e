package replica

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/johannesboyne/gofakes3"
	"github.com/johannesboyne/gofakes3/backend/s3mem"

	"github.com/sf2loki/sf2loki-ha/checkpoint"
	"github.com/sf2loki/sf2loki-ha/coordinator"
	"github.com/sf2loki/sf2loki-ha/internal/guard/guardtest"
	"github.com/sf2loki/sf2loki-ha/internal/server"
)

func TestMain(m *testing.M) { guardtest.Main(m, nil) }

const (
	leasePath = "/b-1/sf2loki/leader.lease"
	statePath = "/b-1/sf2loki/state.json"
)

// bucket is a store in memory that keeps every request on the lease and on the
// checkpoint document, and lets a test stand before or behind one.
type bucket struct {
	url string

	mu            sync.Mutex
	requests      []*http.Request
	before, after func(r *http.Request, body string)
}

func newBucket(t *testing.T) *bucket {
	t.Helper()
	backend := s3mem.New()
	if err := backend.CreateBucket("b-1"); err != nil {
		t.Fatal(err)
	}
	store := gofakes3.New(backend).Server()
	b := &bucket{}
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		b.mu.Lock()
		before, after := b.before, b.after
		if r.URL.Path == leasePath || r.URL.Path == statePath {
			b.requests = append(b.requests, r.Clone(context.Background()))
		}
		b.mu.Unlock()
		if before != nil {
			before(r, string(body))
		}
		store.ServeHTTP(w, r)
		if after != nil {
			after(r, string(body)) // the answer leaves when this returns
		}
	}))
	t.Cleanup(srv.Close)
	b.url = srv.URL
	return b
}

func (b *bucket) watch(before, after func(r *http.Request, body string)) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.before, b.after = before, after
}

// running is a replica with a short lease in front of b, until the test ends.
func (b *bucket) running(t *testing.T, command ...string) (r *Replica, ended <-chan error) {
	t.Helper()
	at := fmt.Sprintf(`bucket: b-1, region: us-east-1, endpoint_url: %q`, b.url)
	r, err := New(t.Context(), options(t, fmt.Sprintf(`
coordinate: {type: s3_lease, s3_lease: {%s, ttl: 3s, renew_interval: 1s, poll_interval: 200ms}}
state: {store: s3, s3: {%s}}
service: {health_addr: "127.0.0.1:0"}
`, at, at), command...))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	returned := make(chan struct{})
	go func() {
		defer close(returned)
		done <- r.Run(ctx)
	}()
	t.Cleanup(func() {
		cancel()
		<-returned
	})
	return r, done
}

func (r *Replica) ready() bool { return r.readiness().Ready }

func alive(t *testing.T, ended <-chan error) {
	t.Helper()
	select {
	case err := <-ended:
		t.Fatalf("the replica ended: %v", err)
	default:
	}
}

// Another term has sealed the document: the work of this one is over. That is a
// demotion and no end: the process stays, is a standby in every sign it gives,
// and leads again in an epoch above the fence.
func TestAFencedReplicaIsAStandbyAndComesBackAboveTheFence(t *testing.T) {
	b := newBucket(t)
	over := filepath.Join(t.TempDir(), "over")
	r, ended := b.running(t, "sh", "-c", "while ! test -e "+over+"; do sleep 0.05; done; rm "+over)
	guardtest.Eventually(t, "the first term", r.ready)

	if _, err := r.work.state.Seal(t.Context(), stranger{}); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(over, nil, 0o600); err != nil { // the work ends; its next start needs a seal
		t.Fatal(err)
	}
	guardtest.Eventually(t, "a standby that says so", func() bool {
		s := r.state()
		return r.readiness() == server.Status{Reason: server.Standby} && !s.Leader && !s.WorkRunning && s.Remaining == 0
	})
	alive(t, ended)
	guardtest.Eventually(t, "the next term", r.ready)
	if s := r.coord.Status(); s.Epoch != 41 {
		t.Errorf("leads again at epoch %d, the document was sealed at 40", s.Epoch)
	}
	alive(t, ended)

	// All that time the lease and the document were written conditionally only,
	// and never deleted.
	b.mu.Lock()
	defer b.mu.Unlock()
	writes := 0
	for _, req := range b.requests {
		switch {
		case req.Method == http.MethodPut && (req.Header.Get("If-Match") == "") == (req.Header.Get("If-None-Match") == ""):
			t.Errorf("PUT %s with If-Match %q and If-None-Match %q", req.URL.Path, req.Header.Get("If-Match"), req.Header.Get("If-None-Match"))
		case req.Method == http.MethodPut:
			writes++
		case req.Method != http.MethodGet:
			t.Errorf("%s %s", req.Method, req.URL.Path)
		}
	}
	if writes < 6 {
		t.Errorf("%d writes: nothing was checked", writes)
	}
}

// stranger is a term of another time under the same lease.
type stranger struct{}

func (stranger) Epoch() int64      { return 40 }
func (stranger) ID() string        { return "a stranger" }
func (stranger) CheckFence() error { return nil }

var _ checkpoint.Term = stranger{}

// Leading is not working: until the document is sealed and the work runs, the
// replica is not ready, and if that takes longer than half a ttl it gives the
// lease back.
func TestALeaderWhoseSealHasNoAnswerIsNotReadyAndGivesUp(t *testing.T) {
	b := newBucket(t)
	open := make(chan struct{})
	release := sync.OnceFunc(func() { close(open) })
	t.Cleanup(release)
	b.watch(func(r *http.Request, _ string) {
		if r.Method == http.MethodPut && r.URL.Path == statePath {
			<-open
		}
	}, nil)
	r, ended := b.running(t, "sleep", "60")
	guardtest.Eventually(t, "a leader", func() bool { return r.state().Leader })
	for begun := time.Now(); r.state().Leader; {
		if s := r.readiness(); s.Ready || r.state().WorkRunning {
			t.Fatalf("%+v, work running %v, and the document is not sealed", s, r.state().WorkRunning)
		}
		if time.Since(begun) > 10*time.Second {
			t.Fatal("still leads without having sealed the document")
		}
	}
	alive(t, ended)
	release()
	guardtest.Eventually(t, "a leader at work", r.ready)
}

// From the instant at which the lease is released in the store another replica
// may lead: this one must not count as a leader any more, also while the answer
// is still on its way.
func TestNobodyCountsAsLeaderOnceItsLeaseIsReleased(t *testing.T) {
	b := newBucket(t)
	r, _ := b.running(t, "sleep", "60")
	guardtest.Eventually(t, "a leader at work", r.ready)
	stored := make(chan bool, 1)
	b.watch(nil, func(req *http.Request, body string) {
		if req.Method == http.MethodPut && req.URL.Path == leasePath && strings.Contains(body, `"state":"released"`) {
			stored <- r.state().Leader || r.ready()
		}
	})
	r.coord.StepDown("test")
	if leads := <-stored; leads {
		t.Error("sf2loki_leader is 1 although the lease is released")
	}
}

// What a leader shows ends with its term, whichever way that ends.
func TestTheSignsOfALeaderEndWithItsTerm(t *testing.T) {
	b := newBucket(t)
	r, ended := b.running(t, "sleep", "60")
	guardtest.Eventually(t, "a leader at work", r.ready)
	// Somebody else writes the lease: a loss, without grace.
	reg, _, err := (&clients{}).lease(t.Context(), r.opts.Config.Coordinate, r.log)
	if err != nil {
		t.Fatal(err)
	}
	for lost := false; !lost; {
		v, err := reg.Load(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		theirs := coordinator.Record{Holder: "thief", Epoch: 9, Incarnation: "i", Term: "t", WriteID: "w", TTL: time.Minute, State: coordinator.Held, Lease: r.opts.Config.LeaseIdentity()}
		text, err := theirs.Marshal()
		if err != nil {
			t.Fatal(err)
		}
		_, err = reg.Replace(t.Context(), text, v.Version)
		lost = err == nil // else a renewal came in between
	}
	guardtest.Eventually(t, "a standby in every sign", func() bool {
		s := r.state()
		return !s.Leader && !s.WorkRunning && s.Remaining == 0 && s.Epoch == 9 && r.readiness().Reason == server.Standby
	})
	alive(t, ended)
}

// Without its health server nothing could restart this process or see that it
// leads: the run ends with an error, and the lease is given back.
func TestAReplicaThatCannotServeHealthGivesUpItsLease(t *testing.T) {
	b := newBucket(t)
	r, ended := b.running(t, "sleep", "60")
	guardtest.Eventually(t, "a leader at work", r.ready)
	breakListener(t, r.server.Addr())
	select {
	case err := <-ended:
		var setup *SetupError
		if err == nil || errors.As(err, &setup) || !strings.Contains(err.Error(), "health server") {
			t.Errorf("ended with %v; want the health server's error, which exits with 1", err)
		}
	case <-time.After(guardtest.Patience):
		t.Fatal("goes on without health")
	}
	reg, _, err := (&clients{}).lease(t.Context(), r.opts.Config.Coordinate, r.log)
	if err != nil {
		t.Fatal(err)
	}
	v, err := reg.Load(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if rec, err := coordinator.ParseRecord(v.Data); err != nil || rec.State != coordinator.Released {
		t.Errorf("%+v, %v; want it released", rec, err)
	}
}
