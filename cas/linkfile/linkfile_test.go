package linkfile_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/sf2loki/sf2loki-ha/cas"
	"github.com/sf2loki/sf2loki-ha/cas/castest"
	"github.com/sf2loki/sf2loki-ha/cas/linkfile"
)

func TestConformance(t *testing.T) {
	for name, opts := range map[string]linkfile.Options{
		"zero options": {},
		"as a lease":   {MaxReadAge: time.Minute, Foreign: func([]byte) bool { return false }},
	} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "not", "yet", "there")
			open := func(*testing.T) cas.Bucket { return linkfile.Open(dir, opts) }
			castest.Run(t, open)
			castest.Exact(t, open)
		})
	}
}

func class(t *testing.T, what string, err error, want cas.Class) *cas.Error {
	t.Helper()
	var e *cas.Error
	if !errors.As(err, &e) || e.Class != want {
		t.Fatalf("%s: %v, want class %q", what, err, want)
	}
	return e
}

// files lists dir; the random part of a name reads as "*".
func files(t *testing.T, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, regexp.MustCompile(`\.[0-9a-f]{16}\.`).ReplaceAllString(e.Name(), ".*."))
	}
	return names
}

func TestFirstWriteMakesPrivateFilesAndLeavesNothingElse(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a", "b", "leader.lease")
	r := linkfile.New(path, linkfile.Options{})
	if _, err := os.Stat(filepath.Dir(path)); err == nil {
		t.Fatal("New made the directory")
	}
	v, err := r.Create(t.Context(), []byte("1"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.Replace(t.Context(), []byte("2"), v); err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprint(files(t, filepath.Dir(path))); got != "[leader.lease leader.lease.1 leader.lease.2]" {
		t.Errorf("files: %v", got)
	}
	for _, name := range []string{"", ".1", ".2"} {
		info, err := os.Stat(path + name)
		if err != nil || info.Mode() != 0o600 {
			t.Errorf("%s: %v, %v", path+name, info.Mode(), err)
		}
	}
	if info, err := os.Stat(filepath.Dir(path)); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("directory: %v, %v", info.Mode(), err)
	}
	if copied, err := os.ReadFile(path); err != nil || string(copied) != "2" {
		t.Errorf("the copy is %q, %v", copied, err)
	}
}

func TestTheLast64VersionsStayAndTheFirstNameIsNeverFreeAgain(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x")
	r := linkfile.New(path, linkfile.Options{MaxReadAge: time.Hour})
	v, err := r.Create(t.Context(), []byte("1"))
	if err != nil {
		t.Fatal(err)
	}
	const last = 150
	for n := 2; n <= last; n++ {
		if v, err = r.Replace(t.Context(), fmt.Append(nil, n), v); err != nil {
			t.Fatal(err)
		}
		for _, old := range []int{max(1, n-63), n} {
			if data, err := os.ReadFile(fmt.Sprint(path, ".", old)); err != nil || string(data) != fmt.Sprint(old) {
				t.Fatalf("after write %d version %d holds %q, %v", n, old, data, err)
			}
		}
	}
	if got := len(files(t, filepath.Dir(path))); got != 64+2 {
		t.Errorf("%d files, want 64 versions, the first name and the copy", got)
	}
	if data, err := os.ReadFile(path + ".1"); err != nil || string(data) == "1" {
		t.Errorf("the first name still vouches for version 2: %q, %v", data, err)
	}
}

func TestNumbersAreComparedAsNumbersAndOtherNamesAreNotOurs(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x")
	for name, data := range map[string]string{
		".9": "nine", ".10": "ten", // "10" sorts before "9"
		".011": "padded", ".12x": "no number", ".-13": "negative", ".+14": "sign", ".0": "zero", ".99999999999999999999": "too long",
		".10.tmp": "other", "y.20": "another object",
	} {
		if err := os.WriteFile(path+name, []byte(data), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	r := linkfile.New(path, linkfile.Options{})
	got, err := r.Load(t.Context())
	if err != nil || string(got.Data) != "ten" {
		t.Fatalf("%q, %v", got.Data, err)
	}
	if _, err := r.Replace(t.Context(), []byte("next"), got.Version); err != nil {
		t.Fatal(err)
	}
	if data, err := os.ReadFile(path + ".11"); err != nil || string(data) != "next" {
		t.Errorf("%q, %v", data, err)
	}
}

func TestUnfinishedWritesOfKilledProcessesAreRemovedAndThoseOfOthersAreLeft(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "x")
	old, young, notOurs := path+".0123456789abcdef.tmp", path+".fedcba9876543210.tmp", path+".backup.tmp"
	for name, age := range map[string]time.Duration{old: 11 * time.Minute, young: 9 * time.Minute, notOurs: time.Hour} {
		if err := errors.Join(os.WriteFile(name, []byte("half a wri"), 0o600), os.Chtimes(name, time.Time{}, time.Now().Add(-age))); err != nil {
			t.Fatal(err)
		}
	}
	r := linkfile.New(path, linkfile.Options{})
	_, err := r.Load(t.Context())
	class(t, "load", err, cas.NotFound)
	if _, err := r.Create(t.Context(), []byte("whole")); err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprint(files(t, dir)); got != "[x x.1 x.backup.tmp x.*.tmp]" {
		t.Errorf("files: %v", got)
	}
	if _, err := os.Stat(old); err == nil {
		t.Error("the abandoned one is still there")
	}
}

func TestWhatIsNotARegularFileIsCorruptAndIsNotReplaced(t *testing.T) {
	for name, make := range map[string]func(path string) error{
		"directory":             func(p string) error { return os.Mkdir(p, 0o700) },
		"symbolic link":         func(p string) error { return os.Symlink("elsewhere", p) },
		"named pipe, no writer": func(p string) error { return syscall.Mkfifo(p, 0o600) },
	} {
		for _, suffix := range []string{"", ".1", ".7"} {
			t.Run(name+" "+suffix, func(t *testing.T) {
				path := filepath.Join(t.TempDir(), "x")
				if err := make(path + suffix); err != nil {
					t.Fatal(err)
				}
				r := linkfile.New(path, linkfile.Options{Foreign: func([]byte) bool { return true }})
				_, err := r.Load(t.Context())
				if e := class(t, "load", err, cas.Corrupt); e.Hint == "" || !strings.Contains(e.Error(), path+suffix) {
					t.Errorf("%v; want a hint and the path", e)
				}
				_, err = r.Create(t.Context(), []byte("1"))
				class(t, "create", err, cas.Conflict)
				_, err = r.Replace(t.Context(), []byte("1"), "1-0")
				class(t, "replace", err, cas.Conflict)
			})
		}
	}
}

func TestACopyThatCannotBeMadeCostsNothing(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x")
	r := linkfile.New(path, linkfile.Options{Foreign: func([]byte) bool { return true }})
	v, err := r.Create(t.Context(), []byte("1"))
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.Remove(path), os.MkdirAll(path+"/sub", 0o700)); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Replace(t.Context(), []byte("2"), v); err != nil {
		t.Fatal(err)
	}
	if got, err := r.Load(t.Context()); err != nil || string(got.Data) != "2" {
		t.Errorf("%q, %v", got.Data, err)
	}
	if got := fmt.Sprint(files(t, filepath.Dir(path))); got != "[x x.1 x.2]" {
		t.Errorf("files: %v", got)
	}
}

func TestFileInPlaceOfADirectoryIsAConfigurationError(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "f"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	r := linkfile.New(filepath.Join(dir, "f", "x"), linkfile.Options{})
	_, err := r.Load(t.Context())
	class(t, "load", err, cas.NoBucket)
	_, err = r.Create(t.Context(), nil)
	class(t, "create", err, cas.NoBucket)
	_, err = r.Replace(t.Context(), nil, "1-0")
	class(t, "replace", err, cas.NoBucket)
}

func TestNamesThatLeaveTheDirectoryOrMeetOurOwnFilesAreDenied(t *testing.T) {
	b := linkfile.Open(t.TempDir(), linkfile.Options{})
	for _, name := range []string{"", "..", "../x", "a/../../x", "/etc/passwd", "x.tmp", "x.17", "dir/"} {
		r := b.Register(name)
		for op, err := range map[string]error{
			"load":    func() error { _, err := r.Load(t.Context()); return err }(),
			"create":  func() error { _, err := r.Create(t.Context(), nil); return err }(),
			"replace": func() error { _, err := r.Replace(t.Context(), nil, "1-0"); return err }(),
		} {
			class(t, op+" of "+name, err, cas.Denied)
		}
	}
}

func TestEditedVersionIsAnotherOne(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x")
	r := linkfile.New(path, linkfile.Options{MaxReadAge: time.Hour})
	v, err := r.Create(t.Context(), []byte("aaaa"))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path+".1", []byte("bbbb"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Replace(context.Background(), []byte("c"), v); err == nil {
		t.Fatal("the version before the edit was replaced")
	}
	got, err := r.Load(t.Context())
	if err != nil || string(got.Data) != "bbbb" {
		t.Fatalf("load: %q, %v", got.Data, err)
	}
	if _, err := r.Replace(t.Context(), []byte("c"), got.Version); err != nil {
		t.Fatalf("replace on the edited version: %v", err)
	}
}
