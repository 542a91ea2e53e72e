package checkpoint_test

import (
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/sf2loki/sf2loki-ha/checkpoint"
)

// pythonCase is one document as CPython's json.dumps wrote it.
type pythonCase struct {
	Name  string
	Text  string
	Pairs [][2]string
}

func pythonCases(t testing.TB) []pythonCase {
	t.Helper()
	data, err := os.ReadFile("testdata/python.json")
	if err != nil {
		t.Fatal(err)
	}
	var cases []pythonCase
	if err := json.Unmarshal(data, &cases); err != nil {
		t.Fatal(err)
	}
	if len(cases) < 10 {
		t.Fatalf("%d cases", len(cases))
	}
	return cases
}

func TestDocumentIsEncodedAsPythonDoes(t *testing.T) {
	for _, c := range pythonCases(t) {
		t.Run(c.Name, func(t *testing.T) {
			var built checkpoint.Document
			for _, p := range c.Pairs {
				built.Set(p[0], p[1])
			}
			if got := string(built.Encode()); got != c.Text {
				t.Errorf("built:\n got %s\nwant %s", got, c.Text)
			}
			parsed, err := checkpoint.ParseDocument([]byte(c.Text))
			if err != nil {
				t.Fatal(err)
			}
			if got := string(parsed.Encode()); got != c.Text {
				t.Errorf("parsed and encoded:\n got %s\nwant %s", got, c.Text)
			}
			if parsed.Len() != len(c.Pairs) {
				t.Errorf("%d keys, want %d", parsed.Len(), len(c.Pairs))
			}
			for i, p := range c.Pairs {
				if v, ok := parsed.Get(p[0]); !ok || v != p[1] || parsed.Keys()[i] != p[0] {
					t.Errorf("key %q at %d = %q, %v; want %q", p[0], i, v, ok, p[1])
				}
			}
		})
	}
}

func TestDocumentKeepsTheOrderOfKeys(t *testing.T) {
	d, err := checkpoint.ParseDocument([]byte(" {\"c\":\"1\",\n\t\"a\" : \"2\" , \"b\":\"3\"}\r\n"))
	if err != nil {
		t.Fatal(err)
	}
	before := d.Clone()
	d.Set("a", "changed")
	d.Set("new", "4")
	if !d.Delete("c") || d.Delete("c") {
		t.Error("Delete does not tell whether the key was there")
	}
	d.Set("c", "back")
	if want := []string{"a", "b", "new", "c"}; !slices.Equal(d.Keys(), want) {
		t.Errorf("keys %q, want %q", d.Keys(), want)
	}
	if got, want := string(d.Encode()), `{"a": "changed", "b": "3", "new": "4", "c": "back"}`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if got, want := string(before.Encode()), `{"c": "1", "a": "2", "b": "3"}`; got != want {
		t.Errorf("the clone changed: %s, want %s", got, want)
	}
}

// badDocuments are objects that must never be taken for a document, with a word
// of the reason.
var badDocuments = []struct{ name, data, reason string }{
	{"no bytes", "", "not JSON"},
	{"only spaces", " \n", "not JSON"},
	{"truncated in a value", `{"k1": "v1`, "not JSON"},
	{"truncated after a value", `{"k1": "v1"`, "not JSON"},
	{"truncated after a comma", `{"k1": "v1", `, "not JSON"},
	{"trailing comma", `{"k1": "v1",}`, "not JSON"},
	{"two documents", `{"k1": "v1"} {"k2": "v2"}`, "not JSON"},
	{"binary", "\xff\xfe", "not UTF-8"},
	{"Latin-1 in a value", "{\"k\": \"caf\xe9\"}", "not UTF-8"},
	{"a surrogate in UTF-8", "{\"k\": \"\xed\xa0\x80\"}", "not UTF-8"},
	{"byte order mark", "\ufeff{}", "not JSON"},
	{"a raw newline in a string", "{\"k\": \"a\nb\"}", "not JSON"},
	{"single quotes", `{'k': 'v'}`, "not JSON"},
	{"NaN", `{"k": NaN}`, "not JSON"},
	{"XML of a proxy", "<html>error</html>", "not JSON"},
	{"list", `[]`, "a list"},
	{"string", ` "x"`, "a string"},
	{"number", `17`, "a number"},
	{"boolean", `true`, "a boolean"},
	{"null", `null`, "null"},
	{"number as value", `{"a": "1", "b": 2}`, `value of key "b": not a string, but a number`},
	{"null as value", `{"b": null}`, `value of key "b": not a string, but null`},
	{"boolean as value", `{"b": false}`, "a boolean"},
	{"object as value", `{"b": {"c": "d"}}`, "an object"},
	{"list as value", `{"b": ["c"]}`, "a list"},
	{"key twice", `{"a": "1", "b": "2", "a": "3"}`, `key "a" occurs twice`},
	{"key twice by escape", `{"a": "1", "\u0061": "3"}`, `key "a" occurs twice`},
	{"high surrogate alone", `{"k": "\ud83d"}`, "half a surrogate pair"},
	{"low surrogate alone", `{"k": "\ude00"}`, "half a surrogate pair"},
	{"surrogates the wrong way round", `{"k": "\ude00\ud83d"}`, "half a surrogate pair"},
	{"high surrogate before another escape", `{"k": "\ud83d\n"}`, "half a surrogate pair"},
	{"high surrogate twice", `{"k": "\ud83d\uD83D\ude00"}`, "half a surrogate pair"},
	{"half a pair in a key", `{"\ud83d": "v"}`, "half a surrogate pair"},
}

func TestBadDocumentsAreRefusedWithTheReason(t *testing.T) {
	for _, c := range badDocuments {
		t.Run(c.name, func(t *testing.T) {
			d, err := checkpoint.ParseDocument([]byte(c.data))
			if err == nil {
				t.Fatalf("read as %s", d.Encode())
			}
			if !strings.Contains(err.Error(), c.reason) {
				t.Errorf("error %q does not say %q", err, c.reason)
			}
		})
	}
}

func TestEscapesThatOnlyLookLikeSurrogatesAreRead(t *testing.T) {
	for text, want := range map[string]string{
		`{"k": "\\ud83d"}`:                    `\ud83d`,
		`{"k": "\\\\ud83d\\"}`:                `\\ud83d\`,
		`{"k": "\ud83d\ude00\uD83D\uDE00"}`:   "\U0001f600\U0001f600",
		`{"k": "\ufffd\/\b"}`:                 "\ufffd/\b",
		"{\"k\": \"\U0001f600\ufffd\u00e9\"}": "\U0001f600\ufffd\u00e9",
	} {
		d, err := checkpoint.ParseDocument([]byte(text))
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		if got, _ := d.Get("k"); got != want {
			t.Errorf("%s = %q, want %q", text, got, want)
		}
	}
}

func TestJunkInTheFenceIsNotReadAsUnsealed(t *testing.T) {
	for _, c := range []struct{ name, data string }{
		{"word", `{"__fence_epoch__": "x"}`},
		{"empty", `{"__fence_epoch__": ""}`},
		{"sign", `{"__fence_epoch__": "+7"}`},
		{"negative", `{"__fence_epoch__": "-7"}`},
		{"space", `{"__fence_epoch__": " 7"}`},
		{"fraction", `{"__fence_epoch__": "7.0"}`},
		{"other digits", `{"__fence_epoch__": "\u0667"}`},
		{"above 2^53-1", `{"__fence_epoch__": "9007199254740992"}`},
		{"above int64", `{"__fence_epoch__": "99999999999999999999"}`},
		{"fence without epoch", `{"__fence__": "{\"term\": \"t\"}"}`},
		{"fence is not JSON", `{"__fence_epoch__": "7", "__fence__": "t"}`},
		{"fence without term", `{"__fence_epoch__": "7", "__fence__": "{}"}`},
		{"fence is null", `{"__fence_epoch__": "7", "__fence__": "null"}`},
		{"ttl is text", `{"__fence_epoch__": "7", "__fence__": "{\"term\": \"t\", \"ttl_ms\": \"15s\"}"}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			d, err := checkpoint.ParseDocument([]byte(c.data))
			if err != nil {
				t.Fatal(err)
			}
			if f, err := d.Fence(); err == nil {
				t.Errorf("read as %+v", f)
			}
		})
	}
}

func FuzzDocumentRoundTrip(f *testing.F) {
	for _, c := range pythonCases(f) {
		f.Add([]byte(c.Text))
	}
	for _, c := range badDocuments {
		f.Add([]byte(c.data))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		d, err := checkpoint.ParseDocument(data)
		if err != nil {
			return
		}
		first := d.Encode()
		// 1. What we write is ASCII and is read back as the same document.
		for _, c := range first {
			if c < ' ' || c > '~' {
				t.Fatalf("byte %#x in %q", c, first)
			}
		}
		again, err := checkpoint.ParseDocument(first)
		if err != nil {
			t.Fatalf("%q became unreadable %q: %v", data, first, err)
		}
		if second := again.Encode(); string(second) != string(first) {
			t.Fatalf("%q, then %q", first, second)
		}
		// 2. It means the same to a reader that is not ours.
		var theirs map[string]string
		if err := json.Unmarshal(data, &theirs); err != nil {
			t.Fatalf("accepted %q, encoding/json does not: %v", data, err)
		}
		if len(theirs) != d.Len() {
			t.Fatalf("%d keys, encoding/json has %d", d.Len(), len(theirs))
		}
		for k, v := range theirs {
			if got, ok := d.Get(k); !ok || got != v || !utf8.ValidString(got) {
				t.Fatalf("key %q: %q, encoding/json has %q", k, got, v)
			}
		}
	})
}

func BenchmarkEncode1MiB(b *testing.B) {
	var d checkpoint.Document
	for i := range 5000 {
		d.Set("pubsub:/event/E"+string(rune('a'+i%26))+strings.Repeat("x", i%40)+string(rune('A'+i/200)), strings.Repeat("A", 180))
	}
	b.SetBytes(int64(len(d.Encode())))
	b.ReportAllocs()
	for b.Loop() {
		d.Encode()
	}
}
