package e2e

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sf2loki/sf2loki-ha/cas"
	"github.com/sf2loki/sf2loki-ha/coordinator"
	"github.com/sf2loki/sf2loki-ha/coordinator/k8slease"
	"github.com/sf2loki/sf2loki-ha/internal/testservers"
)

const kubeLeases = "/apis/coordination.k8s.io/v1/namespaces/" + testservers.KubeNamespace + "/leases"

// kubeServer starts etcd and kube-apiserver with the namespace of the tests.
func kubeServer(t *testing.T) *testservers.Kube {
	t.Helper()
	srv := testservers.StartKube(t)
	srv.Must(t, http.MethodPost, "/api/v1/namespaces", "application/json",
		`{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "`+testservers.KubeNamespace+`"}}`)
	return srv
}

func kubeStore(t *testing.T, kubeconfig string) *k8slease.Store {
	t.Helper()
	s, err := k8slease.Open(t.Context(), k8slease.Config{Namespace: testservers.KubeNamespace, Name: "sf2loki-leader", Kubeconfig: kubeconfig})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// k8sBackend is a Lease; the checkpoint document is a file.
func k8sBackend(t *testing.T) backend {
	srv := kubeServer(t)
	config, dir := srv.Kubeconfig(t, srv.AdminToken), t.TempDir()
	store := kubeStore(t, config)
	return backend{
		name: "kube-apiserver", budget: budget(6*time.Second, 2*time.Second), store: store, asking: store.Requests(),
		config: fmt.Sprintf("coordinate: {type: k8s_lease, k8s_lease: {namespace: %s, kubeconfig: %s, lease_duration: 6s, renew_interval: 2s}}\nstate: {store: file, file: {path: %s/state.json, shared: true}}\n",
			testservers.KubeNamespace, config, dir),
	}
}

// cutOff is a lease store that can lose its network.
type cutOff struct {
	coordinator.LeaseStore
	gone atomic.Bool
}

var errCutOff = errors.New("no route to host")

func (c *cutOff) Read(ctx context.Context) (coordinator.Lease, error) {
	if c.gone.Load() {
		return coordinator.Lease{}, errCutOff
	}
	return c.LeaseStore.Read(ctx)
}

func (c *cutOff) Replace(ctx context.Context, r coordinator.Record, old cas.Version) (cas.Version, error) {
	if c.gone.Load() {
		return "", errCutOff
	}
	return c.LeaseStore.Replace(ctx, r, old)
}

// tenure is one term of one of the electors of a test.
type tenure struct {
	who   string
	epoch int64
	begun time.Time
	ended chan time.Time
}

var kubeTiming = coordinator.Config{TTL: 3 * time.Second, RenewInterval: time.Second, PollInterval: 500 * time.Millisecond}

// compete runs an elector until the test ends and tells its terms.
func compete(t *testing.T, who string, store coordinator.LeaseStore, terms chan<- tenure) {
	t.Helper()
	cfg := kubeTiming
	cfg.Identity = who
	e, err := coordinator.New(store, cfg)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	wg.Go(func() {
		if err := e.Run(ctx, func(ctx context.Context, term *coordinator.Term) error {
			now := tenure{who: who, epoch: term.Epoch(), begun: time.Now(), ended: make(chan time.Time, 1)}
			terms <- now
			<-ctx.Done()
			now.ended <- time.Now()
			return nil
		}); err != nil {
			t.Errorf("%s: %v", who, err)
		}
	})
	t.Cleanup(func() { stop(); wg.Wait() })
}

// next is the next term, or a failure.
func next(t *testing.T, terms <-chan tenure, within time.Duration) tenure {
	t.Helper()
	select {
	case n := <-terms:
		return n
	case <-time.After(within):
		t.Fatalf("no term within %v", within)
		return tenure{}
	}
}

func TestForeignAnnotationsNeitherCostLeadershipNorKeepADeadLeaderAlive(t *testing.T) {
	srv := kubeServer(t)
	config := srv.Kubeconfig(t, srv.AdminToken)
	stores := map[string]*cutOff{"A": {LeaseStore: kubeStore(t, config)}, "B": {LeaseStore: kubeStore(t, config)}}
	terms := make(chan tenure, 10)
	for who, store := range stores {
		compete(t, who, store, terms)
	}
	first := next(t, terms, 30*time.Second)
	written, end := annotate(t, srv)
	defer end()

	// Three times its ttl: one lost renewal too many would have ended it.
	select {
	case at := <-first.ended:
		t.Fatalf("the term ended after %v", at.Sub(first.begun))
	case another := <-terms:
		t.Fatalf("%s leads beside %s", another.who, first.who)
	case <-time.After(3 * kubeTiming.TTL):
	}
	before := written()
	if before < 20 {
		t.Fatalf("%d annotations in %v: nothing was tested", before, 3*kubeTiming.TTL)
	}

	// Its network goes; the annotations go on.
	cut := time.Now()
	stores[first.who].gone.Store(true)
	second := next(t, terms, 30*time.Second)
	if second.who == first.who || second.epoch <= first.epoch {
		t.Errorf("%s at epoch %d after %s at %d", second.who, second.epoch, first.who, first.epoch)
	}
	if took, bound := second.begun.Sub(cut), kubeTiming.Budget().Failover+slack; took > bound {
		t.Errorf("takeover after %v, bound %v", took, bound)
	}
	if ended := <-first.ended; !ended.Before(second.begun) {
		t.Errorf("the old term ended %v after the new one had begun", ended.Sub(second.begun))
	}
	if written() == before {
		t.Error("no annotation was written during the takeover")
	}
}

func TestALeaseDeletedUnderItsLeaderEndsTheTermAndComesBackHigher(t *testing.T) {
	srv := kubeServer(t)
	config := srv.Kubeconfig(t, srv.AdminToken)
	terms := make(chan tenure, 10)
	compete(t, "A", kubeStore(t, config), terms)
	compete(t, "B", kubeStore(t, config), terms)
	first := next(t, terms, 30*time.Second)
	// The other one has to see the lease: absence has no version, so a lease that
	// comes and goes between two of its reads was never there for it.
	time.Sleep(3 * kubeTiming.PollInterval)
	deleted := time.Now()
	srv.Must(t, http.MethodDelete, kubeLeases+"/sf2loki-leader", "", "")
	if took := (<-first.ended).Sub(deleted); took > kubeTiming.RenewInterval+slack {
		t.Errorf("the term ended %v after the deletion, want it with the next renewal", took)
	}
	second := next(t, terms, 30*time.Second)
	if second.epoch <= first.epoch {
		t.Errorf("epoch %d after %d", second.epoch, first.epoch)
	}
	if waited := second.begun.Sub(deleted); waited < kubeTiming.TTL {
		t.Errorf("an absent lease was claimed after %v, before the ttl of %v", waited, kubeTiming.TTL)
	}
}

// annotate writes an annotation every 100 ms until it is ended, as a controller
// that is none of our business.
func annotate(t *testing.T, srv *testservers.Kube) (count func() int, end func()) {
	t.Helper()
	var n atomic.Int64
	var wg sync.WaitGroup
	ctx, stop := context.WithCancel(t.Context())
	wg.Go(func() {
		for tick := time.NewTicker(100 * time.Millisecond); ; {
			select {
			case <-ctx.Done():
				tick.Stop()
				return
			case <-tick.C:
			}
			if code, _ := srv.Send(t, srv.AdminToken, http.MethodPatch, kubeLeases+"/sf2loki-leader", "application/merge-patch+json",
				fmt.Sprintf(`{"metadata": {"annotations": {"example.com/seen": "%d"}}}`, n.Load())); code == http.StatusOK {
				n.Add(1)
			}
		}
	})
	return func() int { return int(n.Load()) }, func() { stop(); wg.Wait() }
}
