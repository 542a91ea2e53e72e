package linkfile

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/sf2loki/sf2loki-ha/cas"
)

// A process that stands still while others write keep and more versions finds
// the number it wants free again. In none of these tests may its write count.

// late is a write that was under way when the process stopped.
type late struct {
	path string
	old  cas.Version // "" for Create
	err  error
	sys  *script
}

// stop starts a write on top of n versions and stops it where sys says.
func stop(t *testing.T, n int, sys func(path string) *script) late {
	t.Helper()
	l := late{path: lease(t)}
	r := open(l.path, trusting, &script{})
	if n > 0 {
		writeMore(t, l.path, n)
		l.old = load(t, r).Version
	}
	l.sys = sys(l.path)
	r.sys = l.sys
	if n > 0 {
		_, l.err = r.Replace(t.Context(), []byte("late"), l.old)
	} else {
		_, l.err = r.Create(t.Context(), []byte("late"))
	}
	return l
}

// harmless fails the test unless the others do not notice the late write.
func (l late) harmless(t *testing.T, wantLast int64) {
	t.Helper()
	got := load(t, open(l.path, trusting, &script{}))
	if string(got.Data) == "late" || seq(t, got.Version) != wantLast {
		t.Errorf("the last version is %q with %q, want number %d", got.Version, got.Data, wantLast)
	}
	writeMore(t, l.path, 1)
}

func TestANumberThatIsFreeAgainIsTakenBack(t *testing.T) {
	for _, n := range []int{1, 2, 3, 10} {
		l := stop(t, n, func(path string) *script {
			return at("link", func() { writeMore(t, path, n+2*keep) })
		})
		if !errors.Is(l.err, cas.Ambiguous) || !errors.Is(l.err, errRecycled) {
			t.Errorf("on top of %d: %v; want an ambiguous answer that says why", n, l.err)
		}
		r := open(l.path, trusting, &script{})
		if name := r.slot(int64(n) + 1); exists(name) {
			t.Errorf("%s is still there", name)
		}
		l.harmless(t, int64(2*n+2*keep))
	}
}

func TestAWriteThatLandedBeforeAFreezeDoesNotCountAfterIt(t *testing.T) {
	for _, writes := range []int{1, 3, keep, 2 * keep} {
		l := stop(t, 10, func(path string) *script {
			return afterwards("link", func() { writeMore(t, path, writes) })
		})
		if !errors.Is(l.err, cas.Ambiguous) {
			t.Errorf("%d writes later: %v, want ambiguous: it has landed and is over", writes, l.err)
		}
		l.harmless(t, int64(11+writes))
	}
}

func TestACreationThatWasFrozenNeverCreatesASecondTime(t *testing.T) {
	for _, writes := range []int{1, 2, keep, keep + 1, 3 * keep} {
		l := stop(t, 0, func(path string) *script {
			return at("link", func() { writeMore(t, path, writes) })
		})
		if !errors.Is(l.err, cas.Conflict) {
			t.Errorf("after %d writes: %v, want conflict: the first name is never free again", writes, l.err)
		}
		l.harmless(t, int64(writes))
	}
}

func TestOnlyItsOwnFileIsTakenBack(t *testing.T) {
	path := lease(t)
	writeMore(t, path, 10)
	r := open(path, trusting, &script{})
	old := load(t, r).Version
	r.sys = afterwards("link", func() {
		// Somebody removes both files and another replica takes the number.
		for _, name := range []string{r.slot(10), r.slot(11)} {
			if err := os.Remove(name); err != nil {
				t.Error(err)
			}
		}
		put(t, r.slot(11), "another one's")
	})
	if _, err := r.Replace(t.Context(), []byte("mine"), old); !errors.Is(err, errRecycled) {
		t.Errorf("%v", err)
	}
	if got := load(t, open(path, trusting, &script{})); string(got.Data) != "another one's" {
		t.Errorf("the lease reads %q", got.Data)
	}
}

func TestTwoFrozenWritersDoNotVouchForEachOther(t *testing.T) {
	// The second takes the number of the version that the first replaces just
	// before the first looks for it.
	path := lease(t)
	writeMore(t, path, 10)
	second := open(path, trusting, &script{})
	before := load(t, second).Version
	writeMore(t, path, 1)
	first := open(path, trusting, &script{})
	old := load(t, first).Version

	var secondErr error
	first.sys = at("link", func() {
		writeMore(t, path, 2*keep)
		linked := false // the second one stops before it takes its name back
		second.sys = &script{
			before: func(int, string, string) error {
				if linked {
					return errKilled
				}
				return nil
			},
			after: func(_ int, op, _ string, err error) error {
				linked = linked || op == "link"
				return err
			},
		}
		_, secondErr = second.Replace(t.Context(), []byte("late"), before)
	})
	_, err := first.Replace(t.Context(), []byte("late too"), old)
	if secondErr == nil || !exists(second.slot(11)) {
		t.Fatalf("the second did not take number 11: %v", secondErr)
	}
	if !errors.Is(err, cas.Ambiguous) || !errors.Is(err, errRecycled) || exists(first.slot(12)) {
		t.Errorf("the first: %v, want ambiguous and number 12 taken back", err)
	}
	if got := load(t, open(path, trusting, &script{})); seq(t, got.Version) != int64(11+2*keep) {
		t.Errorf("the last version is %q", got.Version)
	}
}

func TestAVersionReadTooLongAgoIsReadAgainBeforeAnythingIsWritten(t *testing.T) {
	path := lease(t)
	writeMore(t, path, 10)
	var c clock
	sys := &script{}
	r := open(path, Options{MaxReadAge: 15 * time.Second}, sys)
	r.now = c.now
	v := load(t, r).Version

	// 1. Young enough: no listing before the link.
	c.Store(int64(15*time.Second - 1))
	sys.ops = nil
	v, err := r.Replace(t.Context(), []byte("a"), v)
	if err != nil {
		t.Fatal(err)
	}
	for _, op := range sys.ops {
		if op == "list" {
			t.Errorf("it read before it wrote: %v", sys.ops)
		}
		if op == "link" {
			break
		}
	}
	// 2. Too old, and still the last.
	c.Store(int64(31 * time.Second))
	if v, err = r.Replace(t.Context(), []byte("b"), v); err != nil {
		t.Fatal(err)
	}
	// 3. Too old, and its number is free again.
	writeMore(t, path, 2*keep)
	c.Store(int64(time.Hour))
	sys.ops = nil
	if _, err = r.Replace(t.Context(), []byte("c"), v); !errors.Is(err, cas.Conflict) {
		t.Errorf("%v, want conflict", err)
	}
	for _, op := range []string{"create", "link"} {
		if n := sys.count(op); n != 0 {
			t.Errorf("%d calls of %s", n, op)
		}
	}
}

// A version that is there vouches for its successor, so it must not outlive it.
func TestOldVersionsGoInAscendingOrderAndNoFurtherThanOneThatStays(t *testing.T) {
	for _, stays := range []int64{0, 1, 2, 5} {
		path := lease(t)
		const last = keep + 10 // nobody has tidied up so far
		for n := range int64(last) {
			put(t, open(path, trusting, real{}).slot(n+1), fmt.Sprint("old ", n+1))
		}
		r := open(path, trusting, &script{})
		v := load(t, r).Version
		var gone []string
		r.sys = &script{before: func(_ int, op, p string) error {
			if op != "remove" && op != "rename" || p == path || strings.HasSuffix(p, tempSuffix) {
				return nil
			}
			if p == r.slot(stays) {
				return refusal(op, syscall.EBUSY)
			}
			gone = append(gone, op+strings.TrimPrefix(p, path))
			return nil
		}}
		if _, err := r.Replace(t.Context(), []byte("new"), v); err != nil {
			t.Fatal(err)
		}
		want := []string{"rename.1"} // the name of the first stays, its content goes
		for n := int64(2); n <= last+1-keep; n++ {
			want = append(want, fmt.Sprint("remove.", n))
		}
		if stays > 0 {
			want = want[:stays-1]
		}
		if !slices.Equal(gone, want) {
			t.Errorf("%d stays: %v, want %v", stays, gone, want)
		}
	}
}

func TestWhatAnotherRegisterReadIsReadAgain(t *testing.T) {
	path := lease(t)
	writeMore(t, path, 3)
	v := load(t, open(path, trusting, &script{})).Version
	writeMore(t, path, 3*keep)
	sys := &script{}
	r := open(path, trusting, sys)
	r.now = new(clock).now // no time has passed since anything
	if _, err := r.Replace(t.Context(), []byte("c"), v); !errors.Is(err, cas.Conflict) {
		t.Errorf("%v, want conflict", err)
	}
	if sys.count("link") != 0 {
		t.Error("it linked")
	}
}

func TestARemovedDirectoryDoesNotRevive(t *testing.T) {
	// An operator removes all files while a writer stands still; another replica
	// starts over at number 1.
	path := lease(t)
	writeMore(t, path, 10)
	r := open(path, trusting, &script{})
	old := load(t, r).Version
	r.sys = at("link", func() {
		for n := range int64(10) {
			_ = real{}.remove(r.slot(n + 1))
		}
		_ = real{}.remove(path)
		writeMore(t, path, 2)
	})
	if _, err := r.Replace(t.Context(), []byte("late"), old); !errors.Is(err, cas.Ambiguous) {
		t.Errorf("%v, want ambiguous", err)
	}
	if got := load(t, open(path, trusting, &script{})); seq(t, got.Version) != 2 {
		t.Errorf("the last version is %q, want the second of the new lease", got.Version)
	}
}
