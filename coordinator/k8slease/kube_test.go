package k8slease_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sf2loki/sf2loki-ha/cas"
	"github.com/sf2loki/sf2loki-ha/coordinator"
	"github.com/sf2loki/sf2loki-ha/coordinator/k8slease"
	"github.com/sf2loki/sf2loki-ha/internal/testservers"
)

// The tests of this file run against a real kube-apiserver and etcd.

var shared testservers.Shared

func TestMain(m *testing.M) {
	code := m.Run()
	shared.End()
	os.Exit(code)
}

const (
	namespaces = "/api/v1/namespaces"
	asYAML     = "application/yaml"
	asPatch    = "application/merge-patch+json"
)

// cluster is the shared server with a namespace of the test's own.
type cluster struct {
	*testservers.Kube
	namespace string
}

var namespaceCount atomic.Int64

func newCluster(t *testing.T) cluster {
	t.Helper()
	return clusterIn(t, fmt.Sprintf("test-%d", namespaceCount.Add(1)))
}

func clusterIn(t *testing.T, namespace string) cluster {
	t.Helper()
	c := cluster{shared.Get(t), namespace}
	c.Must(t, http.MethodPost, namespaces, asYAML, "{apiVersion: v1, kind: Namespace, metadata: {name: "+namespace+"}}")
	return c
}

func (c cluster) leases() string {
	return "/apis/coordination.k8s.io/v1/namespaces/" + c.namespace + "/leases"
}

// open opens a store of that name with that token.
func (c cluster) open(t *testing.T, name, token string) *k8slease.Store {
	t.Helper()
	s, err := k8slease.Open(t.Context(), k8slease.Config{Namespace: c.namespace, Name: name, Kubeconfig: c.Kubeconfig(t, token)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// raw is the Lease as the server shows it.
func (c cluster) raw(t *testing.T, name string) map[string]any {
	t.Helper()
	var o map[string]any
	if err := json.Unmarshal(c.Must(t, http.MethodGet, c.leases()+"/"+name, "", ""), &o); err != nil {
		t.Fatal(err)
	}
	return o
}

func isClass(t *testing.T, err error, want cas.Class) *cas.Error {
	t.Helper()
	var e *cas.Error
	if !errors.As(err, &e) || e.Class != want {
		t.Fatalf("%v; want %s", err, want)
	}
	return e
}

func TestARealLeaseIsCreatedReplacedAndReleasedConditionally(t *testing.T) {
	c := newCluster(t)
	s, other := c.open(t, "leader", c.AdminToken), c.open(t, "leader", c.AdminToken)
	ctx := t.Context()

	_, err := s.Read(ctx)
	isClass(t, err, cas.NotFound)
	_, err = s.Replace(ctx, record("w0"), "write x of y")
	isClass(t, err, cas.Conflict)
	v1, err := s.Create(ctx, record("w1"))
	if err != nil {
		t.Fatal(err)
	}
	_, err = other.Create(ctx, record("w2"))
	isClass(t, err, cas.Conflict)
	l, err := other.Read(ctx)
	if err != nil || l.Version != v1 || l.Record.WriteID != "w1" || l.Record.TTL != 2500*time.Millisecond || l.Record.Epoch != 7 {
		t.Fatalf("%+v, %v", l, err)
	}
	v2, err := other.Replace(ctx, record("w2"), v1)
	if err != nil || v2 == v1 {
		t.Fatalf("%q, %v", v2, err)
	}
	_, err = s.Replace(ctx, record("w3"), v1)
	isClass(t, err, cas.Conflict)
	o := c.raw(t, "leader")
	if at(o, "spec.holderIdentity") != "pod-1" || at(o, "spec.leaseDurationSeconds") != 3.0 || at(o, "spec.leaseTransitions") != 7.0 ||
		at(o, "spec.acquireTime") != "2026-11-30T12:00:00.123456Z" || at(o, "spec.renewTime") != "2026-11-30T12:00:01.123456Z" {
		t.Errorf("kubectl would show %v", o["spec"])
	}

	tomb := record("w4")
	tomb.State = coordinator.Released
	v4, err := s.Replace(ctx, tomb, v2)
	if err != nil {
		t.Fatal(err)
	}
	l, err = other.Read(ctx)
	if err != nil || l.Version != v4 || l.Record.State != coordinator.Released || l.Record.Holder != "pod-1" {
		t.Errorf("%+v, %v", l, err)
	}
	if got, ok := at(c.raw(t, "leader"), "spec.holderIdentity").(string); !ok || got != "" {
		t.Errorf("a released lease names %q as holder", got)
	}
}

func TestABareLeaseIsForeignAndCanBeReplaced(t *testing.T) {
	c := newCluster(t)
	for name, spec := range map[string]string{
		"no-spec":     "",
		"empty-spec":  "spec: {}",
		"holder":      "spec: {holderIdentity: somebody}",
		"no-holder":   "spec: {holderIdentity: '', leaseDurationSeconds: 5, leaseTransitions: 4}",
		"record-lost": "spec: {holderIdentity: pod-1, leaseDurationSeconds: 15, leaseTransitions: 9, renewTime: '2026-11-30T12:00:00.000000Z'}",
	} {
		t.Run(name, func(t *testing.T) {
			c.Must(t, http.MethodPost, c.leases(), asYAML, "apiVersion: coordination.k8s.io/v1\nkind: Lease\nmetadata: {name: "+name+"}\n"+spec)
			s := c.open(t, name, c.AdminToken)
			bare, err := s.Read(t.Context())
			if err != nil || !bare.Record.Foreign() || bare.Record.State == coordinator.Released || bare.Corrupt != nil {
				t.Fatalf("%+v, %v", bare, err)
			}
			again, err := s.Read(t.Context())
			if err != nil || again.Version != bare.Version {
				t.Fatalf("read twice: %q and %q, %v", bare.Version, again.Version, err)
			}
			r := record("w1")
			r.Epoch = bare.Record.Epoch + 1
			v, err := s.Replace(t.Context(), r, bare.Version)
			if err != nil {
				t.Fatal(err)
			}
			l, err := s.Read(t.Context())
			if err != nil || l.Version != v || l.Record.Foreign() || l.Record.Epoch != r.Epoch {
				t.Errorf("%+v, %v", l, err)
			}
		})
	}
}

func TestLabelsAnnotationsAndOwnersSurviveThreeRenewals(t *testing.T) {
	c := newCluster(t)
	s := c.open(t, "leader", c.AdminToken)
	v, err := s.Create(t.Context(), record("w0"))
	if err != nil {
		t.Fatal(err)
	}
	c.Must(t, http.MethodPatch, c.leases()+"/leader", asPatch, `{"metadata": {"labels": {"team": "logs"}, "annotations": {"example.com/note": "keep"},
		"finalizers": ["example.com/keep"], "ownerReferences": [{"apiVersion": "apps/v1", "kind": "Deployment", "name": "d", "uid": "u-1"}]}}`)
	for i := range 3 {
		r := record(fmt.Sprint("w", i+1))
		r.RenewedAt = r.RenewedAt.Add(time.Duration(i) * time.Second)
		if v, err = s.Replace(t.Context(), r, v); err != nil {
			t.Fatalf("renewal %d: %v", i+1, err)
		}
	}
	o := c.raw(t, "leader")
	owner, _ := at(o, "metadata.ownerReferences").([]any)
	annotations, _ := at(o, "metadata.annotations").(map[string]any)
	finalizers, _ := at(o, "metadata.finalizers").([]any)
	if at(o, "metadata.labels.team") != "logs" || annotations["example.com/note"] != "keep" || len(owner) != 1 || len(finalizers) != 1 {
		t.Errorf("%v", o["metadata"])
	}
	if at(o, "spec.acquireTime") != "2026-11-30T12:00:00.123456Z" || at(o, "spec.leaseTransitions") != 7.0 {
		t.Errorf("%v", o["spec"])
	}
}

func TestMetadataWrittenAllTheTimeCostsNoRenewalAndIsNoChange(t *testing.T) {
	c := newCluster(t)
	s := c.open(t, "leader", c.AdminToken)
	v, err := s.Create(t.Context(), record("w0"))
	if err != nil {
		t.Fatal(err)
	}
	stop, patched := make(chan struct{}), make(chan int, 1)
	var wg sync.WaitGroup
	wg.Go(func() {
		n := 0
		for ; ; n++ {
			select {
			case <-stop:
				patched <- n
				return
			default:
				body := fmt.Sprintf(`{"metadata": {"annotations": {"example.com/seen": "%d"}}}`, n)
				if code, answer := c.Send(t, c.AdminToken, http.MethodPatch, c.leases()+"/leader", asPatch, body); code != http.StatusOK {
					t.Errorf("patch: %d: %s", code, answer)
				}
			}
		}
	})
	for i := range 40 {
		l, err := s.Read(t.Context())
		if err != nil || l.Version != v {
			t.Errorf("read %d: %q, %v, want %q", i, l.Version, err, v)
		}
		if v, err = s.Replace(t.Context(), record(fmt.Sprint("w", i+1)), v); err != nil {
			t.Errorf("renewal %d: %v", i+1, err)
			break
		}
	}
	close(stop)
	wg.Wait()
	n := <-patched
	t.Logf("%d annotations written beside 40 renewals", n)
	if n < 20 {
		t.Errorf("only %d annotations were written: nothing was tested", n)
	}
}

func TestOneOfSixteenWritersWins(t *testing.T) {
	const writers, rounds = 16, 5
	c := newCluster(t)
	for round := range rounds {
		name := fmt.Sprint("leader-", round)
		stores := make([]*k8slease.Store, 4)
		for i := range stores {
			stores[i] = c.open(t, name, c.AdminToken)
		}
		race := func(attempt func(s *k8slease.Store, r coordinator.Record) (cas.Version, error)) cas.Version {
			t.Helper()
			var (
				begin    = make(chan struct{})
				wg       sync.WaitGroup
				versions [writers]cas.Version
				errs     [writers]error
			)
			for i := range writers {
				wg.Go(func() {
					<-begin
					r := record(fmt.Sprintf("w-%d-%p", i, &errs))
					r.Incarnation, r.Holder = fmt.Sprint("inc-", i), fmt.Sprint("pod-", i)
					versions[i], errs[i] = attempt(stores[i%len(stores)], r)
				})
			}
			close(begin)
			wg.Wait()
			won := -1
			for i, err := range errs {
				switch cas.ClassOf(err) {
				case "":
					if won >= 0 {
						t.Fatalf("writers %d and %d both won", won, i)
					}
					won = i
				case cas.Conflict:
				default:
					t.Errorf("writer %d: %v", i, err)
				}
			}
			if won < 0 {
				t.Fatal("nobody won")
			}
			l, err := stores[0].Read(t.Context())
			if err != nil || l.Version != versions[won] || l.Record.Holder != fmt.Sprint("pod-", won) {
				t.Fatalf("%+v, %v; want the lease of writer %d", l, err, won)
			}
			return l.Version
		}
		v := race(func(s *k8slease.Store, r coordinator.Record) (cas.Version, error) { return s.Create(t.Context(), r) })
		for range 3 {
			v = race(func(s *k8slease.Store, r coordinator.Record) (cas.Version, error) {
				return s.Replace(t.Context(), r, v)
			})
		}
	}
}

func TestALeaseDeletedUnderItsHolderIsAConflict(t *testing.T) {
	c := newCluster(t)
	s := c.open(t, "leader", c.AdminToken)
	v, err := s.Create(t.Context(), record("w1"))
	if err != nil {
		t.Fatal(err)
	}
	before := c.Must(t, http.MethodGet, c.leases()+"/leader", "", "")
	c.Must(t, http.MethodDelete, c.leases()+"/leader", "", "")
	_, err = s.Replace(t.Context(), record("w2"), v)
	isClass(t, err, cas.Conflict)
	_, err = s.Read(t.Context())
	isClass(t, err, cas.NotFound)

	// Deleted between the read and the update of a renewal: Kubernetes creates
	// Leases by update, but not one with the uid of another.
	if code, answer := c.Send(t, c.AdminToken, http.MethodPut, c.leases()+"/leader", "application/json", string(before)); code != http.StatusConflict {
		t.Errorf("an update of a Lease that is gone: %d: %s", code, answer)
	}
	_, err = s.Read(t.Context())
	isClass(t, err, cas.NotFound)

	// Restored as it was: not the lease that was held.
	var o map[string]any
	if err := json.Unmarshal(before, &o); err != nil {
		t.Fatal(err)
	}
	o = put(put(o, "metadata.uid", nil), "metadata.resourceVersion", nil)
	restored, err := json.Marshal(o)
	if err != nil {
		t.Fatal(err)
	}
	c.Must(t, http.MethodPost, c.leases(), "application/json", string(restored))
	_, err = s.Replace(t.Context(), record("w2"), v)
	isClass(t, err, cas.Conflict)
}

func TestOtherSoftwareThatTakesTheLeaseIsNoticed(t *testing.T) {
	c := newCluster(t)
	for name, body := range map[string]string{
		"keeps-annotations": `{"spec": {"holderIdentity": "controller-0", "renewTime": "2026-11-30T13:00:00.000000Z", "leaseTransitions": 8}}`,
		"same-identity":     `{"spec": {"renewTime": "2026-11-30T13:00:00.000000Z"}}`,
		"as-sf2loki-does":   `{"metadata": {"annotations": null}, "spec": {"acquireTime": null, "leaseTransitions": null, "renewTime": "2026-11-30T13:00:00.000000Z"}}`,
	} {
		t.Run(name, func(t *testing.T) {
			s := c.open(t, name, c.AdminToken)
			v, err := s.Create(t.Context(), record("w1"))
			if err != nil {
				t.Fatal(err)
			}
			c.Must(t, http.MethodPatch, c.leases()+"/"+name, asPatch, body)
			_, err = s.Replace(t.Context(), record("w2"), v)
			isClass(t, err, cas.Conflict)
			l, err := s.Read(t.Context())
			if err != nil || !l.Record.Foreign() || l.Record.State == coordinator.Released || l.Version == v {
				t.Errorf("%+v, %v", l, err)
			}
		})
	}
}
