package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"syscall"
	"time"
)

// Reasons of a replica that is not ready.
const (
	// NotReady: never led yet, or leading and the work does not run.
	NotReady = "not ready"
	// Standby: another replica leads, or is about to.
	Standby = "standby"
)

const (
	// readHeaderTimeout is what a client gets to send its request head. A client
	// that connects and says nothing must not hold a descriptor for ever.
	readHeaderTimeout = 5 * time.Second
	readTimeout       = 10 * time.Second
	// writeTimeout leaves room for a scrape over a slow line.
	writeTimeout   = 30 * time.Second
	idleTimeout    = 60 * time.Second
	maxHeaderBytes = 16 << 10
)

// Status is the readiness of this replica at one instant.
type Status struct {
	// Ready: this replica leads and its work runs.
	Ready bool
	// Reason is the answer while not ready; "" means NotReady.
	Reason string
}

// Config is what a Server needs.
type Config struct {
	// Addr is [host]:port; an empty host is every interface, port 0 any free
	// port. Required.
	Addr string
	// Status answers /readyz; nil is never ready.
	Status func() Status
	// Stuck answers /healthz: an error means that the process no longer works
	// and should be restarted. Nil is never stuck.
	Stuck func() error
	// Metrics answers /metrics; nil is 404.
	Metrics http.Handler
	// Log gets errors of connections, at debug. Nil logs nothing.
	Log *slog.Logger
}

// Server serves the paths of the package comment.
type Server struct {
	config Config
	http   *http.Server
	addr   net.Addr
	failed chan error
}

// New returns a server that does not listen yet.
func New(c Config) *Server {
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	s := &Server{config: c, failed: make(chan error, 1)}
	s.http = &http.Server{
		Handler:           http.HandlerFunc(s.serve),
		ReadHeaderTimeout: readHeaderTimeout,
		ReadTimeout:       readTimeout,
		WriteTimeout:      writeTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    maxHeaderBytes,
		ErrorLog:          slog.NewLogLogger(c.Log.Handler(), slog.LevelDebug),
	}
	return s
}

// Start listens on the configured address and serves until Shutdown. An error
// means that the address cannot be used, and says what to do.
func (s *Server) Start() error {
	l, err := net.Listen("tcp", s.config.Addr)
	if err != nil {
		return fmt.Errorf("health server: listen on %q: %w; %s", s.config.Addr, err, hint(err))
	}
	s.serveOn(l)
	return nil
}

func (s *Server) serveOn(l net.Listener) {
	s.addr = l.Addr()
	go func() {
		if err := s.http.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			s.failed <- fmt.Errorf("health server: %w", err)
		}
	}()
}

// Addr is the address the server listens on, after Start.
func (s *Server) Addr() string { return s.addr.String() }

// Failed delivers one error if the server stops by itself.
func (s *Server) Failed() <-chan error { return s.failed }

// Shutdown stops listening and waits for answers under way until ctx ends, then
// cuts them off. It always leaves the server stopped.
func (s *Server) Shutdown(ctx context.Context) error {
	if err := s.http.Shutdown(ctx); err != nil {
		return errors.Join(fmt.Errorf("health server: shutdown: %w", err), s.http.Close())
	}
	return nil
}

func hint(err error) string {
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return "another process has that port; set service.health_addr to a free one (port 0 takes any)"
	case errors.Is(err, syscall.EACCES):
		return "ports below 1024 need a privilege; set service.health_addr to a higher one"
	case errors.Is(err, syscall.EADDRNOTAVAIL):
		return "this machine has no such address; leave the host in service.health_addr empty for every interface"
	}
	return "service.health_addr is [host]:port"
}

// serve answers one request.
func (s *Server) serve(w http.ResponseWriter, r *http.Request) {
	var answer func(http.ResponseWriter, *http.Request)
	switch r.URL.Path {
	case "/healthz", "/health":
		answer = s.health
	case "/readyz", "/ready":
		answer = s.ready
	case "/metrics":
		if s.config.Metrics != nil {
			answer = s.config.Metrics.ServeHTTP
		}
	}
	switch {
	case answer == nil, r.URL.RawQuery != "" && r.URL.Path != "/metrics":
		text(w, http.StatusNotFound, "not found")
	case r.Method != http.MethodGet && r.Method != http.MethodHead:
		w.Header().Set("Allow", "GET, HEAD")
		text(w, http.StatusMethodNotAllowed, "method not allowed")
	default:
		answer(w, r)
	}
}

func (s *Server) health(w http.ResponseWriter, _ *http.Request) {
	if s.config.Stuck != nil {
		if err := s.config.Stuck(); err != nil {
			text(w, http.StatusServiceUnavailable, "stuck: "+err.Error())
			return
		}
	}
	text(w, http.StatusOK, "ok")
}

func (s *Server) ready(w http.ResponseWriter, _ *http.Request) {
	var status Status
	if s.config.Status != nil {
		status = s.config.Status()
	}
	switch {
	case status.Ready:
		text(w, http.StatusOK, "ready")
	case status.Reason == "":
		text(w, http.StatusServiceUnavailable, NotReady)
	default:
		text(w, http.StatusServiceUnavailable, status.Reason)
	}
}

// text writes a one-line answer, without a newline, as sf2loki does. It is never
// cached: it was true only now.
func text(w http.ResponseWriter, status int, body string) {
	h := w.Header()
	h.Set("Content-Type", "text/plain; charset=utf-8")
	h.Set("Cache-Control", "no-store")
	h.Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(status)
	// A client that is gone is no concern of ours.
	_, _ = w.Write([]byte(body))
}
