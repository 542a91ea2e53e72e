package socketapi

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sf2loki/sf2loki-ha/cas"
	"github.com/sf2loki/sf2loki-ha/cas/mem"
	"github.com/sf2loki/sf2loki-ha/checkpoint"
	"github.com/sf2loki/sf2loki-ha/internal/faultcas"
)

// term is a term that a test ends.
type term struct {
	epoch int64
	id    string

	mu   sync.Mutex
	over error
}

func (t *term) Epoch() int64             { return t.epoch }
func (t *term) ID() string               { return t.id }
func (t *term) Remaining() time.Duration { return 4200 * time.Millisecond }
func (t *term) CheckFence() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.over
}

func (t *term) end(err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.over = err
}

// fixture is a socket in front of a document in memory.
type fixture struct {
	t      *testing.T
	term   *term
	reg    *faultcas.Register
	plain  cas.Register
	server *Server
	stop   context.CancelFunc
	http   *http.Client
}

func serve(t *testing.T) *fixture {
	t.Helper()
	store := mem.New()
	f := &fixture{t: t, term: &term{epoch: 7, id: "term-7"}, plain: store.Open().Register("state.json")}
	f.reg = faultcas.Wrap(store.Open().Register("state.json"), nil)
	session, err := checkpoint.Open(f.reg, checkpoint.WithCallTimeout(time.Second)).Seal(t.Context(), f.term)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	f.stop = stop
	if f.server, err = Listen(ctx, t.TempDir(), f.term); err != nil {
		t.Fatal(err)
	}
	f.server.Use(session)
	f.http = NewClient(f.server.Path(), 7).http
	t.Cleanup(func() {
		stop()
		f.http.CloseIdleConnections()
		_ = f.server.Close(context.WithoutCancel(t.Context()))
	})
	return f
}

// do sends one request and returns status and body.
func (f *fixture) do(method, path, body, epoch string) (int, string) {
	f.t.Helper()
	req, err := http.NewRequestWithContext(f.t.Context(), method, "http://socket"+path, strings.NewReader(body))
	if err != nil {
		f.t.Fatal(err)
	}
	if epoch != "" {
		req.Header.Set(EpochHeader, epoch)
	}
	resp, err := f.http.Do(req)
	if err != nil {
		f.t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		f.t.Fatal(err)
	}
	return resp.StatusCode, string(text)
}

// stored is the value of a key in the store itself.
func (f *fixture) stored(key string) (string, bool) {
	f.t.Helper()
	v, err := f.plain.Load(f.t.Context())
	if err != nil {
		f.t.Fatal(err)
	}
	doc, err := checkpoint.ParseDocument(v.Data)
	if err != nil {
		f.t.Fatal(err)
	}
	return doc.Get(key)
}

func TestKeysAndValuesOfAnyKindRoundTrip(t *testing.T) {
	f := serve(t)
	for key, value := range map[string]string{
		"plain": "value", "org=a:eventlogfile:Login": `{"last":"2026"}`, "a/b": "slash", "a//../b": "path", "ключ ✓": "значение 🚀", "with?query#and%25": "x",
		"empty": "", "lines": "a\nb\r\n\x00c", strings.Repeat("k", 5000): strings.Repeat("v", 1<<20), ".": "dot", "..": "dots", "%2F": "an escape itself",
	} {
		path := checkpointsPath + "/" + url.PathEscape(key)
		if key == "." || key == ".." {
			path = checkpointsPath + "/" + strings.ReplaceAll(key, ".", "%2E")
		}
		if status, body := f.do("PUT", path, value, "7"); status != http.StatusNoContent {
			t.Fatalf("%.40q: %d %s", key, status, body)
		}
		if status, body := f.do("GET", path, "", "7"); status != http.StatusOK || body != value {
			t.Errorf("%.40q: %d %.60q, want %.60q", key, status, body, value)
		}
		if got, ok := f.stored(key); !ok || got != value {
			t.Errorf("%.40q is not in the store", key)
		}
		if status, _ := f.do("DELETE", path, "", "7"); status != http.StatusNoContent {
			t.Errorf("%.40q is not deleted: %d", key, status)
		}
		if status, _ := f.do("GET", path, "", "7"); status != http.StatusNotFound {
			t.Errorf("%.40q is still there: %d", key, status)
		}
	}
}

func TestSeveralKeysAreStoredInOneWrite(t *testing.T) {
	f := serve(t)
	before := f.reg.Calls(faultcas.Replace)
	c := NewClient(f.server.Path(), 7)
	defer c.Close()
	if err := c.Store(t.Context(), map[string]string{"a": "1", "b": "2"}); err != nil {
		t.Fatal(err)
	}
	all, err := c.All(t.Context())
	if err != nil || len(all) != 2 || all["a"] != "1" || all["b"] != "2" {
		t.Errorf("%v, %v", all, err)
	}
	if n := f.reg.Calls(faultcas.Replace) - before; n != 1 {
		t.Errorf("%d writes", n)
	}
}

func TestWhatIsRefusedAndWhy(t *testing.T) {
	for name, c := range map[string]struct {
		method, path, body, epoch string
		status                    int
		code                      string
	}{
		"another epoch":               {"PUT", "/v1/checkpoints/k", "v", "6", 409, CodeOtherEpoch},
		"a later epoch":               {"GET", "/v1/term", "", "8", 409, CodeOtherEpoch},
		"no epoch":                    {"PUT", "/v1/checkpoints/k", "v", "", 400, CodeBadRequest},
		"an epoch that is junk":       {"PUT", "/v1/checkpoints/k", "v", "07", 409, CodeOtherEpoch},
		"a reserved key":              {"PUT", "/v1/checkpoints/__fence_epoch__", "1", "7", 400, CodeBadRequest},
		"deleting the fence":          {"DELETE", "/v1/checkpoints/__fence__", "", "7", 400, CodeBadRequest},
		"reading the fence":           {"GET", "/v1/checkpoints/__fence__", "", "7", 404, CodeNotFound},
		"patching the fence":          {"PATCH", "/v1/checkpoints", `{"__fence__":"x"}`, "7", 400, CodeBadRequest},
		"a value that is no text":     {"PUT", "/v1/checkpoints/k", "\xff", "7", 400, CodeBadRequest},
		"a key that is no text":       {"PUT", "/v1/checkpoints/%ff", "v", "7", 400, CodeBadRequest},
		"an empty key":                {"PUT", "/v1/checkpoints/", "v", "7", 400, CodeBadRequest},
		"a number for a value":        {"PATCH", "/v1/checkpoints", `{"k":1}`, "7", 400, CodeBadRequest},
		"null for all values":         {"PATCH", "/v1/checkpoints", `null`, "7", 400, CodeBadRequest},
		"no JSON":                     {"PATCH", "/v1/checkpoints", `{`, "7", 400, CodeBadRequest},
		"a key that is not there":     {"GET", "/v1/checkpoints/no", "", "7", 404, CodeNotFound},
		"another path":                {"GET", "/v2", "", "7", 400, CodeBadRequest},
		"a path that is nearly right": {"GET", "/v1/checkpoint/k", "", "7", 400, CodeBadRequest},
		"null for a value":            {"PATCH", "/v1/checkpoints", `{"k":null}`, "7", 400, CodeBadRequest},
		"another method":              {"POST", "/v1/checkpoints/k", "v", "7", 405, CodeBadRequest},
		"a term that is written":      {"PUT", "/v1/term", "v", "7", 405, CodeBadRequest},
		"a wait that is none":         {"GET", "/v1/term?wait=soon", "", "7", 400, CodeBadRequest},
		"a value too large":           {"PUT", "/v1/checkpoints/k", strings.Repeat("x", cas.MaxSize+1), "7", 413, CodeTooLarge},
	} {
		t.Run(name, func(t *testing.T) {
			f := serve(t)
			before := f.reg.Calls(faultcas.Replace)
			status, body := f.do(c.method, c.path, c.body, c.epoch)
			var failure Failure
			if err := json.Unmarshal([]byte(body), &failure); err != nil || status != c.status || failure.Code != c.code || failure.Error == "" {
				t.Errorf("%d %s, %v; want %d %s", status, body, err, c.status, c.code)
			}
			if n := f.reg.Calls(faultcas.Replace) - before; n != 0 {
				t.Errorf("%d writes", n)
			}
		})
	}
}

func TestNothingIsStoredOnceTheTermIsOverOrTheDocumentIsAnothers(t *testing.T) {
	put := func(f *fixture) (int, string) {
		status, body := f.do("PUT", "/v1/checkpoints/k", "late", "7")
		var failure Failure
		_ = json.Unmarshal([]byte(body), &failure)
		return status, failure.Code
	}
	t.Run("over", func(t *testing.T) {
		f := serve(t)
		f.term.end(errors.New("expired"))
		if status, code := put(f); status != 409 || code != CodeTermOver {
			t.Errorf("%d %s", status, code)
		}
		if _, ok := f.stored("k"); ok {
			t.Error("stored")
		}
	})
	t.Run("sealed by a later term", func(t *testing.T) {
		f := serve(t)
		if _, err := checkpoint.Open(f.plain).Seal(t.Context(), &term{epoch: 8, id: "term-8"}); err != nil {
			t.Fatal(err)
		}
		if status, code := put(f); status != 409 || code != CodeFenced {
			t.Errorf("%d %s", status, code)
		}
		if _, ok := f.stored("k"); ok {
			t.Error("stored")
		}
	})
	t.Run("damaged", func(t *testing.T) {
		f := serve(t)
		v, err := f.plain.Load(t.Context())
		if err == nil {
			_, err = f.plain.Replace(t.Context(), []byte("[]"), v.Version)
		}
		if err != nil {
			t.Fatal(err)
		}
		if status, code := put(f); status != 409 || code != CodeDamaged {
			t.Errorf("%d %s", status, code)
		}
	})
	t.Run("the work is being started again", func(t *testing.T) {
		f := serve(t)
		f.server.Use(nil)
		if status, code := put(f); status != 503 || code != CodeUnavailable {
			t.Errorf("%d %s", status, code)
		}
	})
	t.Run("denied", func(t *testing.T) {
		f := serve(t)
		f.reg.Plan(func(op faultcas.Op, _ int) faultcas.Fault {
			if op == faultcas.Load {
				return faultcas.Fault{}
			}
			return faultcas.Fault{Refuse: cas.Denied}
		})
		if status, code := put(f); status != 503 || code != CodeUnavailable {
			t.Errorf("%d %s", status, code)
		}
	})
}

func TestALongPollEndsWithTheWork(t *testing.T) {
	f := serve(t)
	var state TermState
	if status, body := f.do("GET", "/v1/term", "", "7"); status != 200 || json.Unmarshal([]byte(body), &state) != nil ||
		state != (TermState{Epoch: 7, Term: "term-7", State: StateLeading, RemainingMillis: 4200}) {
		t.Fatalf("%d %s", status, body)
	}
	if _, body := f.do("GET", "/v1/term?wait=1ms", "", "7"); !strings.Contains(body, `"leading"`) {
		t.Errorf("%s", body)
	}
	answered := make(chan string, 1)
	go func() {
		_, body := f.do("GET", "/v1/term?wait=1h", "", "7")
		answered <- body
	}()
	f.stop()
	if body := <-answered; !strings.Contains(body, `"stopping"`) {
		t.Errorf("%s", body)
	}
	f.term.end(errors.New("expired"))
	if _, body := f.do("GET", "/v1/term", "", "7"); !strings.Contains(body, `"over"`) {
		t.Errorf("%s", body)
	}
}

func TestTheSocketIsForItsUserAndGoesWithItsTerm(t *testing.T) {
	f := serve(t)
	info, err := os.Stat(f.server.Path())
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
	if err := f.server.Close(t.Context()); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(f.server.Path()); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("it is still there: %v", err)
	}
}

func TestAPathThatIsTooLongIsSaidWithTheFix(t *testing.T) {
	dir := t.TempDir() + "/" + strings.Repeat("d", 100)
	_, err := Listen(t.Context(), dir, &term{epoch: 7, id: "x"})
	if err == nil || !strings.Contains(err.Error(), "service.runtime_dir") {
		t.Errorf("%v", err)
	}
}

// An idle connection of the work must not hold up the release of the lease.
func TestAnIdleConnectionDoesNotHoldUpTheEnd(t *testing.T) {
	f := serve(t)
	f.do("GET", "/v1/term", "", "7") // kept alive
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	if err := f.server.Close(ctx); err != nil {
		t.Error(err)
	}
}
