package replica

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/sf2loki/sf2loki-ha/checkpoint"
	"github.com/sf2loki/sf2loki-ha/coordinator"
	"github.com/sf2loki/sf2loki-ha/internal/supervise"
)

// work is what a leader does: seal the checkpoint document, then keep the
// command running, for as long as the term lasts.
type work struct {
	supervisor *supervise.Supervisor // nil: reference coordinator, no command
	state      *checkpoint.Store     // nil: no checkpoint document
	sealWithin time.Duration
	// afterSeal is waited between the seal and the start of a command that
	// writes the document itself, on a store that limits writes per object.
	afterSeal time.Duration
	// inTerm: lead has not returned. running: the command runs.
	inTerm, running atomic.Bool
}

// lead is coordinator.Lead.
func (w *work) lead(ctx context.Context, t *coordinator.Term) error {
	w.inTerm.Store(true)
	defer w.inTerm.Store(false)
	if w.supervisor == nil {
		w.running.Store(true)
		defer w.running.Store(false)
		<-ctx.Done()
		return nil
	}
	defer w.running.Store(false)
	return w.supervisor.Keep(ctx, t, func(ctx context.Context) error { return w.seal(ctx, t) })
}

// seal makes every version of the document that others know a dead one. It is
// called before every start of the command: without it no work.
func (w *work) seal(ctx context.Context, t *coordinator.Term) error {
	if w.state == nil {
		return nil
	}
	sealing, cancel := context.WithTimeout(ctx, w.sealWithin)
	defer cancel()
	s, err := w.state.Seal(sealing, t)
	if err != nil {
		return fmt.Errorf("seal checkpoint document: %w", err)
	}
	// The command writes the document from now on; this process never does
	// while it runs.
	if err := s.Close(sealing); err != nil {
		return fmt.Errorf("seal checkpoint document: %w", err)
	}
	return wait(ctx, w.afterSeal)
}

// wait waits unless ctx ends first.
func wait(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return nil
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
