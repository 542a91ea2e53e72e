package canary

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"net/url"
	"os"
	"time"

	"github.com/sf2loki/sf2loki-ha/cas"
	"github.com/sf2loki/sf2loki-ha/checkpoint"
	"github.com/sf2loki/sf2loki-ha/internal/socketapi"
)

// ErrFenced: another term has sealed the document, the work of this one is over.
var ErrFenced = errors.New("canary fenced")

// loadPause is the time between two attempts to reach the document at start.
const loadPause = time.Second

// Main runs the canary until ctx ends, which is a requested stop: it commits the
// last position, writes its last line and returns nil. A commit refused because
// of another term is ErrFenced; every other error means that the canary cannot
// go on: output gone, endpoint refusing a record, document damaged or deleted.
func Main(ctx context.Context, o Options) error {
	o = o.withDefaults()
	if err := o.validate(); err != nil {
		return fmt.Errorf("canary: %w", err)
	}
	c := &canary{options: o, keeper: newKeeper(o), out: newOutput(o.Out, o.Identity, o.Term), saved: make(chan saved, 1)}
	if o.PushURL != "" {
		p, err := newPusher(o.PushURL, o.Identity, o.transport)
		if err != nil {
			return fmt.Errorf("canary: %w", err)
		}
		c.pusher = p
	}
	err := c.run(ctx)
	if isFenced(err) {
		_, _, writeErr := c.out.write(Line{Event: EventFenced, N: c.delivered, Committed: c.committed, Error: err.Error()})
		return errors.Join(fmt.Errorf("%w: %w", ErrFenced, err), writeErr)
	}
	return err
}

// canary is the state of one run; only the goroutine of run touches it.
type canary struct {
	options Options
	keeper  keeper
	pusher  *pusher
	out     *output

	// written is the last record in the output, delivered the last that is in
	// the endpoint as well, committed the last whose number is safe.
	written, delivered, committed int64
	// allowed is the last record that may be written.
	allowed int64
	// pending is the line of record written, while it is not delivered.
	pending   []byte
	pendingAt time.Time
	paused    bool

	// saving is true while a commit is under way; its result comes on saved.
	saving bool
	saved  chan saved
}

// saved is the outcome of one commit.
type saved struct {
	progress progress
	err      error
}

func (c *canary) run(ctx context.Context) error {
	if stopped, err := c.start(ctx); stopped || err != nil {
		return err
	}
	// The context of commits outlives the stop request: a commit under way is
	// finished, not torn off.
	saveCtx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()

	tick := time.NewTicker(c.options.Interval)
	defer tick.Stop()
	commit := time.NewTimer(c.options.CommitInterval)
	defer commit.Stop()
	if c.written >= c.allowed {
		c.save(saveCtx)
	}
	if err := c.step(ctx); err != nil {
		return err
	}
	for {
		select {
		case <-ctx.Done():
			return c.stop(saveCtx, cancel)
		case <-tick.C:
			if err := c.step(ctx); err != nil {
				return err
			}
		case <-commit.C:
			if !c.save(saveCtx) {
				commit.Reset(c.options.CommitInterval)
			}
		case result := <-c.saved:
			if err := c.finish(result); err != nil {
				return err
			}
			// Counted from the end of the last one: that is what a store that
			// limits writes counts, too.
			commit.Reset(c.options.CommitInterval)
			if c.paused && c.written < c.allowed {
				if err := c.step(ctx); err != nil {
					return err
				}
			}
		}
	}
}

// start finds out what the predecessor left and says so. It reports true if a
// stop was requested before that.
func (c *canary) start(ctx context.Context) (stopped bool, err error) {
	if c.keeper == nil {
		c.allowed = math.MaxInt64
		_, _, err := c.out.write(Line{Event: EventResumed, Report: &Report{Verdict: Untracked, First: 1}})
		return false, err
	}
	var left progress
	for {
		if left, err = c.keeper.load(ctx); err == nil {
			break
		}
		if ctx.Err() != nil {
			_, _, err := c.out.write(Line{Event: EventStopped, Error: "stopped before the position was read: " + err.Error()})
			return true, err
		}
		// A store that does not answer will; what it says for sure stands.
		if final(err) {
			return false, err
		}
		if _, _, err := c.out.write(Line{Event: EventLoadFailed, Error: err.Error()}); err != nil {
			return false, err
		}
		select {
		case <-time.After(loadPause):
		case <-ctx.Done():
		}
	}
	report := left.report(c.options.Term)
	c.written, c.delivered, c.committed = report.Position, report.Position, report.Position
	// The predecessor's intent covers this run as well: no commit is needed
	// before the first record.
	c.allowed = report.Intent
	_, _, err = c.out.write(Line{Event: EventResumed, Report: &report})
	return false, err
}

// step writes the next record, or delivers the one that is pending.
func (c *canary) step(ctx context.Context) error {
	if ctx.Err() != nil {
		return nil
	}
	if c.pending == nil {
		if c.written >= c.allowed {
			return c.pause()
		}
		c.paused = false
		text, at, err := c.out.write(Line{Event: EventRecord, N: c.written + 1})
		if err != nil {
			return err
		}
		c.written++
		c.pending, c.pendingAt = text, at
	}
	if c.pusher != nil {
		if err := c.pusher.push(ctx, c.pendingAt, c.pending); err != nil {
			if errors.Is(err, errRefused) {
				return err
			}
			if ctx.Err() != nil {
				return nil
			}
			_, _, err := c.out.write(Line{Event: EventPushFailed, N: c.written, Error: err.Error()})
			return err
		}
	}
	c.delivered, c.pending = c.written, nil
	return nil
}

// pause says once that no record may be written for now. While the very first
// commit of a run is on its way that is no news.
func (c *canary) pause() error {
	if c.paused || c.written == c.committed {
		c.paused = true
		return nil
	}
	c.paused = true
	_, _, err := c.out.write(Line{Event: EventPaused, N: c.written, Committed: c.committed})
	return err
}

// save starts a commit of what has been delivered. It reports false if there is
// nothing to commit or a commit is under way.
func (c *canary) save(ctx context.Context) bool {
	if c.keeper == nil || c.saving || (c.delivered == c.committed && c.written < c.allowed) {
		return false
	}
	c.saving = true
	p := c.progress(c.delivered + c.options.ahead())
	// Until the answer is there the document has the old intent or this one;
	// what is written has to be true under both.
	c.allowed = min(c.allowed, p.intent.To)
	go func() { c.saved <- saved{progress: p, err: c.keeper.save(ctx, p)} }()
	return true
}

// progress is what a commit stores now. The intent never goes below what has
// been written: that is at most one record beyond the delivered ones, and ahead
// is at least two.
func (c *canary) progress(to int64) progress {
	pos := position{N: c.delivered, At: time.Now().UTC(), Identity: c.options.Identity}
	if t := c.options.Term; t != nil {
		pos.Epoch, pos.Term = t.Epoch(), t.ID()
	}
	return progress{position: &pos, intent: &intent{From: c.delivered + 1, To: to}}
}

// finish takes in the result of a commit.
func (c *canary) finish(r saved) error {
	c.saving = false
	switch {
	case r.err == nil:
		c.committed, c.allowed = r.progress.position.N, r.progress.intent.To
		return nil
	case final(r.err):
		return r.err
	}
	// It may have been stored. Nothing depends on that: the next commit says
	// more.
	_, _, err := c.out.write(Line{Event: EventCommitFailed, N: c.delivered, Committed: c.committed, Error: r.err.Error()})
	return err
}

// stop commits the last position within the flush timeout.
func (c *canary) stop(ctx context.Context, cancel context.CancelFunc) error {
	timer := time.AfterFunc(c.options.FlushTimeout, cancel)
	defer timer.Stop()
	var err error
	if c.saving {
		err = c.finish(<-c.saved)
	}
	if err == nil && c.keeper != nil {
		// No record follows: an intent that ends with the last one written tells
		// the successor what, if anything, will be repeated.
		p := c.progress(c.written)
		if err = c.keeper.save(ctx, p); err == nil {
			c.committed = p.position.N
		}
	}
	if final(err) {
		return err
	}
	line := Line{Event: EventStopped, N: c.delivered, Committed: c.committed}
	if c.keeper != nil {
		flushed := err == nil
		line.Flushed = &flushed
	}
	if err != nil {
		// The stop was requested and the successor repeats what was not
		// committed: no failure, and here is the place where it is said.
		line.Error = err.Error()
	}
	_, _, err = c.out.write(line)
	return err
}

// isFenced reports whether another term has sealed the document, or this one is
// over.
func isFenced(err error) bool {
	var (
		fenced *checkpoint.FencedError
		answer *socketapi.AnswerError
	)
	return errors.As(err, &fenced) || errors.As(err, &answer) && (answer.Code == socketapi.CodeFenced || answer.Code == socketapi.CodeTermOver)
}

// final reports whether an error of the keeper cannot pass by itself. What a
// store or a disk refuses now it may accept later; a fence, a vanished or a
// damaged document stands.
func final(err error) bool {
	if err == nil {
		return false
	}
	var (
		store   *cas.Error
		disk    *fs.PathError
		link    *os.LinkError
		socket  *socketapi.AnswerError
		request *url.Error
	)
	switch {
	case errors.As(err, &socket):
		return socket.Final()
	case errors.As(err, &request): // the supervisor did not answer
		return false
	case errors.As(err, &store):
		return store.Class == cas.Corrupt || store.Class == cas.Unsupported
	case errors.As(err, &disk), errors.As(err, &link), errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return false
	}
	return true
}
