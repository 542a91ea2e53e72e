package k8slease_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sf2loki/sf2loki-ha/cas"
	"github.com/sf2loki/sf2loki-ha/coordinator"
	"github.com/sf2loki/sf2loki-ha/coordinator/k8slease"
)

// annotate does what kubectl annotate does: a merge patch under its own manager.
func (c cluster) annotate(t *testing.T, name, key, value string) {
	t.Helper()
	c.Must(t, http.MethodPatch, c.leases()+"/"+name+"?fieldManager=kubectl-annotate", asPatch, fmt.Sprintf(`{"metadata": {"annotations": {%q: %s}}}`, key, value))
}

func TestARequestOnARealLease(t *testing.T) {
	c := newCluster(t)
	s, other := c.open(t, "leader", c.AdminToken), c.open(t, "leader", c.AdminToken)
	r, theirs, ctx := s.Requests(), other.Requests(), t.Context()

	_, err := r.Load(ctx)
	isClass(t, err, cas.NotFound)
	_, err = r.Create(ctx, []byte(holdA))
	isClass(t, err, cas.NotFound)
	_, err = r.Replace(ctx, []byte(holdA), "v")
	isClass(t, err, cas.Conflict)
	v, err := s.Create(ctx, record("w1"))
	if err != nil {
		t.Fatal(err)
	}
	_, err = r.Load(ctx)
	isClass(t, err, cas.NotFound)
	first, err := r.Create(ctx, []byte(holdA))
	if err != nil {
		t.Fatal(err)
	}
	_, err = theirs.Create(ctx, []byte(holdB))
	isClass(t, err, cas.Conflict)
	got, err := theirs.Load(ctx)
	if err != nil || string(got.Data) != holdA || got.Version != first || got.Age < 0 || got.Age > time.Minute {
		t.Fatalf("%q %q age %v, %v", got.Data, got.Version, got.Age, err)
	}
	// The holder renews, and its version is what it was.
	if v, err = s.Replace(ctx, record("w2"), v); err != nil {
		t.Fatal(err)
	}
	for _, data := range []string{holdB, "", strings.Repeat("ü", 32<<10), "<&>\u2028\x00\""} {
		next, err := theirs.Replace(ctx, []byte(data), first)
		if err != nil {
			t.Fatal(err)
		}
		_, err = r.Replace(ctx, []byte("stale"), first)
		isClass(t, err, cas.Conflict)
		if got, err = r.Load(ctx); err != nil || string(got.Data) != data || got.Version != next {
			t.Fatalf("%d bytes, version %q, %v; want %d bytes, %q", len(got.Data), got.Version, err, len(data), next)
		}
		first = next
	}
	if _, err = s.Replace(ctx, record("w3"), v); err != nil {
		t.Fatal(err)
	}

	// A person writes one, and takes it away.
	c.annotate(t, "leader", k8slease.RequestAnnotation, `"{\"hold\":\"by hand\"}"`)
	if got, err = r.Load(ctx); err != nil || string(got.Data) != `{"hold":"by hand"}` || got.Version == first {
		t.Fatalf("%q %q, %v", got.Data, got.Version, err)
	}
	c.annotate(t, "leader", k8slease.RequestAnnotation, "null")
	_, err = r.Load(ctx)
	isClass(t, err, cas.NotFound)
	_, err = r.Replace(ctx, []byte(holdA), got.Version)
	isClass(t, err, cas.Conflict)
}

func TestTheAgeOfARequestGrowsWhileTheLeaseIsRenewed(t *testing.T) {
	c := newCluster(t)
	s := c.open(t, "leader", c.AdminToken)
	v, err := s.Create(t.Context(), record("w0"))
	if err != nil {
		t.Fatal(err)
	}
	r, n := s.Requests(), 0
	// HTTP and managedFields count in seconds, each rounded down.
	grows := func(what string, begun time.Time) {
		t.Helper()
		for last := time.Duration(0); last < 2*time.Second; {
			n++
			renewed := record(fmt.Sprint("w", n))
			renewed.RenewedAt = time.Now()
			if v, err = s.Replace(t.Context(), renewed, v); err != nil {
				t.Fatal(err)
			}
			got, err := r.Load(t.Context())
			passed := time.Since(begun)
			switch {
			case err != nil:
				t.Fatal(err)
			case got.Age < last:
				t.Fatalf("%s: age %v after %v", what, got.Age, last)
			case got.Age > passed+time.Second:
				t.Fatalf("%s: age %v, %v after it was written", what, got.Age, passed)
			case passed > 20*time.Second:
				t.Fatalf("%s: age %v, %v after it was written and %d renewals", what, got.Age, passed, n)
			}
			last = got.Age
		}
	}
	begun := time.Now()
	written, err := r.Create(t.Context(), []byte(holdA))
	if err != nil {
		t.Fatal(err)
	}
	grows("created", begun)
	begun = time.Now()
	if _, err := r.Replace(t.Context(), []byte(holdB), written); err != nil {
		t.Fatal(err)
	}
	grows("replaced", begun)
	begun = time.Now()
	c.annotate(t, "leader", k8slease.RequestAnnotation, `"by hand"`)
	grows("annotated", begun)
	t.Logf("%d renewals", n)
}

func TestOneOfSixteenRequestsWins(t *testing.T) {
	const writers, rounds = 16, 4
	c := newCluster(t)
	s := c.open(t, "leader", c.AdminToken)
	if _, err := s.Create(t.Context(), record("w1")); err != nil {
		t.Fatal(err)
	}
	var v cas.Version
	for round := range rounds {
		var (
			begin    = make(chan struct{})
			wg       sync.WaitGroup
			versions [writers]cas.Version
			errs     [writers]error
			old      = v
		)
		for i := range writers {
			r := c.open(t, "leader", c.AdminToken).Requests()
			wg.Go(func() {
				<-begin
				data := fmt.Appendf(nil, "request %d of round %d", i, round)
				if old == "" {
					versions[i], errs[i] = r.Create(t.Context(), data)
				} else {
					versions[i], errs[i] = r.Replace(t.Context(), data, old)
				}
			})
		}
		close(begin)
		wg.Wait()
		won := -1
		for i, err := range errs {
			switch cas.ClassOf(err) {
			case "":
				if won >= 0 {
					t.Fatalf("round %d: writers %d and %d both won", round, won, i)
				}
				won = i
			case cas.Conflict:
			default:
				t.Errorf("round %d: writer %d: %v", round, i, err)
			}
		}
		if won < 0 {
			t.Fatalf("round %d: nobody won", round)
		}
		got, err := s.Requests().Load(t.Context())
		if err != nil || got.Version != versions[won] || string(got.Data) != fmt.Sprintf("request %d of round %d", won, round) {
			t.Fatalf("round %d: %q %q, %v; want that of writer %d", round, got.Data, got.Version, err, won)
		}
		v = got.Version
	}
}

func TestRequestsWrittenAllTheTimeCostTheLeaderNothing(t *testing.T) {
	const writes = 60
	c := newCluster(t)
	s := c.open(t, "leader", c.AdminToken)
	e, err := coordinator.New(s, coordinator.Config{Identity: "pod-1", TTL: 3 * time.Second, RenewInterval: 300 * time.Millisecond, PollInterval: 200 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	leads := make(chan *coordinator.Term, 8)
	ended := make(chan error, 8)
	var wg sync.WaitGroup
	wg.Go(func() {
		_ = e.Run(ctx, func(ctx context.Context, term *coordinator.Term) error {
			leads <- term
			<-ctx.Done()
			ended <- context.Cause(ctx)
			return nil
		})
	})
	defer wg.Wait()
	defer cancel()
	var term *coordinator.Term
	select {
	case term = <-leads:
	case <-time.After(30 * time.Second):
		t.Fatal("nobody leads")
	}

	r := c.open(t, "leader", c.AdminToken).Requests()
	v, err := r.Create(t.Context(), []byte("0"))
	if err != nil {
		t.Fatal(err)
	}
	renewals := map[any]bool{}
	begun := time.Now()
	for n := 1; n < writes || len(renewals) < 5; n++ {
		if v, err = r.Replace(t.Context(), fmt.Append(nil, n), v); err != nil {
			t.Fatalf("request %d: %v", n, err)
		}
		o := c.raw(t, "leader")
		renewals[at(o, "spec.renewTime")] = true
		if got := at(o, "metadata.annotations").(map[string]any)[k8slease.RequestAnnotation]; got != fmt.Sprint(n) {
			t.Fatalf("request %d, but the Lease has %v", n, got)
		}
		if time.Since(begun) > 60*time.Second {
			t.Fatalf("%d renewals beside %d requests in a minute: %v", len(renewals), n, term.CheckFence())
		}
	}
	t.Logf("%d renewals in %v beside the requests", len(renewals), time.Since(begun))
	select {
	case why := <-ended:
		t.Fatalf("the term ended: %v", why)
	default:
	}
	if err := term.CheckFence(); err != nil {
		t.Error(err)
	}
	if l, err := s.Read(t.Context()); err != nil || l.Record.Term != term.ID() || l.Record.Epoch != term.Epoch() {
		t.Errorf("%+v, %v; want term %s", l, err, term.ID())
	}
	cancel()
	wg.Wait()
	// The request outlives the term.
	if got, err := r.Load(t.Context()); err != nil || got.Version != v {
		t.Errorf("%q, %v", got.Data, err)
	}
}
