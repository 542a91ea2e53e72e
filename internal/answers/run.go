package answers

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/sf2loki/sf2loki-ha/cas"
	"github.com/sf2loki/sf2loki-ha/coordinator"
	"github.com/sf2loki/sf2loki-ha/internal/wiretest"
)

const (
	// patience is the deadline of a call that is not answered, late when a late
	// answer to it comes.
	patience = 400 * time.Millisecond
	late     = 600 * time.Millisecond
)

// Client is one service's own client, under test.
type Client struct {
	Service Service
	// Open opens the lease of the table on a scripted server.
	Open func(t *testing.T, url string) coordinator.LeaseStore
	// Form checks what Understand does not: how the request is put into HTTP.
	Form func(t *testing.T, r wiretest.Request, s Sent)
	// Secrets must not occur in any error.
	Secrets []string
}

// Run gives each answer of the service's columns to its client.
func Run(t *testing.T, c Client) {
	t.Helper()
	c.run(t, func(m Meaning) bool { return !silent[m.Name] })
}

// RunSilent does the same for the rows in which the caller hears nothing.
func RunSilent(t *testing.T, c Client) {
	t.Helper()
	c.run(t, func(m Meaning) bool { return silent[m.Name] })
}

func (c Client) run(t *testing.T, which func(Meaning) bool) {
	t.Helper()
	old := c.version(t)
	cells := rows(c.Service)
	for _, m := range Meanings {
		if !which(m) {
			continue
		}
		t.Run(m.Name, func(t *testing.T) {
			for _, q := range Requests(c.Service) {
				cell := cells[m.Name][q.Name]
				for i, a := range cell.Answers {
					t.Run(fmt.Sprintf("%s/%d", q.Name, i+1), func(t *testing.T) { c.once(t, m, q, cell, a, old) })
				}
			}
		})
	}
}

// version is what the client calls the state that is there.
func (c Client) version(t *testing.T) cas.Version {
	t.Helper()
	l, err := c.Open(t, wiretest.Start(t, Say(c.Service, Load, Success)).URL()).Read(t.Context())
	if err != nil || l.Version == "" || l.Record.WriteID != "w1" {
		t.Fatalf("%+v, %v", l, err)
	}
	return l.Version
}

// once gives one answer once, and then a good one to the same call.
func (c Client) once(t *testing.T, m Meaning, q Request, cell Cell, a wiretest.Answer, old cas.Version) {
	exchanges := append(q.Before[:len(q.Before):len(q.Before)], Exchange{q.Sends, a})
	exchanges = append(exchanges, cell.Then...)
	first := len(exchanges)
	exchanges = append(exchanges, c.good(q.Op)...)
	var script []wiretest.Answer
	for _, e := range exchanges {
		script = append(script, e.Answer)
	}
	srv := wiretest.Start(t, script...)
	store := c.Open(t, srv.URL())

	ctx := t.Context()
	if silent[m.Name] {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, patience)
		defer cancel()
	}
	_, err := call(ctx, store, q.Op, old)
	c.check(t, store, q, cell, err, q.ClassOf(m, cell))
	if silent[m.Name] && !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%v does not say that the deadline passed", err)
	}
	if n := srv.Attempts(); n != first {
		t.Fatalf("%d requests, want %d", n, first)
	}

	// What was said once is over: no connection, counter or late answer of that
	// call is left to disturb the next one.
	if v, err := call(t.Context(), store, q.Op, old); err != nil || v == "" {
		t.Errorf("the next call: %q, %v", v, err)
	}
	c.sent(t, srv, exchanges)
}

// good are the exchanges of a call that succeeds.
func (c Client) good(op string) []Exchange {
	for _, q := range Requests(c.Service) {
		if q.Op == op {
			cell := rows(c.Service)[Success][q.Name]
			return append([]Exchange{{q.Sends, cell.Answers[0]}}, cell.Then...)
		}
	}
	panic("answers: no request for " + op)
}

// call makes one call. An object that is no record is an answer of class Corrupt.
func call(ctx context.Context, s coordinator.LeaseStore, op string, old cas.Version) (cas.Version, error) {
	switch op {
	case Load:
		l, err := s.Read(ctx)
		if err == nil && l.Corrupt != nil {
			err = errors.Join(cas.Corrupt, l.Corrupt)
		}
		return l.Version, err
	case Create:
		return s.Create(ctx, Record("w2"))
	default:
		return s.Replace(ctx, Record("w2"), old)
	}
}

func (c Client) check(t *testing.T, store coordinator.LeaseStore, q Request, cell Cell, err error, want cas.Class) {
	t.Helper()
	if got := cas.ClassOf(err); got != want || (err == nil) != (want == "") {
		t.Errorf("%v: class %q, want %q", err, got, want)
		return
	}
	if err == nil {
		return
	}
	var e *cas.Error
	switch {
	case errors.As(err, &e):
		if e.Object != store.Describe() || !strings.Contains(" load read create replace ", " "+e.Op+" ") {
			t.Errorf("op %q, object %q", e.Op, e.Object)
		}
		if !strings.Contains(e.Hint, cell.Hint) {
			t.Errorf("hint %q does not speak of %q", e.Hint, cell.Hint)
		}
	case cell.Hint != "" || want != cas.Corrupt && want != cas.Ambiguous:
		t.Errorf("%v has neither object nor hint", err)
	}
	for _, secret := range c.Secrets {
		if strings.Contains(err.Error(), secret) {
			t.Errorf("the error leaks %q: %v", secret, err)
		}
	}
}

// sent compares the requests with what they had to say.
func (c Client) sent(t *testing.T, srv *wiretest.Server, exchanges []Exchange) {
	t.Helper()
	var want []string
	for _, e := range exchanges {
		if !e.Answer.Unread() {
			want = append(want, e.Sends)
		}
	}
	requests := srv.Requests()
	if len(requests) != len(want) {
		t.Fatalf("%d requests arrived, want %q", len(requests), want)
	}
	for i, r := range requests {
		s, err := c.Service.Understand(r)
		if err != nil || s.String() != want[i] {
			t.Errorf("request %d: %q, %v; want %q", i+1, s, err, want[i])
			continue
		}
		if (s.Op == Create || s.Op == Replace) && string(s.Doc) != written {
			t.Errorf("request %d carries %s", i+1, s.Doc)
		}
		c.Form(t, r, s)
	}
}
