package statecmd

import (
	"context"
	"errors"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/sf2loki/sf2loki-ha/cas"
	"github.com/sf2loki/sf2loki-ha/cas/file"
	"github.com/sf2loki/sf2loki-ha/checkpoint"
	"github.com/sf2loki/sf2loki-ha/coordinator"
	"github.com/sf2loki/sf2loki-ha/internal/replica"
)

func TestADamagedDocumentIsNamedWithTheWayOutAndNeverOverwritten(t *testing.T) {
	for name, c := range map[string]struct{ text, says, hint string }{
		"empty":             {"", "not JSON", "restore an earlier version"},
		"cut":               {`{"a": "1"`, "not JSON", "move it aside"},
		"not UTF-8":         {"\xff\xfe", "not UTF-8", "restore an earlier version"},
		"a list":            {`[]`, "a list", "restore an earlier version"},
		"a value no string": {`{"a": 1}`, `value of key "a"`, "restore an earlier version"},
		"a key twice":       {`{"a": "1", "a": "2"}`, "twice", "restore an earlier version"},
		"a junk epoch":      {`{"a": "1", "__fence_epoch__": "junk"}`, "not a decimal number", "repair-fence"},
		"a number as epoch": {`{"a": "1", "__fence_epoch__": 7}`, "__fence_epoch__", "repair-fence"},
		"a junk fence":      {`{"a": "1", "__fence_epoch__": "7", "__fence__": "x"}`, "__fence__", "repair-fence"},
		"oversized":         {`{"a": "` + strings.Repeat("x", cas.MaxSize) + `"}`, "larger than", "move what is there"},
	} {
		t.Run(name, func(t *testing.T) {
			u := alone(t)
			u.write(t, c.text)
			verbs := map[string]func(context.Context, *Command) error{
				"show": show("*"), "export": export, "set": set("a", "1"), "delete": del("a"), "import": imported(`{"a": "1"}`, true, false), "adopt": adopt,
				"copy from": copied(t, "file:"+u.path, "file:"+u.path+".copy", false), "copy to": copied(t, "file:"+u.path+".source", "file:"+u.path, true),
			}
			if c.hint != "repair-fence" {
				verbs["repair-fence"] = repair(0)
			}
			if len(c.text) > cas.MaxSize { // each reads 16 MiB
				verbs = map[string]func(context.Context, *Command) error{"show": show("*"), "set": set("a", "1")}
			}
			if err := os.WriteFile(u.path+".source", []byte(`{"k": "v"}`), 0o600); err != nil {
				t.Fatal(err)
			}
			for verb, f := range verbs {
				out, _, err := u.do(t, Flags{Force: true}, false, f)
				if cas.ClassOf(err) != cas.Corrupt || !strings.Contains(err.Error(), u.path) || !strings.Contains(err.Error(), c.says) || !strings.Contains(err.Error(), c.hint) || out != "" {
					t.Errorf("%s: %v, %q; want %q and %q", verb, err, out, c.says, c.hint)
				}
			}
			if u.content(t) != c.text {
				t.Error("overwritten")
			}
			if _, err := os.Stat(u.path + ".copy"); err == nil {
				t.Error("copied")
			}
		})
	}
}

func TestAProcessThatUsesTheFileIsNoticed(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		suffix string
		// written: --force writes nevertheless.
		written bool
	}{
		"a replica without an election": {".instance.lock", true},
		"sf2loki itself":                {".lock", false},
	} {
		t.Run(name, func(t *testing.T) {
			u := alone(t)
			const text = `{"a": "1"}`
			u.write(t, text)
			lock, err := os.Create(u.path + c.suffix)
			if err != nil {
				t.Fatal(err)
			}
			defer lock.Close()
			if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX); err != nil {
				t.Fatal(err)
			}
			var used *replica.InUseError
			for verb, f := range map[string]func(context.Context, *Command) error{
				"show": show("*"), "export": export, "copy": copied(t, "file:"+u.path, "file:"+u.path+".copy", false),
			} {
				if _, _, err := u.do(t, Flags{}, false, f); !errors.As(err, &used) || !strings.Contains(err.Error(), "--force") || !strings.Contains(err.Error(), u.path) {
					t.Errorf("%s: %v", verb, err)
				}
				if _, _, err := u.do(t, Flags{Force: true}, false, f); err != nil {
					t.Errorf("%s, forced: %v", verb, err)
				}
			}
			for _, flags := range []Flags{{}, {Wait: true}, {DryRun: true}} {
				if _, _, err := u.do(t, flags, false, set("a", "2")); err == nil || !strings.Contains(err.Error(), u.path+c.suffix) || !strings.Contains(err.Error(), "--force") {
					t.Errorf("set with %+v: %v", flags, err)
				}
			}
			if u.content(t) != text {
				t.Fatal("written")
			}
			if _, _, err := u.do(t, Flags{Force: true}, false, set("a", "2")); (err == nil) != c.written || (u.content(t) != text) != c.written {
				t.Errorf("forced: %v, %s", err, u.content(t))
			}
		})
	}
}

func TestAFileUnderALeaseIsByteIdenticalAfterARefusal(t *testing.T) {
	u := paired(t)
	sealed, err := checkpoint.Open(file.New(u.path), checkpoint.WithLease(u.lease, 3*time.Second)).Seal(t.Context(), pair{7})
	if err != nil {
		t.Fatal(err)
	}
	commit(t, sealed, "K", "bad")
	u.holds(t, coordinator.Held, 7)
	before := u.content(t)
	info, err := os.Stat(u.path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(u.path+".source", []byte(`{"K": "copied"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, f := range map[string]func(context.Context, *Command) error{
		"set": set("K", "good"), "delete": del("K"), "import": imported(`{"K": "good"}`, false, false), "copy": copied(t, "file:"+u.path+".source", "file:"+u.path, true), "repair-fence": repair(9),
	} {
		out, _, err := u.do(t, Flags{}, false, f)
		if err == nil || out != "" || !strings.Contains(err.Error(), `held by "A", epoch 7`) || !strings.Contains(err.Error(), "expires_at") || !strings.Contains(err.Error(), "--force") {
			t.Errorf("%s: %v, %q", name, err, out)
		}
	}
	if now, err := os.Stat(u.path); err != nil || u.content(t) != before || !now.ModTime().Equal(info.ModTime()) || !os.SameFile(now, info) {
		t.Error("the file was touched")
	}
	// Reading is no harm.
	if out := u.must(t, show("*")); !strings.Contains(out, "K\tbad\n") {
		t.Errorf("%q", out)
	}
	// Released: the same command works.
	u.holds(t, coordinator.Released, 7)
	u.must(t, set("K", "good"))
	if out := u.must(t, show("*")); !strings.Contains(out, "K\tgood\n") {
		t.Errorf("%q", out)
	}
}
