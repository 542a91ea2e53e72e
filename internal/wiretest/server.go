package wiretest

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"
)

// Request is one request as it arrived.
type Request struct {
	Method string
	// Target is the request line's target, undecoded: path and query.
	Target string
	Host   string
	Header http.Header
	// ContentLength is -1 where no length was sent.
	ContentLength int64
	// TransferEncoding is "chunked" or "".
	TransferEncoding string
	Body             []byte
}

// Path is the undecoded path of the target.
func (r Request) Path() string {
	path, _, _ := strings.Cut(r.Target, "?")
	return path
}

// Server is a scripted server.
type Server struct {
	t        testing.TB
	listener net.Listener
	wg       sync.WaitGroup

	answer   func(Request) Answer // instead of a script
	stopping chan struct{}

	mu       sync.Mutex
	script   []Answer
	next     int
	requests []Request
	conns    map[net.Conn]struct{}
	closed   bool
}

// Start starts a server that gives these answers. The test's cleanup stops it
// and checks that the script was not exceeded.
func Start(t testing.TB, script ...Answer) *Server {
	t.Helper()
	return start(t, &Server{script: script})
}

// StartFunc starts a server whose answers are made by a function of the request,
// for any number of requests. The function is called once for each, on the
// goroutine of its connection; it may wait. Its answer must not be ResetAtOnce:
// by then the request has been read.
func StartFunc(t testing.TB, answer func(Request) Answer) *Server {
	t.Helper()
	return start(t, &Server{answer: answer})
}

func start(t testing.TB, s *Server) *Server {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatalf("wiretest: %v", err)
	}
	s.t, s.listener, s.conns, s.stopping = t, l, map[net.Conn]struct{}{}, make(chan struct{})
	s.wg.Go(s.accept)
	t.Cleanup(s.stop)
	return s
}

// URL is the base URL, without a slash at the end.
func (s *Server) URL() string { return "http://" + s.listener.Addr().String() }

// Attempts is the number of attempts so far, those beyond the script included.
func (s *Server) Attempts() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.next
}

// Requests are the requests that arrived whole, in order.
func (s *Server) Requests() []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]Request(nil), s.requests...)
}

func (s *Server) stop() {
	s.mu.Lock()
	s.closed = true
	close(s.stopping)
	for c := range s.conns {
		c.Close()
	}
	s.mu.Unlock()
	s.listener.Close()
	s.wg.Wait()
	if s.answer == nil && s.next > len(s.script) {
		s.t.Errorf("wiretest: %d attempts, the script has %d answers", s.next, len(s.script))
	}
}

func (s *Server) accept() {
	for {
		c, err := s.listener.Accept()
		if err != nil {
			return
		}
		s.mu.Lock()
		if s.closed {
			s.mu.Unlock()
			c.Close()
			return
		}
		s.conns[c] = struct{}{}
		s.mu.Unlock()
		atOnce := s.resetsAtOnce()
		s.wg.Go(func() {
			defer func() {
				c.Close()
				s.mu.Lock()
				delete(s.conns, c)
				s.mu.Unlock()
			}()
			if atOnce {
				reset(c)
				return
			}
			s.serve(c)
		})
	}
}

// resetsAtOnce reports whether the next answer does not wait for a request, and
// then counts it as given.
func (s *Server) resetsAtOnce() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.next >= len(s.script) || s.script[s.next].kind != resetAtOnce {
		return false
	}
	s.next++
	return true
}

// serve answers the requests of one connection.
func (s *Server) serve(c net.Conn) {
	in := bufio.NewReader(c)
	for {
		if _, err := in.Peek(1); err != nil {
			return
		}
		if s.resetsAtOnce() {
			reset(c)
			return
		}
		req, err := http.ReadRequest(in)
		if err != nil {
			return
		}
		body, err := io.ReadAll(req.Body)
		if err != nil {
			return
		}
		a := s.arrived(req, body)
		if !s.wait(a.late) {
			return
		}
		switch a.kind {
		case resetAtOnce, resetAfterRequest:
			reset(c)
			return
		case hang:
			_, _ = in.ReadByte() // returns when the client, or stop, closes the connection
			return
		default:
			if _, err := io.WriteString(c, a.bytes()); err != nil {
				return
			}
			if !a.whole() {
				if a.rst {
					reset(c)
				}
				return
			}
		}
	}
}

// arrived keeps a request and returns its answer.
func (s *Server) arrived(req *http.Request, body []byte) Answer {
	r := Request{
		Method: req.Method, Target: req.RequestURI, Host: req.Host, Header: req.Header,
		ContentLength: req.ContentLength, TransferEncoding: strings.Join(req.TransferEncoding, ","),
		Body: body,
	}
	s.mu.Lock()
	s.requests = append(s.requests, r)
	s.next++
	n := s.next
	s.mu.Unlock()
	switch {
	case s.answer != nil:
		return s.answer(r)
	case n > len(s.script):
		return Respond(http.StatusInternalServerError, "")
	}
	return s.script[n-1]
}

// wait reports whether the time passed before the server was stopped.
func (s *Server) wait(d time.Duration) bool {
	if d == 0 {
		return true
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-s.stopping:
		return false
	}
}

// reset makes Close send RST instead of FIN.
func reset(c net.Conn) {
	if tcp, ok := c.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
}
