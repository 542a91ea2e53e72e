package statecmd

import (
	"context"
	"errors"
	"fmt"

	"github.com/sf2loki/sf2loki-ha/cas"
	"github.com/sf2loki/sf2loki-ha/checkpoint"
)

// mostRounds bounds how often a document that changed meanwhile is read again
// after a wait: the leader that goes commits one last time.
const mostRounds = 5

// change is what a verb does to one document.
type change struct {
	// check may refuse, or find that there is nothing to do (done), from what was
	// read. sights is nil before the lease was read.
	check func(snap checkpoint.Snapshot, sights []Sight) (done bool, err error)
	// write writes on the snapshot and reports whether anything was different.
	write func(ctx context.Context, snap checkpoint.Snapshot) (bool, error)
	// fence: the verb is about the fence itself. It works on a damaged one, and the
	// lease that sealed the document counts as well.
	fence bool
}

// outcome is what became of a change.
type outcome struct {
	changed bool
	// waits is why a dry run would have waited, or "".
	waits string
}

// apply carries out a change: document, then lease, then the write on the
// version of the document that was read before the lease.
func (c *Command) apply(ctx context.Context, d *document, ch change) (outcome, error) {
	busy, blocked, err := d.lock(ctx, c.Flags)
	if err != nil {
		return outcome{}, err
	}
	for round := 1; ; round++ {
		// 1. The document.
		snap, err := d.store.Snapshot(ctx)
		if err != nil {
			return outcome{}, err
		}
		if snap.Damage != nil && !ch.fence {
			return outcome{}, snap.Damage
		}
		if done, err := ch.check(snap, nil); done || err != nil {
			return outcome{}, err
		}
		// 2. The lease.
		if ch.fence && round == 1 {
			d.watchSealer(ctx, snap.Fence.Lease)
		}
		facts := Facts{
			Object: d.object, Fence: snap.Fence, Lease: d.lease, Stranger: d.stranger, Handover: ch.fence,
			Busy: busy, Blocked: blocked, Owner: d.owner(),
		}
		facts.Leases = d.look(ctx)
		if err := context.Cause(ctx); err != nil {
			return outcome{}, fmt.Errorf("stopped, nothing was written: %w", err)
		}
		verdict := Judge(facts, c.Flags)
		switch verdict.Step {
		case Refuse:
			return outcome{}, errors.New(verdict.Why)
		case Wait:
			if c.Flags.DryRun {
				return outcome{changed: true, waits: verdict.Why}, nil
			}
			if err := c.wait(ctx, d, facts, verdict); err != nil {
				return outcome{}, err
			}
			continue // what was read before the wait is not written on
		}
		for _, why := range verdict.Forced {
			c.note("--force: %s", why)
		}
		if done, err := ch.check(snap, facts.Leases); done || err != nil {
			return outcome{}, err
		}
		if c.Flags.DryRun {
			return outcome{changed: true}, nil
		}
		// 3. The write.
		changed, err := ch.write(ctx, snap)
		switch {
		case cas.ClassOf(err) == cas.Conflict && c.waited && round < mostRounds:
			continue // the last commit of the leader that went; look at everything again
		case cas.ClassOf(err) == cas.Conflict:
			return outcome{}, fmt.Errorf("%s was changed while this command ran, nothing was written: %w; retry", d.object, err)
		}
		return outcome{changed: changed}, err
	}
}

// look reads every lease. The result is not nil.
func (d *document) look(ctx context.Context) []Sight {
	all := []Sight{}
	for _, l := range d.leases {
		all = append(all, l.look(ctx))
	}
	return all
}

// wait looks at the leases until there is nothing to wait for any more.
func (c *Command) wait(ctx context.Context, d *document, facts Facts, verdict Verdict) error {
	c.waited = true
	c.note("waiting: %s", verdict.Why)
	for verdict.Step == Wait {
		if err := pause(ctx, d.poll); err != nil {
			return fmt.Errorf("stopped waiting, nothing was written: %w", err)
		}
		facts.Leases = d.look(ctx)
		if err := context.Cause(ctx); err != nil {
			return fmt.Errorf("stopped waiting, nothing was written: %w", err)
		}
		verdict = Judge(facts, c.Flags)
	}
	if verdict.Step == Refuse {
		return errors.New(verdict.Why)
	}
	return nil
}
