package server

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

func get(t *testing.T, s *Server, method, target string) (int, string, http.Header) {
	t.Helper()
	r := httptest.NewRequest(method, target, nil)
	w := httptest.NewRecorder()
	s.http.Handler.ServeHTTP(w, r)
	return w.Code, w.Body.String(), w.Header()
}

func TestPathsAnswerExactly(t *testing.T) {
	metrics := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, "metrics "+r.URL.RawQuery) })
	leader := New(Config{Status: func() Status { return Status{Ready: true, Reason: "ignored"} }, Metrics: metrics})
	standby := New(Config{Status: func() Status { return Status{Reason: Standby} }, Metrics: metrics})
	starting := New(Config{})
	for _, c := range []struct {
		name   string
		s      *Server
		target string
		status int
		body   string
	}{
		{"leader", leader, "/readyz", 200, "ready"},
		{"leader", leader, "/ready", 200, "ready"},
		{"leader", leader, "/healthz", 200, "ok"},
		{"leader", leader, "/health", 200, "ok"},
		{"leader", leader, "/metrics", 200, "metrics "},
		{"leader", leader, "/metrics?name%5B%5D=x", 200, "metrics name%5B%5D=x"},
		{"standby", standby, "/readyz", 503, "standby"},
		{"standby", standby, "/ready", 503, "standby"},
		{"standby", standby, "/healthz", 200, "ok"},
		{"standby", standby, "/health", 200, "ok"},
		{"starting", starting, "/readyz", 503, "not ready"},
		{"starting", starting, "/healthz", 200, "ok"},
		{"starting", starting, "/metrics", 404, "not found"},
		{"leader", leader, "/", 404, "not found"},
		{"leader", leader, "/readyz?x=1", 404, "not found"},
		{"leader", leader, "/readyz/", 404, "not found"},
		{"leader", leader, "//readyz", 404, "not found"},
		{"leader", leader, "/x/../readyz", 404, "not found"},
		{"leader", leader, "/READYZ", 404, "not found"},
		{"leader", leader, "/debug/pprof/", 404, "not found"},
	} {
		status, body, _ := get(t, c.s, "GET", c.target)
		if status != c.status || body != c.body {
			t.Errorf("%s %s: %d %q, want %d %q", c.name, c.target, status, body, c.status, c.body)
		}
	}
}

func TestReadinessIsComputedWhenAsked(t *testing.T) {
	now := Status{}
	s := New(Config{Status: func() Status { return now }})
	for _, c := range []struct {
		is     Status
		status int
		body   string
	}{
		{Status{}, 503, "not ready"},
		{Status{Reason: Standby}, 503, "standby"},
		{Status{Ready: true}, 200, "ready"},
		{Status{Reason: "degraded: work failing"}, 503, "degraded: work failing"},
		{Status{Ready: true}, 200, "ready"},
	} {
		now = c.is
		if status, body, h := get(t, s, "GET", "/readyz"); status != c.status || body != c.body || h.Get("Cache-Control") != "no-store" {
			t.Errorf("%+v: %d %q", c.is, status, body)
		}
	}
}

func TestHealthFailsOnlyWhenStuck(t *testing.T) {
	var stuck error
	s := New(Config{Stuck: func() error { return stuck }, Status: func() Status { return Status{Reason: Standby} }})
	if status, _, _ := get(t, s, "GET", "/healthz"); status != 200 {
		t.Errorf("a standby that works: %d", status)
	}
	stuck = errors.New("no election step for 45s")
	for _, path := range []string{"/healthz", "/health"} {
		if status, body, _ := get(t, s, "GET", path); status != 503 || body != "stuck: no election step for 45s" {
			t.Errorf("%s: %d %q", path, status, body)
		}
	}
	stuck = nil
	if status, _, _ := get(t, s, "GET", "/healthz"); status != 200 {
		t.Errorf("after it recovered: %d", status)
	}
}

func TestOnlyGetAndHead(t *testing.T) {
	s := New(Config{Status: func() Status { return Status{Ready: true} }})
	for _, method := range []string{"POST", "PUT", "DELETE", "OPTIONS", "PATCH"} {
		if status, _, h := get(t, s, method, "/readyz"); status != 405 || h.Get("Allow") != "GET, HEAD" {
			t.Errorf("%s: %d", method, status)
		}
	}
	if status, _, _ := get(t, s, "HEAD", "/readyz"); status != 200 {
		t.Errorf("HEAD: %d", status)
	}
}

func TestBindErrorsSayWhatToDo(t *testing.T) {
	taken := New(Config{Addr: "127.0.0.1:0"})
	if err := taken.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = taken.Shutdown(t.Context()) }()
	for addr, want := range map[string]string{
		taken.Addr():      "another process has that port",
		"192.0.2.1:8080":  "no such address",
		"8080":            "[host]:port",
		"127.0.0.1:http1": "[host]:port",
	} {
		err := New(Config{Addr: addr}).Start()
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), addr) || !strings.Contains(err.Error(), "service.health_addr") {
			t.Errorf("%s: error %v, want one with %q", addr, err, want)
		}
	}
}

func TestServesOverARealSocketAndStops(t *testing.T) {
	s := New(Config{Addr: "127.0.0.1:0", Status: func() Status { return Status{Ready: true} }})
	if err := s.Start(); err != nil {
		t.Fatal(err)
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := client.Get("http://" + s.Addr() + "/readyz")
	if err != nil {
		t.Fatal(err)
	}
	body, _ := io.ReadAll(resp.Body)
	_ = resp.Body.Close()
	if resp.StatusCode != 200 || string(body) != "ready" {
		t.Errorf("%d %q", resp.StatusCode, body)
	}
	if err := s.Shutdown(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := client.Get("http://" + s.Addr() + "/readyz"); err == nil {
		t.Error("answers after shutdown")
	}
	select {
	case err := <-s.Failed():
		t.Errorf("a requested stop counts as failure: %v", err)
	default:
	}
}

// pipes is a listener of connections in memory, for fake time.
type pipes struct {
	conns  chan net.Conn
	once   sync.Once
	closed chan struct{}
}

func newPipes() *pipes { return &pipes{conns: make(chan net.Conn), closed: make(chan struct{})} }

func (p *pipes) dial() net.Conn {
	client, server := net.Pipe()
	p.conns <- server
	return client
}

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error   { p.once.Do(func() { close(p.closed) }); return nil }
func (p *pipes) Addr() net.Addr { return &net.TCPAddr{} }

func TestClientThatSendsNothingIsCutOff(t *testing.T) {
	for name, send := range map[string]string{"nothing": "", "half a head": "GET /healthz HTTP/1.1\r\nHost:"} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, l := New(Config{}), newPipes()
				s.serveOn(l)
				c := l.dial()
				defer func() { _ = c.Close() }()
				start := time.Now()
				if _, err := io.WriteString(c, send); err != nil {
					t.Fatal(err)
				}
				if _, err := io.ReadAll(c); err != nil {
					t.Fatal(err)
				}
				if took := time.Since(start); took != readHeaderTimeout {
					t.Errorf("cut off after %v, want %v", took, readHeaderTimeout)
				}
				if err := s.Shutdown(t.Context()); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

func TestIdleConnectionIsClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, l := New(Config{}), newPipes()
		s.serveOn(l)
		c := l.dial()
		defer func() { _ = c.Close() }()
		if _, err := io.WriteString(c, "GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		in := bufio.NewReader(c)
		resp, err := http.ReadResponse(in, nil)
		if err != nil || resp.StatusCode != 200 {
			t.Fatalf("%v, %v", resp, err)
		}
		start := time.Now()
		if _, err := io.ReadAll(in); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(start); took != idleTimeout {
			t.Errorf("closed after %v, want %v", took, idleTimeout)
		}
		if err := s.Shutdown(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

func TestShutdownIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		s, l := New(Config{Metrics: http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-release })}), newPipes()
		s.serveOn(l)
		c := l.dial()
		if _, err := io.WriteString(c, "GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		start := time.Now()
		if err := s.Shutdown(ctx); !errors.Is(err, context.DeadlineExceeded) || time.Since(start) != 2*time.Second {
			t.Errorf("shutdown: %v after %v", err, time.Since(start))
		}
		if _, err := io.ReadAll(c); err != nil {
			t.Errorf("the connection was not cut: %v", err)
		}
		close(release)
	})
}

func TestServerThatStopsByItselfSaysSo(t *testing.T) {
	s, l := New(Config{}), newPipes()
	s.serveOn(l)
	_ = l.Close()
	if err := <-s.Failed(); err == nil || !strings.HasPrefix(err.Error(), "health server: ") {
		t.Errorf("error %v", err)
	}
}
