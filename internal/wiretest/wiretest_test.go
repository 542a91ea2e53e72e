package wiretest_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/sf2loki/sf2loki-ha/internal/wiretest"
)

func put(t *testing.T, ctx context.Context, url, body string) (*http.Response, string, error) {
	t.Helper()
	req, err := http.NewRequestWithContext(ctx, http.MethodPut, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	c := &http.Client{Transport: &http.Transport{}}
	defer c.CloseIdleConnections()
	resp, err := c.Do(req)
	if err != nil {
		return nil, "", err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	return resp, string(b), err
}

func TestAnswersComeInOrderAndRequestsAreKept(t *testing.T) {
	s := wiretest.Start(t, wiretest.Respond(412, "no", "X-A: b"), wiretest.Respond(200, ""))
	resp, body, err := put(t, t.Context(), s.URL()+"/a%2Fb?x=1", "hello")
	if err != nil || resp.StatusCode != 412 || body != "no" || resp.Header.Get("X-A") != "b" {
		t.Fatalf("%v %q %v", resp, body, err)
	}
	if resp, _, err = put(t, t.Context(), s.URL()+"/2", ""); err != nil || resp.StatusCode != 200 {
		t.Fatalf("%v %v", resp, err)
	}
	got := s.Requests()
	if s.Attempts() != 2 || len(got) != 2 {
		t.Fatalf("%d attempts, %d requests", s.Attempts(), len(got))
	}
	if r := got[0]; r.Method != "PUT" || r.Target != "/a%2Fb?x=1" || r.Path() != "/a%2Fb" || string(r.Body) != "hello" || r.ContentLength != 5 {
		t.Errorf("%+v", r)
	}
}

func TestCutBodyIsAnUnexpectedEnd(t *testing.T) {
	s := wiretest.Start(t, wiretest.Respond(200, "0123456789").Cut(4))
	_, body, err := put(t, t.Context(), s.URL(), "")
	if !errors.Is(err, io.ErrUnexpectedEOF) || body != "0123" {
		t.Errorf("%q %v", body, err)
	}
}

func TestAnAnswerCanEndAnywhere(t *testing.T) {
	const statusLine = len("HTTP/1.1 200 OK\r\n")
	whole := wiretest.Respond(200, "0123456789", "X-A: b")
	for name, tt := range map[string]struct {
		answer wiretest.Answer
		body   string
		want   error
	}{
		"in the head":                   {whole.CutHead(statusLine), "", io.ErrUnexpectedEOF},
		"in the body, by a reset":       {whole.Cut(4).ByReset(), "", syscall.ECONNRESET},
		"of a chunked body, whole":      {whole.Chunked(), "0123456789", nil},
		"of a chunked body, in a chunk": {whole.Chunked().Cut(3 + 4), "0123", io.ErrUnexpectedEOF},
		"before the last chunk":         {whole.Chunked().Cut(3 + 10 + 2), "0123456789", io.ErrUnexpectedEOF},
	} {
		t.Run(name, func(t *testing.T) {
			s := wiretest.Start(t, tt.answer)
			_, body, err := put(t, t.Context(), s.URL(), "")
			if !errors.Is(err, tt.want) {
				t.Errorf("%v, want %v", err, tt.want)
			}
			// A reset may overtake what was sent before it.
			if body != tt.body && tt.want != syscall.ECONNRESET {
				t.Errorf("%q", body)
			}
		})
	}
}

func TestALateAnswerComesAfterItsTime(t *testing.T) {
	const late = 80 * time.Millisecond
	s := wiretest.Start(t, wiretest.Respond(200, "").After(late), wiretest.Respond(200, "").After(time.Hour))
	begun := time.Now()
	if _, _, err := put(t, t.Context(), s.URL(), ""); err != nil || time.Since(begun) < late {
		t.Errorf("%v after %v", err, time.Since(begun))
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, _, err := put(t, ctx, s.URL(), ""); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%v", err)
	}
}

func TestAnswersCanBeMadeOfTheRequest(t *testing.T) {
	s := wiretest.StartFunc(t, func(r wiretest.Request) wiretest.Answer {
		if string(r.Body) == "drop" {
			return wiretest.ResetAfterRequest()
		}
		return wiretest.Respond(200, r.Path()+" "+string(r.Body))
	})
	for range 2 {
		if _, body, err := put(t, t.Context(), s.URL()+"/a", "x"); err != nil || body != "/a x" {
			t.Errorf("%q %v", body, err)
		}
	}
	if _, _, err := put(t, t.Context(), s.URL(), "drop"); err == nil {
		t.Error("no reset")
	}
	if s.Attempts() != 3 {
		t.Errorf("%d attempts", s.Attempts())
	}
}

func TestResets(t *testing.T) {
	for name, tt := range map[string]struct {
		answer   wiretest.Answer
		requests int
	}{
		"at once":       {wiretest.ResetAtOnce(), 0},
		"after request": {wiretest.ResetAfterRequest(), 1},
	} {
		t.Run(name, func(t *testing.T) {
			s := wiretest.Start(t, tt.answer)
			_, _, err := put(t, t.Context(), s.URL(), "hello")
			if !errors.Is(err, syscall.ECONNRESET) && !errors.Is(err, syscall.EPIPE) && !errors.Is(err, io.EOF) {
				t.Errorf("%v", err)
			}
			if s.Attempts() != 1 || len(s.Requests()) != tt.requests {
				t.Errorf("%d attempts, %d requests", s.Attempts(), len(s.Requests()))
			}
		})
	}
}

func TestAResetAtOnceMeetsAKeptConnectionToo(t *testing.T) {
	s := wiretest.Start(t, wiretest.Respond(200, ""), wiretest.ResetAtOnce())
	c := &http.Client{Transport: &http.Transport{}}
	defer c.CloseIdleConnections()
	for i := range 2 {
		resp, err := c.Post(s.URL(), "text/plain", strings.NewReader("hello"))
		if (err == nil) != (i == 0) {
			t.Errorf("request %d: %v", i+1, err)
		}
		if err == nil {
			resp.Body.Close()
		}
	}
	if s.Attempts() != 2 || len(s.Requests()) != 1 {
		t.Errorf("%d attempts, %d requests", s.Attempts(), len(s.Requests()))
	}
}

func TestHangEndsWithTheClient(t *testing.T) {
	s := wiretest.Start(t, wiretest.Hang())
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, _, err := put(t, ctx, s.URL(), "x"); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%v", err)
	}
}

// recorder is a testing.TB that keeps its failures to itself.
type recorder struct {
	testing.TB
	failed  bool
	cleanup []func()
}

func (r *recorder) Errorf(string, ...any) { r.failed = true }
func (r *recorder) Cleanup(f func())      { r.cleanup = append(r.cleanup, f) }

func TestAnAttemptBeyondTheScriptFailsTheTest(t *testing.T) {
	rec := &recorder{TB: t}
	s := wiretest.Start(rec, wiretest.Respond(200, ""))
	for range 2 {
		if _, _, err := put(t, t.Context(), s.URL(), ""); err != nil {
			t.Fatal(err)
		}
	}
	for _, f := range rec.cleanup {
		f()
	}
	if !rec.failed || s.Attempts() != 2 {
		t.Errorf("failed %v after %d attempts", rec.failed, s.Attempts())
	}
}
