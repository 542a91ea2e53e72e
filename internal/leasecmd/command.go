package leasecmd

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/user"
	"time"

	"github.com/sf2loki/sf2loki-ha/cas"
	"github.com/sf2loki/sf2loki-ha/coordinator"
	"github.com/sf2loki/sf2loki-ha/internal/config"
	"github.com/sf2loki/sf2loki-ha/internal/replica"
)

const (
	// callTimeout bounds one request to the store.
	callTimeout = 10 * time.Second
	// mostTries bounds the writes of one request that meet other writers.
	mostTries = 5
	// look is the time between two reads while a request is waited for.
	look = 500 * time.Millisecond
)

// Command is one call of the verb.
type Command struct {
	// Lease and Requests are the stores.
	Lease    coordinator.LeaseStore
	Requests coordinator.RequestStore
	// Wait is how long to wait for a request to be obeyed; 0: not at all.
	Wait time.Duration
	// Force overwrites a request document that cannot be understood.
	Force bool
	// JSON prints one object instead of lines.
	JSON bool
	// Out gets the result.
	Out io.Writer
	// By names who asks, for people.
	By string
}

// Open opens the stores of a configuration. The caller closes what it returns.
func Open(ctx context.Context, cfg *config.Config) (*Command, io.Closer, error) {
	lease, requests, closer, err := replica.OpenLease(ctx, cfg.Coordinate)
	if err == nil && lease == nil {
		err = errors.New("coordinate.type is noop: there is no lease")
	}
	if err != nil {
		return nil, closer, &replica.SetupError{Err: err}
	}
	return &Command{Lease: lease, Requests: requests, By: whoami()}, closer, nil
}

// whoami names the person at this terminal.
func whoami() string {
	name := "unknown"
	if u, err := user.Current(); err == nil && u.Username != "" {
		name = u.Username
	}
	if host, err := os.Hostname(); err == nil {
		name += "@" + host
	}
	return name
}

// Result is what a verb found or did.
type Result struct {
	Lease       string     `json:"lease"`
	State       string     `json:"state"` // absent, corrupt, held, released
	Holder      string     `json:"holder,omitempty"`
	Epoch       int64      `json:"epoch,omitempty"`
	Term        string     `json:"term,omitempty"`
	Incarnation string     `json:"incarnation,omitempty"`
	TTLMillis   int64      `json:"ttl_ms,omitempty"`
	RenewedAt   *time.Time `json:"renewed_at,omitempty"` // the holder's clock
	Revision    string     `json:"revision,omitempty"`
	Stopping    bool       `json:"stopping,omitempty"`
	Failures    int        `json:"work_failures,omitempty"`
	// Hold is the hold in force by the store's own clock.
	Hold *HoldResult `json:"hold,omitempty"`
	// Asked is the id of the request that was made; Obeyed tells whether the lease
	// showed that, within the time that was waited.
	Asked   string   `json:"asked,omitempty"`
	Obeyed  *bool    `json:"obeyed,omitempty"`
	Notes   []string `json:"notes,omitempty"`
	summary string
}

// HoldResult is a hold in force.
type HoldResult struct {
	ID         string `json:"id"`
	Reason     string `json:"reason"`
	By         string `json:"by"`
	LeftMillis int64  `json:"left_ms"`
}

// read reads lease and request object.
func (c *Command) read(ctx context.Context) (Result, coordinator.Record, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	r := Result{Lease: c.Lease.Describe()}
	l, err := c.Lease.Read(ctx)
	switch {
	case errors.Is(err, cas.NotFound):
		r.State = "absent"
	case err != nil:
		return r, coordinator.Record{}, err
	case l.Corrupt != nil:
		r.State, r.Notes = "corrupt", []string{l.Corrupt.Error()}
	default:
		rec := l.Record
		r.State, r.Holder, r.Epoch, r.Term, r.Incarnation = string(rec.State), rec.Holder, rec.Epoch, rec.Term, rec.Incarnation
		r.TTLMillis, r.Revision, r.Stopping, r.Failures = rec.TTL.Milliseconds(), rec.Revision, rec.Stopping, rec.Work.Failures
		if r.State == "" {
			r.State = string(coordinator.Held)
		}
		if !rec.RenewedAt.IsZero() {
			r.RenewedAt = &rec.RenewedAt
		}
	}
	state, err := c.Requests.ReadRequest(ctx)
	if err != nil {
		return r, l.Record, err
	}
	if state.Problem != nil {
		r.Notes = append(r.Notes, "the request object cannot be understood and asks for nothing: "+state.Problem.Error())
	}
	if h := state.Request.Hold; h != nil && h.For > state.Age {
		r.Hold = &HoldResult{ID: h.ID, Reason: h.Reason, By: h.By, LeftMillis: (h.For - state.Age).Milliseconds()}
	}
	return r, l.Record, nil
}

// change changes the request document.
func (c *Command) change(ctx context.Context, do func(coordinator.Request) coordinator.Request) error {
	for try := 1; ; try++ {
		err := c.changeOnce(ctx, do)
		if !errors.Is(err, cas.Conflict) || try == mostTries {
			return err
		}
		// Somebody else wrote: read again what there is now.
	}
}

func (c *Command) changeOnce(ctx context.Context, do func(coordinator.Request) coordinator.Request) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	state, err := c.Requests.ReadRequest(ctx)
	if err != nil {
		return err
	}
	if state.Problem != nil && !c.Force {
		return fmt.Errorf("request object %s cannot be understood: %w; look at it, or replace it with --force", c.Requests.DescribeRequest(), state.Problem)
	}
	return c.Requests.WriteRequest(ctx, do(state.Request.Aged(state.Age)), state.Version)
}

// until watches the lease until it is as wanted, for at most c.Wait.
func (c *Command) until(ctx context.Context, wanted func(coordinator.Record) bool) (bool, error) {
	if c.Wait <= 0 {
		return false, nil
	}
	end := time.NewTimer(c.Wait)
	defer end.Stop()
	tick := time.NewTicker(look)
	defer tick.Stop()
	for {
		call, cancel := context.WithTimeout(ctx, callTimeout)
		l, err := c.Lease.Read(call)
		cancel()
		switch {
		case err == nil && l.Corrupt == nil && wanted(l.Record):
			return true, nil
		case ctx.Err() != nil:
			return false, ctx.Err()
		}
		select {
		case <-tick.C:
		case <-end.C:
			return false, nil
		case <-ctx.Done():
			return false, ctx.Err()
		}
	}
}

func newID() string { return rand.Text() }

// print writes the result.
func (c *Command) print(r Result) error {
	if c.JSON {
		enc := json.NewEncoder(c.Out)
		enc.SetIndent("", "  ")
		return enc.Encode(r)
	}
	if r.summary != "" {
		_, err := fmt.Fprintln(c.Out, r.summary)
		return err
	}
	return r.lines(c.Out)
}
