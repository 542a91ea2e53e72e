package socketapi

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/sf2loki/sf2loki-ha/cas"
	"github.com/sf2loki/sf2loki-ha/checkpoint"
)

// The codes of errors.
const (
	CodeBadRequest = "bad_request"
	CodeNotFound   = "not_found"
	// CodeOtherEpoch: the request carries another epoch than the term's.
	CodeOtherEpoch = "other_epoch"
	// CodeTermOver: the term has ended. CodeFenced: another term has sealed the
	// document. CodeDamaged: the document is corrupt or was deleted. After each of
	// them the work has to end.
	CodeTermOver = "term_over"
	CodeFenced   = "fenced"
	CodeDamaged  = "damaged"
	CodeTooLarge = "too_large"
	// CodeUnsettled: the store gave no definite answer; the values may have been
	// stored. CodeUnavailable: they have not.
	CodeUnsettled   = "unsettled"
	CodeUnavailable = "unavailable"
)

const checkpointsPath = "/v1/checkpoints"

// handler routes by the path as it was sent: http.ServeMux would clean it, and a
// key may contain "//" and "..".
func (s *Server) handler() http.Handler {
	one := map[string]withSession{http.MethodGet: s.get, http.MethodPut: s.put, http.MethodDelete: s.delete}
	all := map[string]withSession{http.MethodGet: s.getAll, http.MethodPatch: s.patch}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !s.ofThisEpoch(w, r) {
			return
		}
		switch path := r.URL.EscapedPath(); {
		case path == "/v1/term":
			if r.Method != http.MethodGet {
				notAllowed(w, http.MethodGet)
				return
			}
			s.getTerm(w, r)
		case path == checkpointsPath:
			s.dispatch(w, r, all)
		case strings.HasPrefix(path, checkpointsPath+"/"):
			s.dispatch(w, r, one)
		default:
			fail(w, http.StatusBadRequest, CodeBadRequest, fmt.Errorf("no such path; there are /v1/term, %s and %s/{key}", checkpointsPath, checkpointsPath))
		}
	})
}

// ofThisEpoch refuses what was started for another term.
func (s *Server) ofThisEpoch(w http.ResponseWriter, r *http.Request) bool {
	want := strconv.FormatInt(s.term.Epoch(), 10)
	switch got := r.Header.Get(EpochHeader); got {
	case want:
		return true
	case "":
		fail(w, http.StatusBadRequest, CodeBadRequest, fmt.Errorf("the header %s is missing; send the value of the variable of that name", EpochHeader))
	default:
		fail(w, http.StatusConflict, CodeOtherEpoch, fmt.Errorf("epoch %.40q; this socket belongs to epoch %s", got, want))
	}
	return false
}

// dispatch calls what the method stands for, with the session of this moment.
func (s *Server) dispatch(w http.ResponseWriter, r *http.Request, methods map[string]withSession) {
	do, ok := methods[r.Method]
	if !ok {
		notAllowed(w, slices.Sorted(maps.Keys(methods))...)
		return
	}
	session := s.current()
	if session == nil {
		fail(w, http.StatusServiceUnavailable, CodeUnavailable, errors.New("the document is not sealed for a run of the work at this moment"))
		return
	}
	do(w, r, session)
}

func notAllowed(w http.ResponseWriter, methods ...string) {
	w.Header().Set("Allow", strings.Join(methods, ", "))
	fail(w, http.StatusMethodNotAllowed, CodeBadRequest, errors.New("the method is not "+strings.Join(methods, " or ")))
}

// The states of a term.
const (
	StateLeading  = "leading"
	StateStopping = "stopping" // the work has been told to end
	StateOver     = "over"     // nothing is stored any more
)

// TermState is the answer to GET /v1/term.
type TermState struct {
	Epoch int64  `json:"epoch"`
	Term  string `json:"term"`
	State string `json:"state"`
	// RemainingMillis is the time to the deadline; -1: there is none.
	RemainingMillis int64 `json:"remaining_ms"`
}

// getTerm answers at once, or, with ?wait=, when the work has been told to end.
func (s *Server) getTerm(w http.ResponseWriter, r *http.Request) {
	if text := r.URL.Query().Get("wait"); text != "" {
		wait, err := time.ParseDuration(text)
		if err != nil || wait < 0 {
			fail(w, http.StatusBadRequest, CodeBadRequest, fmt.Errorf("wait=%.40q is not a duration such as 30s", text))
			return
		}
		timer := time.NewTimer(min(wait, maxWait))
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-s.stopping.Done():
		case <-r.Context().Done():
			return
		}
	}
	answer := TermState{Epoch: s.term.Epoch(), Term: s.term.ID(), State: StateLeading, RemainingMillis: -1}
	if left := s.term.Remaining(); left < 1000*time.Hour {
		answer.RemainingMillis = max(0, left.Milliseconds())
	}
	if s.stopping.Err() != nil {
		answer.State = StateStopping
	}
	if s.term.CheckFence() != nil {
		answer.State = StateOver
	}
	respond(w, answer)
}

type withSession func(http.ResponseWriter, *http.Request, *checkpoint.Session)

func (s *Server) getAll(w http.ResponseWriter, _ *http.Request, session *checkpoint.Session) {
	all := map[string]string{}
	for _, key := range session.Keys() {
		if value, ok := session.Get(key); ok {
			all[key] = value
		}
	}
	respond(w, all)
}

func (s *Server) get(w http.ResponseWriter, r *http.Request, session *checkpoint.Session) {
	key, ok := keyOf(w, r)
	if !ok {
		return
	}
	value, found := session.Get(key)
	if !found || checkpoint.Reserved(key) {
		fail(w, http.StatusNotFound, CodeNotFound, fmt.Errorf("no key %.80q", key))
		return
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	_, _ = io.WriteString(w, value)
}

func (s *Server) put(w http.ResponseWriter, r *http.Request, session *checkpoint.Session) {
	key, ok := keyOf(w, r)
	if !ok {
		return
	}
	if body, ok := bodyOf(w, r); ok {
		value := string(body)
		s.store(w, r, func(ctx context.Context) error { return session.Commit(ctx, map[string]string{key: value}) })
	}
}

func (s *Server) delete(w http.ResponseWriter, r *http.Request, session *checkpoint.Session) {
	if key, ok := keyOf(w, r); ok {
		s.store(w, r, func(ctx context.Context) error { return session.Delete(ctx, key) })
	}
}

// patch stores several keys in one write.
func (s *Server) patch(w http.ResponseWriter, r *http.Request, session *checkpoint.Session) {
	body, ok := bodyOf(w, r)
	if !ok {
		return
	}
	var given map[string]*string
	if err := json.Unmarshal(body, &given); err != nil || given == nil || !utf8.Valid(body) {
		fail(w, http.StatusBadRequest, CodeBadRequest, fmt.Errorf("the body is not a JSON object of strings: %v", err))
		return
	}
	values := make(map[string]string, len(given))
	for key, value := range given {
		if value == nil {
			// An empty text in place of a position would lose it.
			fail(w, http.StatusBadRequest, CodeBadRequest, fmt.Errorf("key %.80q: null; DELETE removes a key", key))
			return
		}
		values[key] = *value
	}
	s.store(w, r, func(ctx context.Context) error { return session.Commit(ctx, values) })
}

// store runs one write and says what became of it.
func (s *Server) store(w http.ResponseWriter, r *http.Request, do func(context.Context) error) {
	ctx, cancel := context.WithTimeout(r.Context(), commitTimeout)
	defer cancel()
	err := do(ctx)
	var (
		fenced   *checkpoint.FencedError
		vanished *checkpoint.VanishedError
	)
	switch {
	case err == nil:
		w.WriteHeader(http.StatusNoContent)
	case errors.Is(err, checkpoint.ErrReserved), errors.Is(err, checkpoint.ErrNotText):
		fail(w, http.StatusBadRequest, CodeBadRequest, err)
	case errors.Is(err, checkpoint.ErrTooLarge):
		fail(w, http.StatusRequestEntityTooLarge, CodeTooLarge, err)
	case errors.As(err, &fenced):
		fail(w, http.StatusConflict, CodeFenced, err)
	case errors.As(err, &vanished), errors.Is(err, cas.Corrupt):
		fail(w, http.StatusConflict, CodeDamaged, err)
	case s.term.CheckFence() != nil, errors.Is(err, checkpoint.ErrClosed):
		fail(w, http.StatusConflict, CodeTermOver, err)
	case cas.ClassOf(err) != "" && cas.ClassOf(err).Definite():
		fail(w, http.StatusServiceUnavailable, CodeUnavailable, err)
	default:
		fail(w, http.StatusServiceUnavailable, CodeUnsettled, err)
	}
}

// keyOf is the key in the path, with every escape undone: a key may contain
// slashes and anything else.
func keyOf(w http.ResponseWriter, r *http.Request) (string, bool) {
	key, err := url.PathUnescape(strings.TrimPrefix(r.URL.EscapedPath(), checkpointsPath+"/"))
	if err == nil && (key == "" || !utf8.ValidString(key)) {
		err = errors.New("empty, or not UTF-8")
	}
	if err != nil {
		fail(w, http.StatusBadRequest, CodeBadRequest, fmt.Errorf("key in the path: %w", err))
		return "", false
	}
	return key, true
}

func bodyOf(w http.ResponseWriter, r *http.Request) ([]byte, bool) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, cas.MaxSize))
	var large *http.MaxBytesError
	switch {
	case errors.As(err, &large):
		fail(w, http.StatusRequestEntityTooLarge, CodeTooLarge, fmt.Errorf("more than %d bytes", cas.MaxSize))
		return nil, false
	case err != nil:
		fail(w, http.StatusBadRequest, CodeBadRequest, fmt.Errorf("read the body: %w", err))
		return nil, false
	}
	return body, true
}

// Failure is the body of every answer that is an error.
type Failure struct {
	Code  string `json:"code"`
	Error string `json:"error"`
}

func fail(w http.ResponseWriter, status int, code string, err error) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(Failure{Code: code, Error: err.Error()})
}

func respond(w http.ResponseWriter, answer any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(answer)
}
