package leasecmd

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sf2loki/sf2loki-ha/cas"
	"github.com/sf2loki/sf2loki-ha/cas/mem"
	"github.com/sf2loki/sf2loki-ha/coordinator"
	"github.com/sf2loki/sf2loki-ha/internal/faultcas"
)

// pair is a command and, if led, an elector that obeys it.
type pair struct {
	*Command
	out      bytes.Buffer
	lease    cas.Register
	requests *faultcas.Register
}

func newPair(t *testing.T, led bool) *pair {
	t.Helper()
	store := mem.New()
	p := &pair{lease: store.Open().Register("l"), requests: faultcas.Wrap(store.Open().Register("l.request"), nil)}
	p.Command = &Command{
		Lease: coordinator.FromRegister(p.lease), Requests: coordinator.RequestsFrom(p.requests), Wait: time.Minute, Out: &p.out, By: "anna",
	}
	if !led {
		return p
	}
	cfg := coordinator.Config{Identity: "a", TTL: 6 * time.Second, RenewInterval: 2 * time.Second, PollInterval: time.Second}
	start := time.Now()
	e, err := coordinator.New(coordinator.FromRegister(store.Open().Register("l")), cfg, coordinator.WithClock(clock{start}),
		coordinator.WithRequests(coordinator.RequestsFrom(store.Open().Register("l.request"))))
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		done <- e.Run(ctx, func(ctx context.Context, _ *coordinator.Term) error { <-ctx.Done(); return nil })
	}()
	t.Cleanup(func() {
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	<-time.After(7 * time.Second)
	return p
}

// clock follows the fake time of the bubble.
type clock struct{ start time.Time }

func (c clock) Now() coordinator.Instant { return coordinator.Instant(time.Hour + time.Since(c.start)) }

func (p *pair) text() string { defer p.out.Reset(); return p.out.String() }

func TestAHoldIsObeyedShownAndTakenBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPair(t, true)
		if err := p.Hold(t.Context(), 15*time.Minute, "repair"); err != nil {
			t.Fatal(err)
		}
		if got := p.text(); !strings.Contains(got, "on hold for 15m0s: the lease is released") {
			t.Errorf("%s", got)
		}
		if err := p.Show(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got := p.text(); !strings.Contains(got, "state        released") || !strings.Contains(got, "left, by anna: repair") {
			t.Errorf("%s", got)
		}
		if err := p.Resume(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got := p.text(); !strings.Contains(got, "somebody leads") {
			t.Errorf("%s", got)
		}
		if err := p.Resume(t.Context()); err != nil || p.text() != "there was no hold\n" {
			t.Errorf("a second resume: %v", err)
		}
	})
}

func TestAStepDownNamesTheTermThatHoldsTheLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPair(t, true)
		p.JSON = true
		if err := p.StepDown(t.Context(), "moving"); err != nil {
			t.Fatal(err)
		}
		var r Result
		if err := json.Unmarshal([]byte(p.text()), &r); err != nil || r.Obeyed == nil || !*r.Obeyed || r.Asked == "" {
			t.Errorf("%+v, %v", r, err)
		}
		state, err := p.Requests.ReadRequest(t.Context())
		if err != nil || state.Request.StepDown.Target.Epoch != 1 || state.Request.StepDown.Reason != "moving" || state.Request.StepDown.By != "anna" {
			t.Errorf("%+v, %v", state.Request.StepDown, err)
		}
	})
}

func TestARequestThatNobodyObeysIsSaidAndStands(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPair(t, false)
		held := coordinator.Record{Holder: "gone", Epoch: 3, Term: "t", Incarnation: "i", State: coordinator.Held, TTL: 6 * time.Second}
		data, err := held.Marshal()
		if err == nil {
			_, err = p.lease.Create(t.Context(), data)
		}
		if err != nil {
			t.Fatal(err)
		}
		err = p.StepDown(t.Context(), "moving")
		if !errors.Is(err, ErrNotObeyed) || !strings.Contains(err.Error(), "The request stands") {
			t.Errorf("%v", err)
		}
		if got := p.text(); !strings.Contains(got, `"gone" is asked to step down from epoch 3`) {
			t.Errorf("%s", got)
		}
		p.Wait = 0
		if err := p.Hold(t.Context(), time.Minute, "x"); err != nil {
			t.Errorf("without waiting: %v", err)
		}
	})
}

func TestNobodyIsAskedToStepDownWhereNobodyLeads(t *testing.T) {
	p := newPair(t, false)
	if err := p.StepDown(t.Context(), "x"); err == nil || !strings.Contains(err.Error(), "the lease is absent") {
		t.Errorf("%v", err)
	}
	if n := p.requests.Calls(faultcas.Create); n != 0 {
		t.Errorf("%d writes", n)
	}
}

func TestADamagedRequestObjectIsOverwrittenOnlyByForce(t *testing.T) {
	p := newPair(t, false)
	p.Wait = 0
	if _, err := p.requests.Create(t.Context(), []byte("junk")); err != nil {
		t.Fatal(err)
	}
	if err := p.Hold(t.Context(), time.Minute, "x"); err == nil || !strings.Contains(err.Error(), "--force") {
		t.Errorf("%v", err)
	}
	if err := p.Show(t.Context()); err != nil || !strings.Contains(p.text(), "asks for nothing") {
		t.Errorf("%v", err)
	}
	p.Force = true
	if err := p.Hold(t.Context(), time.Minute, "x"); err != nil {
		t.Error(err)
	}
}

func TestSomebodyElsesPartSurvivesAndARaceIsTriedAgain(t *testing.T) {
	p := newPair(t, false)
	p.Wait = 0
	target := coordinator.Target{Incarnation: "i"}
	q := coordinator.RequestsFrom(p.requests)
	if err := q.WriteRequest(t.Context(), coordinator.Request{}.WithStepDown(&coordinator.StepDown{ID: "s", Target: target}), ""); err != nil {
		t.Fatal(err)
	}
	p.requests.Plan(func(op faultcas.Op, n int) faultcas.Fault {
		if op == faultcas.Replace && n < 4 {
			return faultcas.Fault{Refuse: cas.Conflict}
		}
		return faultcas.Fault{}
	})
	if err := p.Hold(t.Context(), time.Minute, "x"); err != nil {
		t.Fatal(err)
	}
	state, err := q.ReadRequest(t.Context())
	if err != nil || state.Request.StepDown == nil || state.Request.Hold == nil {
		t.Errorf("%+v, %v", state.Request, err)
	}
}
