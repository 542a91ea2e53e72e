package canary

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sf2loki/sf2loki-ha/internal/boottime"
)

func TestReportSaysWhatTheDocumentProves(t *testing.T) {
	pos := func(n int64) *position { return &position{N: n, Epoch: 3, Term: "t", Identity: "r"} }
	for _, c := range []struct {
		name string
		left progress
		want Report
	}{
		{"nothing", progress{}, Report{Verdict: First, First: 1}},
		{"clean stop", progress{pos(10), &intent{11, 10}}, Report{Verdict: Clean, First: 11, Position: 10, Intent: 10}},
		{"stopped before the first record", progress{pos(0), &intent{1, 0}}, Report{Verdict: Clean, First: 1}},
		{"crash", progress{pos(10), &intent{11, 60}}, Report{Verdict: Duplicates, First: 11, Position: 10, Intent: 60, RepeatedAtMost: 50}},
		{"stopped with one record written and not delivered", progress{pos(10), &intent{11, 11}}, Report{Verdict: Duplicates, First: 11, Position: 10, Intent: 11, RepeatedAtMost: 1}},
		{"position lost", progress{nil, &intent{11, 60}}, Report{Verdict: Duplicates, First: 11, Position: 10, Intent: 60, RepeatedAtMost: 50}},
		{"intent lost", progress{pos(10), nil}, Report{Verdict: Unknown, First: 11, Position: 10, Intent: 10}},
		{"set back by hand", progress{pos(4), &intent{11, 60}}, Report{Verdict: Duplicates, First: 5, Position: 4, Intent: 60, RepeatedAtLeast: 6, RepeatedAtMost: 56}},
		{"set forward within the intent", progress{pos(20), &intent{11, 60}}, Report{Verdict: Gap, First: 21, Position: 20, Intent: 60, MissingAtMost: 10, RepeatedAtMost: 40}},
		{"set forward beyond the intent", progress{pos(100), &intent{11, 60}}, Report{Verdict: Gap, First: 101, Position: 100, Intent: 60, MissingAtLeast: 40, MissingAtMost: 90}},
		{"set forward after a clean stop", progress{pos(15), &intent{11, 10}}, Report{Verdict: Gap, First: 16, Position: 15, Intent: 10, MissingAtLeast: 5, MissingAtMost: 5}},
	} {
		got := c.left.report(&envTerm{epoch: 3, id: "t"})
		if c.left.position != nil {
			if got.Predecessor == nil || !got.Predecessor.SameTerm || got.Predecessor.Identity != "r" {
				t.Errorf("%s: predecessor %+v", c.name, got.Predecessor)
			}
			got.Predecessor = nil
		}
		if got != c.want {
			t.Errorf("%s:\n got %+v\nwant %+v", c.name, got, c.want)
		}
	}
}

func TestOneDamagedKeyIsBridgedByTheOther(t *testing.T) {
	for _, c := range []struct {
		position, intent string
		first            int64
		fails            bool
	}{
		{`{"n": 10}`, `{"from": 11, "to": 60}`, 11, false},
		{`{"n": 10}`, `junk`, 11, false},
		{`{"n": 10}`, `{"from": 0, "to": 60}`, 11, false},
		{`{"n": 10}`, `{"from": 11, "to": 9}`, 11, false},
		{`junk`, `{"from": 11, "to": 60}`, 11, false},
		{`{"n": -3}`, `{"from": 11, "to": 60}`, 11, false},
		{``, `{"from": 11, "to": 60}`, 11, false},
		{``, ``, 1, false},
		{`junk`, `junk`, 0, true},
		{`2026-07-01T00:00:00Z`, ``, 0, true},
		{``, `[]`, 0, true},
	} {
		p, err := readProgress(func(key string) (string, bool) {
			v := map[string]string{KeyPosition: c.position, KeyIntent: c.intent}[key]
			return v, v != ""
		})
		if (err != nil) != c.fails {
			t.Errorf("%+v: error %v", c, err)
		}
		if err == nil && p.report(nil).First != c.first {
			t.Errorf("%+v: first %d", c, p.report(nil).First)
		}
		if err != nil && (!strings.Contains(err.Error(), KeyPosition) || !strings.Contains(err.Error(), "delete")) {
			t.Errorf("%+v: %q does not say what to do", c, err)
		}
	}
}

func TestLinesCarryTheActAndWhoActed(t *testing.T) {
	var out bytes.Buffer
	ctx, cancel := context.WithCancel(t.Context())
	before := boottime.Now()
	err := Main(ctx, Options{Interval: time.Hour, Identity: "replica", Term: &envTerm{epoch: 7, id: "t7"}, Out: writerFunc(func(p []byte) (int, error) {
		if bytes.Contains(p, []byte(EventRecord+`"`)) {
			cancel()
		}
		return out.Write(p)
	})})
	after := boottime.Now()
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	if len(lines) != 3 {
		t.Fatalf("lines: %s", &out)
	}
	for i, kind := range []string{EventResumed, EventRecord, EventStopped} {
		var l struct {
			Event    string
			At       string
			BootNS   int64 `json:"boot_ns"`
			Epoch    int64
			Term     string
			Identity string
			PID      int
		}
		if err := json.Unmarshal([]byte(lines[i]), &l); err != nil {
			t.Fatal(err)
		}
		at, err := time.Parse(time.RFC3339Nano, l.At)
		if err != nil || at.Location() != time.UTC {
			t.Errorf("at %q: %v", l.At, err)
		}
		if l.Event != kind || l.Epoch != 7 || l.Term != "t7" || l.Identity != "replica" || l.PID != os.Getpid() {
			t.Errorf("line %d: %s", i, lines[i])
		}
		if act := boottime.Instant(l.BootNS); act < before || act > after {
			t.Errorf("boot_ns %d is not between %d and %d", l.BootNS, before, after)
		}
	}
	if !strings.Contains(lines[1], `"n":1,`) || strings.Contains(lines[1], "verdict") || !strings.Contains(lines[0], `"verdict":"untracked"`) {
		t.Errorf("%s\n%s", lines[0], lines[1])
	}
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }

func TestOutputThatIsGoneEndsTheRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gone := errors.New("broken pipe")
		n := 0
		err := Main(t.Context(), Options{Out: writerFunc(func(p []byte) (int, error) {
			if n++; n > 3 {
				return 0, gone
			}
			return len(p), nil
		})})
		if !errors.Is(err, gone) {
			t.Errorf("error %v", err)
		}
	})
}

func TestPositionFileIsKeptBetweenRuns(t *testing.T) {
	path := filepath.Join(t.TempDir(), "position.json")
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		for range 3 {
			ctx, cancel := context.WithTimeout(t.Context(), 3500*time.Millisecond)
			err := Main(ctx, Options{PositionFile: path, Out: w})
			cancel()
			if err != nil {
				t.Fatal(err)
			}
		}
		if got := records(w.lines); len(got) != 12 || got[11] != 12 {
			t.Errorf("records %v", got)
		}
		if entries, err := os.ReadDir(filepath.Dir(path)); err != nil || len(entries) != 1 {
			t.Errorf("left in the directory: %v, %v", entries, err)
		}
		if err := os.WriteFile(path, []byte(`{"canary:position"`), 0o600); err != nil {
			t.Fatal(err)
		}
		err := Main(t.Context(), Options{PositionFile: path, Out: w})
		if err == nil || !strings.Contains(err.Error(), path) || !strings.Contains(err.Error(), "aside") {
			t.Errorf("damaged file: %v", err)
		}
	})
}

func TestBadOptionsAreRefused(t *testing.T) {
	w := newWorld()
	for _, c := range []struct {
		o    Options
		want string
	}{
		{Options{}, "no output"},
		{Options{Out: w, Interval: -1}, "negative"},
		{Options{Out: w, Checkpoint: w.document()}, "sf2loki-ha run"},
		{Options{Out: w, Checkpoint: w.document(), Term: &envTerm{1, "a"}, PositionFile: "x"}, "one of them"},
		{Options{Out: w, PushURL: "loki:3100"}, "push URL"},
		{Options{Out: w, PushURL: "http://user:secret@[::1"}, "push URL"},
		{Options{Out: w, PushURL: "ftp://user:secret@loki"}, "push URL"},
	} {
		err := Main(t.Context(), c.o)
		if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "secret") {
			t.Errorf("error %v, want one with %q", err, c.want)
		}
	}
}

func TestTermComesFromTheEnvironment(t *testing.T) {
	for _, c := range []struct {
		epoch, id string
		has, ok   bool
	}{
		{"", "", false, true}, {"7", "abc", true, true}, {"7", "", false, false}, {"", "abc", false, false},
		{"0", "abc", false, false}, {"-1", "abc", false, false}, {"x", "abc", false, false}, {"9007199254740992", "abc", false, false},
	} {
		term, err := TermFromEnv(func(name string) string { return map[string]string{EnvEpoch: c.epoch, EnvTerm: c.id}[name] })
		if (err == nil) != c.ok || (term != nil) != c.has {
			t.Errorf("%+v: %v, %v", c, term, err)
		}
		if term != nil && (term.Epoch() != 7 || term.ID() != "abc" || term.CheckFence() != nil) {
			t.Errorf("term %+v", term)
		}
	}
}

func TestPushSpeaksLoki(t *testing.T) {
	type seen struct {
		path, query, user, pass, contentType string
		body                                 []byte
	}
	requests := make(chan seen, 1)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		user, pass, _ := r.BasicAuth()
		requests <- seen{r.URL.Path, r.URL.RawQuery, user, pass, r.Header.Get("Content-Type"), body}
		w.WriteHeader(http.StatusNoContent)
	}))
	defer s.Close()
	at := time.Date(2026, 7, 1, 12, 0, 0, 123456789, time.UTC)
	for suffix, path := range map[string]string{"": "/loki/api/v1/push", "/": "/loki/api/v1/push", "/insert/loki/api/v1/push?x=1": "/insert/loki/api/v1/push"} {
		p, err := newPusher(strings.Replace(s.URL, "http://", "http://me:s3cret@", 1)+suffix, "replica-1", nil)
		if err != nil {
			t.Fatal(err)
		}
		if err := p.push(t.Context(), at, []byte(`{"n":1}`)); err != nil {
			t.Fatal(err)
		}
		got := <-requests
		want := `{"streams":[{"stream":{"identity":"replica-1","job":"sf2loki-ha-canary"},"values":[["1782907200123456789","{\"n\":1}"]]}]}`
		if got.path != path || got.user != "me" || got.pass != "s3cret" || got.contentType != "application/json" || string(got.body) != want {
			t.Errorf("%+v\nbody %s", got, got.body)
		}
	}
}

func TestPushErrorsCarryNoCredentials(t *testing.T) {
	for name, transport := range map[string]http.RoundTripper{
		"transport": transportFunc(func(*http.Request) (*http.Response, error) { return nil, errors.New("connection reset") }),
		"refused": transportFunc(func(r *http.Request) (*http.Response, error) {
			return &http.Response{StatusCode: 400, Body: io.NopCloser(strings.NewReader("entry too far behind")), Request: r}, nil
		}),
	} {
		synctest.Test(t, func(t *testing.T) {
			p, err := newPusher("https://me:s3cret@loki.example/push?token=s3cret#s3cret", "r", transport)
			if err != nil {
				t.Fatal(err)
			}
			err = p.push(t.Context(), time.Now(), []byte("x"))
			if err == nil || strings.Contains(err.Error(), "s3cret") || !strings.Contains(err.Error(), "https://loki.example/push") {
				t.Errorf("%s: %v", name, err)
			}
		})
	}
}

type transportFunc func(*http.Request) (*http.Response, error)

func (f transportFunc) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func TestPushRetriesByStatusWithBounds(t *testing.T) {
	for _, c := range []struct {
		status   int
		header   string
		attempts int
		refused  bool
		atLeast  time.Duration
	}{
		{429, "", 5, false, 1875 * time.Millisecond}, {500, "", 5, false, 1875 * time.Millisecond}, {503, "2", 5, false, 8 * time.Second},
		{503, "3600", 5, false, 40 * time.Second}, {503, "-5", 5, false, 1875 * time.Millisecond},
		{401, "", 5, false, 1875 * time.Millisecond}, {404, "", 5, false, 1875 * time.Millisecond},
		{400, "", 1, true, 0}, {413, "", 1, true, 0}, {301, "", 1, true, 0},
	} {
		synctest.Test(t, func(t *testing.T) {
			attempts := 0
			p, err := newPusher("http://loki", "r", transportFunc(func(r *http.Request) (*http.Response, error) {
				attempts++
				return &http.Response{StatusCode: c.status, Body: http.NoBody, Request: r, Header: http.Header{"Retry-After": {c.header}, "Location": {"http://elsewhere/"}}}, nil
			}))
			if err != nil {
				t.Fatal(err)
			}
			begin := time.Now()
			err = p.push(t.Context(), begin, []byte("x"))
			if err == nil || attempts != c.attempts || errors.Is(err, errRefused) != c.refused {
				t.Errorf("%+v: error %v after %d attempts", c, err, attempts)
			}
			if took := time.Since(begin); took < c.atLeast || took > 2*c.atLeast+time.Second {
				t.Errorf("%+v: took %v", c, took)
			}
		})
	}
}

func TestRecordIsNotCommittedBeforeItIsPushed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		w.pushStatus, w.pushFails = 503, 7
		if err := w.run(t, 1, 30*time.Second, 0, false, push); err != nil {
			t.Fatal(err)
		}
		if len(events(w.lines, EventPushFailed)) != 1 {
			t.Errorf("%d push failures, want one round of five", len(events(w.lines, EventPushFailed)))
		}
		n := records(w.pushed)
		noGap(t, "endpoint", n)
		if int64(len(n)) != n[len(n)-1] || len(records(w.lines)) != len(n) {
			t.Errorf("%d pushed, %d written", len(n), len(records(w.lines)))
		}
	})

	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		w.pushStatus, w.pushFails = 503, 1<<30
		if err := w.run(t, 1, 30*time.Second, 0, false, push); err != nil {
			t.Fatal(err)
		}
		last := w.lines[len(w.lines)-1]
		if got := records(w.lines); len(got) != 1 || last.Event != EventStopped || last.Committed != 0 || last.N != 0 {
			t.Errorf("records %v, last line %+v", got, last)
		}
		w.pushFails = 0
		if err := w.run(t, 2, time.Second, 0, false, push); err != nil {
			t.Fatal(err)
		}
		resumed := events(w.lines, EventResumed)[1]
		if resumed.Verdict != Duplicates || resumed.First != 1 || resumed.RepeatedAtMost != 1 {
			t.Errorf("resumed %+v", resumed.Report)
		}
	})
}

func TestRefusedRecordEndsTheRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		w.pushStatus, w.pushFails = 400, 1<<30
		if err := w.run(t, 1, 30*time.Second, 0, false, push); !errors.Is(err, errRefused) || errors.Is(err, ErrFenced) {
			t.Errorf("error %v", err)
		}
	})
}
