package leasecmd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/sf2loki/sf2loki-ha/coordinator"
)

// ErrNotObeyed: the request stands, and nobody has obeyed it within the time that
// was waited.
var ErrNotObeyed = errors.New("not obeyed yet")

// Show prints what the lease and the request object say.
func (c *Command) Show(ctx context.Context) error {
	r, _, err := c.read(ctx)
	if err != nil {
		return err
	}
	return c.print(r)
}

// Hold asks that nobody leads for a while, and waits until the lease is released.
func (c *Command) Hold(ctx context.Context, length time.Duration, reason string) error {
	h := &coordinator.Hold{ID: newID(), Reason: reason, By: c.By, For: length}
	if err := c.change(ctx, func(r coordinator.Request) coordinator.Request { return r.WithHold(h) }); err != nil {
		return err
	}
	free, err := c.until(ctx, func(rec coordinator.Record) bool { return rec.State == coordinator.Released })
	return c.report(ctx, err, free, h.ID,
		fmt.Sprintf("on hold for %v: the lease is released, nobody leads until `lease resume`", length),
		fmt.Sprintf("a hold for %v is asked for", length))
}

// Resume takes a hold back.
func (c *Command) Resume(ctx context.Context) error {
	before, _, err := c.read(ctx)
	if err != nil {
		return err
	}
	if err := c.change(ctx, func(r coordinator.Request) coordinator.Request { return r.WithHold(nil) }); err != nil {
		return err
	}
	if before.Hold == nil {
		return c.report(ctx, nil, true, "", "there was no hold", "")
	}
	led, err := c.until(ctx, func(rec coordinator.Record) bool { return rec.State == coordinator.Held })
	return c.report(ctx, err, led, before.Hold.ID, "the hold is taken back and somebody leads", "the hold is taken back")
}

// StepDown asks the term that holds the lease to hand over, and waits until it
// has ended.
func (c *Command) StepDown(ctx context.Context, reason string) error {
	r, rec, err := c.read(ctx)
	if err != nil {
		return err
	}
	if r.State != string(coordinator.Held) || rec.Term == "" {
		return fmt.Errorf("the lease is %s: there is no term to step down from", r.State)
	}
	s := &coordinator.StepDown{ID: newID(), Reason: reason, By: c.By, Target: coordinator.Target{Epoch: rec.Epoch, Term: rec.Term}}
	if err := c.change(ctx, func(r coordinator.Request) coordinator.Request { return r.WithStepDown(s) }); err != nil {
		return err
	}
	over, err := c.until(ctx, func(now coordinator.Record) bool {
		return now.Term != rec.Term || now.State == coordinator.Released
	})
	return c.report(ctx, err, over, s.ID,
		fmt.Sprintf("the term of %q at epoch %d has ended", rec.Holder, rec.Epoch),
		fmt.Sprintf("%q is asked to step down from epoch %d", rec.Holder, rec.Epoch))
}

// report prints how a request ended.
func (c *Command) report(ctx context.Context, err error, obeyed bool, id, done, asked string) error {
	if err != nil {
		return err
	}
	r, _, err := c.read(ctx)
	if err != nil {
		return err
	}
	r.Asked, r.summary = id, done
	if !obeyed {
		r.summary = asked
	}
	if c.Wait > 0 {
		r.Obeyed = &obeyed
	}
	if err := c.print(r); err != nil {
		return err
	}
	if c.Wait > 0 && !obeyed {
		return fmt.Errorf("%w after %v: is there a replica, and may it read %s? The request stands", ErrNotObeyed, c.Wait, c.Requests.DescribeRequest())
	}
	return nil
}

// lines prints the result for people.
func (r Result) lines(w io.Writer) error {
	line := func(key, format string, args ...any) string {
		return fmt.Sprintf("%-12s "+format+"\n", append([]any{key}, args...)...)
	}
	text := line("lease", "%s", r.Lease) + line("state", "%s", r.State)
	if r.Holder != "" {
		text += line("holder", "%s", r.Holder)
	}
	if r.Epoch != 0 {
		text += line("epoch", "%d", r.Epoch)
	}
	if r.Term != "" {
		text += line("term", "%s", r.Term)
	}
	if r.RenewedAt != nil {
		text += line("renewed_at", "%s (the holder's clock)", r.RenewedAt.UTC().Format(time.RFC3339))
	}
	if r.TTLMillis != 0 {
		text += line("ttl", "%v", time.Duration(r.TTLMillis)*time.Millisecond)
	}
	if r.Revision != "" {
		text += line("revision", "%s", r.Revision)
	}
	if r.Stopping {
		text += line("stopping", "a planned stop is under way")
	}
	if r.Failures != 0 {
		text += line("work", "failed %d times in a row", r.Failures)
	}
	if r.Hold != nil {
		text += line("hold", "%v left, by %s: %s", (time.Duration(r.Hold.LeftMillis) * time.Millisecond).Round(time.Second), r.Hold.By, r.Hold.Reason)
	}
	for _, note := range r.Notes {
		text += line("note", "%s", note)
	}
	_, err := io.WriteString(w, text)
	return err
}
