package linkfile

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sf2loki/sf2loki-ha/cas"
)

// answer makes the link answer errno, after it was carried out or without.
func answer(errno syscall.Errno, carriedOut bool) *script {
	reply := func(op string) error {
		if op == "link" {
			return refusal(op, errno)
		}
		return nil
	}
	if carriedOut {
		return &script{after: func(_ int, op, _ string, err error) error { return errors.Join(reply(op), err) }}
	}
	return &script{before: func(_ int, op, _ string) error { return reply(op) }}
}

func TestEachAnswerToALink(t *testing.T) {
	all := []syscall.Errno{syscall.EEXIST, syscall.EIO, syscall.ESTALE, syscall.ETIMEDOUT, syscall.EINTR, syscall.ENOENT,
		syscall.EACCES, syscall.EPERM, syscall.EROFS, syscall.ENOSPC, syscall.EOPNOTSUPP, syscall.EMLINK}
	refused := map[syscall.Errno]cas.Class{
		// No other file has the name, and ours has no second one: it cannot be told.
		syscall.EEXIST: cas.Ambiguous,
		syscall.EIO:    cas.Ambiguous, syscall.ESTALE: cas.Ambiguous, syscall.ETIMEDOUT: cas.Ambiguous, syscall.EINTR: cas.Ambiguous,
		syscall.ENOENT: cas.Ambiguous, syscall.ENOSPC: cas.Ambiguous,
		syscall.EACCES: cas.Denied, syscall.EROFS: cas.Denied,
		syscall.EPERM: cas.Unsupported, syscall.EOPNOTSUPP: cas.Unsupported, syscall.EMLINK: cas.Unsupported,
	}
	for _, errno := range all {
		for _, create := range []bool{true, false} {
			t.Run(fmt.Sprintf("%v, create %v", errno, create), func(t *testing.T) {
				write := func(sys *script) (*register, error) {
					path := lease(t)
					r := open(path, trusting, &script{})
					if create {
						r.sys = sys
						_, err := r.Create(t.Context(), []byte("mine"))
						return r, err
					}
					writeMore(t, path, 3)
					old := load(t, r).Version
					r.sys = sys
					_, err := r.Replace(t.Context(), []byte("mine"), old)
					return r, err
				}
				// 1. Carried out: the link count of the private file says so.
				sys := answer(errno, true)
				r, err := write(sys)
				if err != nil {
					t.Errorf("carried out: %v, want success", err)
				}
				if n := sys.count("link"); n != 1 {
					t.Errorf("%d links for one write", n)
				}
				if got := load(t, r); string(got.Data) != "mine" {
					t.Errorf("carried out, and the lease reads %q", got.Data)
				}
				// 2. Not carried out.
				sys = answer(errno, false)
				r, err = write(sys)
				if got := cas.ClassOf(err); got != refused[errno] {
					t.Errorf("refused: %v, want class %q", err, refused[errno])
				}
				if n := sys.count("link"); n != 1 {
					t.Errorf("%d links for one write", n)
				}
				if names, err := (real{}).list(strings.TrimSuffix(r.path, "/leader.lease")); err != nil {
					t.Fatal(err)
				} else if strings.Contains(fmt.Sprint(names), tempSuffix) {
					t.Errorf("a private file was left: %v", names)
				}
			})
		}
	}
}

func TestEEXISTOfAnotherWriterIsAConflict(t *testing.T) {
	path := lease(t)
	writeMore(t, path, 3)
	r := open(path, trusting, &script{})
	old := load(t, r).Version
	sys := at("link", func() { writeMore(t, path, 1) })
	r.sys = sys
	if _, err := r.Replace(t.Context(), []byte("mine"), old); !errors.Is(err, cas.Conflict) {
		t.Errorf("%v, want conflict", err)
	}
	if n := sys.count("link"); n != 1 {
		t.Errorf("%d links", n)
	}
}

func TestALinkIsFoundByItsContentIfThePrivateFileWasTidiedAway(t *testing.T) {
	path := lease(t)
	var r *register
	sys := &script{}
	sys.after = func(_ int, op, _ string, err error) error {
		if op == "link" && err == nil {
			// The answer is lost, the server gets the request again, and meanwhile
			// somebody removes the private file.
			names, _ := real{}.list(strings.TrimSuffix(path, "/leader.lease"))
			for _, n := range names {
				if strings.HasSuffix(n, tempSuffix) {
					_ = os.Remove(strings.TrimSuffix(path, "leader.lease") + n)
				}
			}
			return refusal(op, syscall.ENOENT)
		}
		return err
	}
	r = open(path, trusting, sys)
	if _, err := r.Create(t.Context(), []byte("mine")); err != nil {
		t.Errorf("%v, want success", err)
	}
}

func TestAnErrorAfterTheLinkIsNeverDefinite(t *testing.T) {
	for _, op := range []string{"syncDir", "read", "list"} {
		for _, errno := range []syscall.Errno{syscall.EACCES, syscall.EROFS, syscall.EIO, syscall.ENOTDIR, syscall.EPERM} {
			path := lease(t)
			writeMore(t, path, 3)
			r := open(path, trusting, &script{})
			old := load(t, r).Version
			linked := false
			r.sys = &script{before: func(_ int, o, _ string) error {
				linked = linked || o == "link"
				if linked && o == op {
					return refusal(op, errno)
				}
				return nil
			}}
			_, err := r.Replace(t.Context(), []byte("mine"), old)
			if !errors.Is(err, cas.Ambiguous) || !errors.Is(err, errno) {
				t.Errorf("%s answers %v: %v, want ambiguous with its cause", op, errno, err)
			}
			if got := load(t, open(path, trusting, &script{})); string(got.Data) != "mine" {
				t.Errorf("%s answers %v: the write was taken back without need", op, errno)
			}
		}
	}
}

func TestDeniedSaysWhoWhatAndThatNobodyWillLead(t *testing.T) {
	for _, errno := range []syscall.Errno{syscall.EACCES, syscall.EPERM} {
		for _, op := range []string{"read", "list", "create"} {
			path := lease(t)
			writeMore(t, path, 3)
			r := open(path, Options{}, &script{})
			old := load(t, r).Version
			r.sys = &script{before: func(_ int, o, p string) error {
				if o == op {
					return &os.PathError{Op: "open", Path: p, Err: errno}
				}
				return nil
			}}
			_, err := r.Replace(t.Context(), []byte("mine"), old)
			if op != "create" {
				_, err = r.Load(t.Context())
			}
			if !errors.Is(err, cas.Denied) {
				t.Fatalf("%s: %v: %v, want denied", op, errno, err)
			}
			for _, want := range []string{fmt.Sprint("uid ", os.Geteuid()), "chown", "chmod", path, "nobody will ever lead"} {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("%s: %q lacks %q", op, err, want)
				}
			}
		}
	}
}

func TestAFileSystemWithoutLinksIsUnsupportedAndTheHintNamesTheDirectory(t *testing.T) {
	r := open(lease(t), Options{}, answer(syscall.EPERM, false))
	_, err := r.Create(t.Context(), []byte("mine"))
	var e *cas.Error
	if !errors.As(err, &e) || e.Class != cas.Unsupported || !strings.Contains(e.Hint, strings.TrimSuffix(r.path, "/leader.lease")) {
		t.Errorf("%v", err)
	}
}

func TestAReadThatFailsIsNeverAbsence(t *testing.T) {
	for _, op := range []string{"list", "read", "stat"} {
		for _, errno := range []syscall.Errno{syscall.EIO, syscall.ESTALE, syscall.ETIMEDOUT, syscall.EACCES, syscall.ENOTDIR, syscall.EMFILE} {
			r := open(lease(t), Options{Foreign: upstreams}, &script{before: func(_ int, o, _ string) error {
				if o == op {
					return refusal(op, errno)
				}
				return nil
			}})
			if op == "stat" {
				put(t, r.path, "upstream")
			}
			if _, err := r.Load(t.Context()); err == nil || errors.Is(err, cas.NotFound) {
				t.Errorf("%s answers %v: %v", op, errno, err)
			}
		}
	}
}

// A listing out of a cache shows what was there a while ago.
func TestAListingThatIsOutOfDateHidesNothing(t *testing.T) {
	for _, tt := range []struct {
		name  string
		shown []string
		last  int64
	}{
		{"nothing yet", nil, 3},
		{"nothing, and there is only the first", nil, 1},
		{"some versions back", []string{"leader.lease", "leader.lease.1", "leader.lease.2"}, 9},
	} {
		path := lease(t)
		writeMore(t, path, int(tt.last))
		r := open(path, Options{}, stale{&script{}, tt.shown})
		if got := load(t, r); seq(t, got.Version) != tt.last {
			t.Errorf("%s: the last version is %q, want number %d", tt.name, got.Version, tt.last)
		}
	}
	// Nothing of what it shows is left, or only the name of the first: no answer
	// is better than an old one.
	path := lease(t)
	writeMore(t, path, 3*keep)
	for _, shown := range [][]string{{"leader.lease.5"}} {
		r := open(path, Options{}, stale{&script{}, shown})
		if _, err := r.Load(t.Context()); !errors.Is(err, cas.Ambiguous) {
			t.Errorf("%v: %v, want ambiguous", shown, err)
		}
	}
}

type stale struct {
	*script
	shown []string
}

func (s stale) list(string) ([]string, error) { return s.shown, nil }

func TestACallThatHangsEndsWithItsContextAndALandedWriteIsStillAnswered(t *testing.T) {
	path := lease(t)
	writeMore(t, path, 3)
	synctest.Test(t, func(t *testing.T) {
		for op, wantErr := range map[string]bool{"create": true, "link": true, "syncDir": true, "rename": false, "remove": false} {
			release := make(chan struct{})
			r := open(path, trusting, &script{})
			old := load(t, r).Version
			var hung atomic.Int64
			r.sys = &script{before: func(_ int, o, _ string) error {
				if o == op && hung.Add(1) == 1 {
					<-release
				}
				return nil
			}}
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			start := time.Now()
			_, err := r.Replace(ctx, []byte("mine, hanging in "+op), old)
			if wantErr && (!errors.Is(err, cas.Ambiguous) || !errors.Is(err, context.DeadlineExceeded)) || !wantErr && err != nil {
				t.Errorf("%s hangs: %v", op, err)
			}
			if took := time.Since(start); took != time.Second {
				t.Errorf("%s hangs: answered after %v, want 1s", op, took)
			}
			cancel()
			close(release)
			synctest.Wait()
			if op == "create" && r.sys.(*script).count("link") != 0 {
				t.Error("it linked though nobody waits any more")
			}
		}
	})
}
