package statecmd

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sf2loki/sf2loki-ha/cas"
	"github.com/sf2loki/sf2loki-ha/cas/file"
	"github.com/sf2loki/sf2loki-ha/checkpoint"
)

func TestOutputIsThatOfSf2loki(t *testing.T) {
	u := alone(t)
	for _, step := range []struct {
		verb func(context.Context, *Command) error
		want string
	}{
		{show("*"), "(no checkpoints match)\n"},
		{set("pubsub:/event/B", "AAAAAAAAAqc="), "sf2loki: set pubsub:/event/B = AAAAAAAAAqc=\n"},
		{set("a", "é \"x\""), "sf2loki: set a = é \"x\"\n"},
		{set("m", ""), "sf2loki: set m = \n"},
		{show("*"), "a\té \"x\"\nm\t\npubsub:/event/B\tAAAAAAAAAqc=\n\n3 checkpoint(s)\n"},
		{del("m"), "sf2loki: deleted m\n"},
		{show("pubsub:*"), "pubsub:/event/B\tAAAAAAAAAqc=\n\n1 checkpoint(s) matching 'pubsub:*'\n"},
		{show("x*"), "(no checkpoints match)\n"},
		{del("a"), "sf2loki: deleted a\n"},
		{del("a"), "sf2loki: deleted a (it was not there)\n"},
		{export, "{\"pubsub:/event/B\": \"AAAAAAAAAqc=\"}\n"},
	} {
		if got := u.must(t, step.verb); got != step.want {
			t.Errorf("%q, want %q", got, step.want)
		}
	}
	if got := u.content(t); got != `{"pubsub:/event/B": "AAAAAAAAAqc="}` {
		t.Errorf("%s", got)
	}
}

func TestTheFenceIsHiddenAndItsKeysAreRefusedEvenByForce(t *testing.T) {
	u := alone(t)
	const text = `{"a": "1", "__fence_epoch__": "7", "__fence__": "{\"term\":\"t\",\"lease\":\"\",\"ttl_ms\":0,\"write_id\":\"w\"}"}`
	u.write(t, text)
	for _, key := range []string{checkpoint.EpochKey, checkpoint.FenceKey} {
		for name, verb := range map[string]func(context.Context, *Command) error{
			"set": set(key, "9"), "delete": del(key), "import": imported(fmt.Sprintf(`{"b": "1", %q: "9"}`, key), false, false),
		} {
			_, _, err := u.do(t, Flags{Force: true}, false, verb)
			if !errors.Is(err, checkpoint.ErrReserved) || !strings.Contains(err.Error(), "repair-fence") || u.content(t) != text {
				t.Errorf("%s %s: %v", name, key, err)
			}
		}
	}
	if got := u.must(t, show("*")); got != "a\t1\n\n1 checkpoint(s)\n" {
		t.Errorf("%q", got)
	}
	if got := u.must(t, export); got != "{\"a\": \"1\"}\n" {
		t.Errorf("%q", got)
	}
	var shown Shown
	out, _, err := u.do(t, Flags{}, true, show("*"))
	if err != nil || json.Unmarshal([]byte(out), &shown) != nil || shown.Fence == nil || shown.Fence.Epoch != 7 || shown.Fence.Term != "t" || shown.Count != 1 {
		t.Errorf("%s, %v", out, err)
	}
	// A change keeps it.
	u.must(t, set("a", "2"))
	if f, err := checkpoint.Open(file.New(u.path)).Fence(t.Context()); err != nil || f.Epoch != 7 || f.Term != "t" {
		t.Errorf("%+v, %v", f, err)
	}
}

// texts are keys and values that something along the way could change.
var texts = []string{
	"", " ", "plain", "pubsub:/event/LoginEventStream", "é", "日本語", "🛰️ 👩‍👩‍👧", "\x00", "\t\n\r\b\f", "\u2028\u2029\u202e", `"quoted" \back\slash\`, "</script>&amp;",
	"\u007f\u0080\u00ff", "\ufeff", "\ufffd", "\U0010ffff", "{}", "null", "-1", "%s %!d", strings.Repeat("long ü ", 3_000),
}

func TestKeysAndValuesOfAnyLengthAndScriptComeBackAsTheyWent(t *testing.T) {
	u, v := alone(t), alone(t)
	want := map[string]string{}
	for i, key := range texts {
		value := texts[len(texts)-1-i]
		u.must(t, set(key, value))
		want[key] = value
	}
	check := func(what string, u user) {
		t.Helper()
		out, _, err := u.do(t, Flags{}, true, show("*"))
		var shown Shown
		if err == nil {
			err = json.Unmarshal([]byte(out), &shown)
		}
		if err != nil || len(shown.Checkpoints) != len(want) || strings.Count(out, "\n") != 1 {
			t.Fatalf("%s: %d keys, %v", what, len(shown.Checkpoints), err)
		}
		for key, value := range want {
			if got, ok := shown.Checkpoints[key]; !ok || got != value {
				t.Errorf("%s: %.40q is %.40q, want %.40q", what, key, got, value)
			}
		}
	}
	check("set", u)
	v.must(t, imported(u.must(t, export), false, false))
	check("export and import", v)
	if u.content(t) != v.content(t) {
		t.Error("other bytes after export and import")
	}
	w := alone(t)
	w.must(t, copied(t, "file:"+u.path, "file:"+w.path, false))
	check("copy", w)
	// In text, a line stays a line.
	if out := u.must(t, show("*")); strings.Count(out, "\n") != len(texts)+2 || strings.ContainsAny(out, "\x00\u202e") {
		t.Errorf("%d lines for %d keys", strings.Count(out, "\n"), len(texts))
	}
	for key := range want {
		u.must(t, del(key))
	}
	if got := u.content(t); got != "{}" {
		t.Errorf("%s", got)
	}
	for _, bad := range []func(context.Context, *Command) error{set("caf\xe9", "1"), set("k", "caf\xe9")} {
		for _, flags := range []Flags{{}, {DryRun: true}} {
			if _, _, err := u.do(t, flags, false, bad); !errors.Is(err, checkpoint.ErrNotText) || u.content(t) != "{}" {
				t.Errorf("%v", err)
			}
		}
	}
}

func TestAnImportMergesOrReplacesInOneWrite(t *testing.T) {
	const before = `{"a": "1", "__fence_epoch__": "7", "b": "2"}`
	for name, c := range map[string]struct {
		text             string
		replace, ifEmpty bool
		after            string
		says             string
	}{
		"merge":              {`{"b": "3", "c": "4"}`, false, false, `{"a": "1", "__fence_epoch__": "7", "b": "3", "c": "4"}`, "1 added, 1 updated, 0 removed, 3 checkpoint(s) now"},
		"replace":            {`{"c": "4", "a": "1"}`, true, false, `{"__fence_epoch__": "7", "c": "4", "a": "1"}`, "1 added, 0 updated, 1 removed, 2 checkpoint(s) now"},
		"nothing new":        {`{"b": "2"}`, false, false, before, "0 added, 0 updated, 0 removed, 2 checkpoint(s) now"},
		"replace by nothing": {`{}`, true, false, `{"__fence_epoch__": "7"}`, "2 removed"},
		"if empty":           {`{"b": "3"}`, false, true, before, "--if-empty"},
	} {
		t.Run(name, func(t *testing.T) {
			u := alone(t)
			u.write(t, before)
			out, _, err := u.do(t, Flags{DryRun: true}, false, imported(c.text, c.replace, c.ifEmpty))
			if u.content(t) != before {
				t.Fatalf("a dry run wrote: %q, %v", out, err)
			}
			out, _, err = u.do(t, Flags{}, false, imported(c.text, c.replace, c.ifEmpty))
			if text := out + fmt.Sprint(err); !strings.Contains(text, c.says) || u.content(t) != c.after || (err != nil) != c.ifEmpty {
				t.Errorf("%s\n%s", text, u.content(t))
			}
		})
	}
	t.Run("if empty, into one with a single checkpoint", func(t *testing.T) {
		u := alone(t)
		u.write(t, `{"a": "1"}`)
		if _, _, err := u.do(t, Flags{}, false, imported(`{"b": "1"}`, false, true)); err == nil || u.content(t) != `{"a": "1"}` {
			t.Errorf("%v", err)
		}
	})
	t.Run("if empty, into an empty one", func(t *testing.T) {
		u := alone(t)
		u.write(t, `{"__fence_epoch__": "7"}`)
		u.must(t, imported(`{"a": "1"}`, false, true))
	})
}

func TestAFileThatIsNoExportIsRefused(t *testing.T) {
	u := alone(t)
	u.write(t, `{"a": "1"}`)
	for name, text := range map[string]string{
		"empty": "", "cut": `{"b": "2"`, "a list": `["b"]`, "not UTF-8": "{\"b\": \"\xff\"}", "a number": `{"b": 2}`, "nested": `{"b": {"c": "d"}}`, "twice": `{"b": "1", "b": "2"}`,
		"show's output": "b\t2\n\n1 checkpoint(s)\n", "show --json": `{"object": "x", "checkpoints": {}}`,
		"too large": `{"b": "` + strings.Repeat("x", cas.MaxSize) + `"}`,
	} {
		out, _, err := u.do(t, Flags{Force: true}, false, imported(text, false, false))
		if err == nil || !strings.Contains(err.Error(), "in.json") || !strings.Contains(err.Error(), "nothing was written") || out != "" || u.content(t) != `{"a": "1"}` {
			t.Errorf("%s: %v", name, err)
		}
	}
	broken := io.MultiReader(strings.NewReader(`{"b": "2"`), failing{})
	if _, _, err := u.do(t, Flags{}, false, func(ctx context.Context, c *Command) error { return c.Import(ctx, "in.json", broken, false, false) }); !errors.Is(err, errDisk) {
		t.Errorf("%v", err)
	}
}

var errDisk = errors.New("disk error")

type failing struct{}

func (failing) Read([]byte) (int, error) { return 0, errDisk }

func TestACopyLeavesFencesWhereTheyAre(t *testing.T) {
	u := alone(t)
	u.write(t, `{"b": "1", "__fence_epoch__": "9", "a": "2"}`)
	target := u.path + ".new"
	read := func() string {
		data, err := os.ReadFile(target)
		if err != nil {
			t.Fatal(err)
		}
		return string(data)
	}
	if out := u.must(t, copied(t, "file:"+u.path, "file:"+target, false)); out != fmt.Sprintf("sf2loki: copied 2 checkpoint(s) from %s to %s\n", u.path, target) {
		t.Errorf("%q", out)
	}
	if read() != `{"b": "1", "a": "2"}` {
		t.Error(read())
	}
	// A second time there are checkpoints, although the same ones.
	for flags, replace := range map[Flags]bool{{}: false, {DryRun: true}: false} {
		if _, _, err := u.do(t, flags, false, copied(t, "file:"+u.path, "file:"+target, replace)); err == nil || !strings.Contains(err.Error(), "2 checkpoint(s) already") || !strings.Contains(err.Error(), "--replace") {
			t.Errorf("%v", err)
		}
	}
	if err := os.WriteFile(target, []byte(`{"x": "0", "__fence_epoch__": "3", "a": "0"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	// Sealed, and not the document of this configuration.
	if _, _, err := u.do(t, Flags{}, false, copied(t, "file:"+u.path, "file:"+target, true)); err == nil || !strings.Contains(err.Error(), "sealed by epoch 3") {
		t.Errorf("%v", err)
	}
	if _, _, err := u.do(t, Flags{Force: true}, false, copied(t, "file:"+u.path, "file:"+target, false)); err != nil || read() != `{"__fence_epoch__": "3", "b": "1", "a": "2"}` {
		t.Errorf("%v, %s", err, read())
	}
	var bad *UsageError
	for _, alias := range []string{u.path, filepath.Dir(u.path) + "/./state.json"} {
		if _, _, err := u.do(t, Flags{Force: true}, false, copied(t, "file:"+u.path, "file:"+alias, true)); !errors.As(err, &bad) {
			t.Errorf("onto itself: %v", err)
		}
	}
	if _, _, err := u.do(t, Flags{}, false, copied(t, "file:"+u.path+".none", "file:"+target, true)); err == nil || !strings.Contains(err.Error(), "does not exist") {
		t.Errorf("%v", err)
	}
}

func TestResultsInJSONAreOneObject(t *testing.T) {
	u := alone(t)
	for _, step := range []struct {
		flags Flags
		verb  func(context.Context, *Command) error
		want  string
	}{
		{Flags{DryRun: true}, set("a", "1"), `{"action":"set","object":"PATH","dry_run":true,"changed":true,"checkpoints":1,"added":1,"updated":0,"removed":0,"warnings":[]}`},
		{Flags{}, set("a", "1"), `{"action":"set","object":"PATH","dry_run":false,"changed":true,"checkpoints":1,"added":1,"updated":0,"removed":0,"warnings":[]}`},
		{Flags{}, set("a", "1"), `{"action":"set","object":"PATH","dry_run":false,"changed":false,"checkpoints":1,"added":0,"updated":0,"removed":0,"warnings":[]}`},
		{Flags{}, copied(t, "file:"+u.path, "file:"+u.path+".new", false), `{"action":"copy","object":"PATH.new","from":"PATH","dry_run":false,"changed":true,"checkpoints":1,"added":1,"updated":0,"removed":0,"warnings":[]}`},
		{Flags{}, del("a"), `{"action":"delete","object":"PATH","dry_run":false,"changed":true,"checkpoints":0,"added":0,"updated":0,"removed":1,"warnings":[]}`},
		{Flags{}, imported(`{"b": "<&>"}`, false, false), `{"action":"import","object":"PATH","dry_run":false,"changed":true,"checkpoints":1,"added":1,"updated":0,"removed":0,"warnings":[]}`},
		{Flags{}, show("b"), `{"object":"PATH","found":true,"fence":null,"count":1,"checkpoints":{"b":"<&>"}}`},
		{Flags{}, repair(0), `{"action":"repair-fence","object":"PATH","dry_run":false,"changed":false,"checkpoints":1,"added":0,"updated":0,"removed":0,"fence":{"epoch":0,"term":"","lease":"","ttl_ms":0},"warnings":[]}`},
	} {
		out, _, err := u.do(t, step.flags, true, step.verb)
		if want := strings.ReplaceAll(step.want, "PATH", u.path) + "\n"; err != nil || out != want {
			t.Errorf("%v\n got %s\nwant %s", err, out, want)
		}
	}
	out, errs, err := u.do(t, Flags{}, true, set("pubsub:/event/X", "junk!"))
	var r Result
	if err != nil || json.Unmarshal([]byte(out), &r) != nil || len(r.Warnings) != 1 || !strings.Contains(errs, "warning: pubsub:/event/X") {
		t.Errorf("%s, %s, %v", out, errs, err)
	}
}

func TestAConfigurationWithoutADocumentIsAUsageError(t *testing.T) {
	u := user{cfg: load(t, "state: {store: none}\n")}
	var bad *UsageError
	for _, f := range []func(context.Context, *Command) error{show("*"), set("a", "1"), export, adopt, repair(0)} {
		if _, _, err := u.do(t, Flags{}, false, f); !errors.As(err, &bad) || !strings.Contains(err.Error(), "state.store") {
			t.Errorf("%v", err)
		}
	}
}
