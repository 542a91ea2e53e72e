package socketapi

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/sf2loki/sf2loki-ha/checkpoint"
)

// Environment variables of the work.
const (
	// EnvSocket is the path of the socket.
	EnvSocket = "SF2LOKI_HA_SOCKET"
	// EpochHeader is the request header that carries the value of the variable of
	// the same name.
	EpochHeader = "SF2LOKI_HA_EPOCH"
)

// maxPath is the longest path a Unix socket can have on Linux, without the zero
// at its end.
const maxPath = 107

const (
	readHeaderTimeout = 5 * time.Second
	// commitTimeout bounds the store requests of one write: longer than an outage
	// that a term survives.
	commitTimeout = 30 * time.Second
	// maxWait bounds a long poll.
	maxWait = 5 * time.Minute
)

// Term is the term that the server belongs to. *coordinator.Term is one.
type Term interface {
	checkpoint.Term
	// Remaining is the time to the deadline.
	Remaining() time.Duration
}

// Server is the socket of one term. Create it with Listen, give it a session with
// Use before each start of the work, and Close it when the work is gone.
type Server struct {
	term Term
	path string
	http *http.Server
	// stopping ends when the work has been told to end.
	stopping context.Context
	ended    chan struct{}

	mu      sync.Mutex
	session *checkpoint.Session
}

// Listen opens the socket of a term in dir, which has to exist. ctx is the
// context of the term's work: when it ends, long polls are answered.
func Listen(ctx context.Context, dir string, t Term) (*Server, error) {
	// The id is random: a former term's path is never used again, so that what
	// was started for it cannot reach this one.
	path := filepath.Join(dir, t.ID()+".sock")
	if len(path) > maxPath {
		return nil, fmt.Errorf("checkpoint socket %s: %d bytes, a socket's path has at most %d; set service.runtime_dir to a shorter one", path, len(path), maxPath)
	}
	l, err := net.Listen("unix", path)
	if err != nil {
		return nil, fmt.Errorf("checkpoint socket: %w", err)
	}
	if err := os.Chmod(path, 0o600); err != nil {
		return nil, errors.Join(fmt.Errorf("checkpoint socket: %w", err), l.Close())
	}
	s := &Server{term: t, path: path, stopping: ctx, ended: make(chan struct{})}
	s.http = &http.Server{Handler: s.handler(), ReadHeaderTimeout: readHeaderTimeout}
	go func() {
		defer close(s.ended)
		_ = s.http.Serve(l) // it always returns ErrServerClosed
	}()
	return s, nil
}

// Path is the path of the socket.
func (s *Server) Path() string { return s.path }

// Use makes session the one that requests are answered from. nil: there is none
// for the moment.
func (s *Server) Use(session *checkpoint.Session) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.session = session
}

func (s *Server) current() *checkpoint.Session {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.session
}

// Close answers what is under way, until ctx ends, and removes the socket.
func (s *Server) Close(ctx context.Context) error {
	err := s.http.Shutdown(ctx)
	if err != nil {
		err = errors.Join(err, s.http.Close())
	}
	<-s.ended
	return err
}
