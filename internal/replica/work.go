package replica

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync/atomic"
	"time"

	"github.com/sf2loki/sf2loki-ha/checkpoint"
	"github.com/sf2loki/sf2loki-ha/coordinator"
	"github.com/sf2loki/sf2loki-ha/internal/childconfig"
	"github.com/sf2loki/sf2loki-ha/internal/socketapi"
	"github.com/sf2loki/sf2loki-ha/internal/supervise"
)

// closeSocket bounds the answers that are under way when the work is gone: they
// are the final commits, and the lease waits for them.
const closeSocket = 2 * time.Second

// work is what a leader does: seal the checkpoint document, then keep the
// command running, for as long as the term lasts.
type work struct {
	command    *supervise.Config // nil: reference coordinator, no command
	state      *checkpoint.Store // nil: no checkpoint document
	sealWithin time.Duration
	// afterSeal is waited between the seal and the start of a command that
	// writes the document itself, on a store that limits writes per object.
	afterSeal time.Duration
	// socketDir takes the checkpoint socket; "": the command gets none.
	socketDir string
	// child makes the command's own configuration; nil: it gets none.
	child *childConfig
	log   *slog.Logger
	// inTerm: lead has not returned. running: the command runs.
	inTerm, running atomic.Bool
}

// lead is coordinator.Lead.
func (w *work) lead(ctx context.Context, t *coordinator.Term) (err error) {
	w.inTerm.Store(true)
	defer w.inTerm.Store(false)
	if w.command == nil {
		w.running.Store(true)
		defer w.running.Store(false)
		<-ctx.Done()
		return nil
	}
	defer w.running.Store(false)
	cfg, prepare := *w.command, func(ctx context.Context) error { return w.seal(ctx, t) }
	if w.child != nil {
		path, err := w.child.write()
		if err != nil {
			return err
		}
		defer w.child.remove(path)
		cfg.Command = childconfig.Command(cfg.Command, path)
		cfg.Environ = w.child.environ
	}
	if w.socketDir != "" && w.state != nil {
		socket, err := socketapi.Listen(ctx, w.socketDir, t)
		if err != nil {
			return err
		}
		s := &served{work: w, term: t, socket: socket}
		defer s.close()
		cfg.Env = append(slices.Clone(cfg.Env), socketapi.EnvSocket+"="+socket.Path())
		prepare = s.prepare
	}
	// A supervisor is made for each term: nothing of a former one is reused.
	supervisor, err := supervise.New(cfg)
	if err != nil {
		return err
	}
	return supervisor.Keep(ctx, t, prepare)
}

// seal makes every version of the document that others know a dead one. It is
// called before every start of the command: without it no work.
func (w *work) seal(ctx context.Context, t *coordinator.Term) error {
	if w.state == nil {
		return nil
	}
	s, err := w.sealed(ctx, t)
	if err != nil {
		return err
	}
	// The command writes the document from now on; this process never does
	// while it runs.
	if err := s.Close(ctx); err != nil {
		return fmt.Errorf("seal checkpoint document: %w", err)
	}
	return wait(ctx, w.afterSeal)
}

func (w *work) sealed(ctx context.Context, t *coordinator.Term) (*checkpoint.Session, error) {
	sealing, cancel := context.WithTimeout(ctx, w.sealWithin)
	defer cancel()
	s, err := w.state.Seal(sealing, t)
	if err != nil {
		return nil, fmt.Errorf("seal checkpoint document: %w", err)
	}
	return s, nil
}

// served is the document behind the socket of one term.
type served struct {
	work    *work
	term    *coordinator.Term
	socket  *socketapi.Server
	session *checkpoint.Session
}

// prepare seals before a start. The session of the run before, whose processes
// are gone, ends first: what it left under way is not this run's.
func (s *served) prepare(ctx context.Context) error {
	if err := s.end(ctx); err != nil {
		return err
	}
	session, err := s.work.sealed(ctx, s.term)
	if err != nil {
		return err
	}
	s.session = session
	s.socket.Use(session)
	return nil
}

func (s *served) end(ctx context.Context) error {
	s.socket.Use(nil)
	if s.session == nil {
		return nil
	}
	if err := s.session.Close(ctx); err != nil {
		return fmt.Errorf("end of the checkpoint session: %w", err)
	}
	s.session = nil
	return nil
}

// close ends the socket of a term whose work is gone.
func (s *served) close() {
	ctx, cancel := context.WithTimeout(context.Background(), closeSocket)
	defer cancel()
	if err := errors.Join(s.socket.Close(ctx), s.end(ctx)); err != nil {
		s.work.log.Warn("checkpoint socket", "error", err.Error())
	}
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
