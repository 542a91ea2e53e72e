package statecmd

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sf2loki/sf2loki-ha/internal/config"
)

func TestGlobsAreThoseOfFnmatch(t *testing.T) {
	for _, c := range []struct {
		pattern, text string
		want          bool
	}{
		{"*", "", true}, {"*", "a/b\nc", true}, {"", "", true}, {"", "a", false},
		{"pubsub:*", "pubsub:/event/X", true}, {"pubsub:*", "org=a:pubsub:/event/X", false}, {"*pubsub:*", "org=a:pubsub:/event/X", true},
		{"?", "é", true}, {"?", "", false}, {"a?c", "abc", true}, {"a?c", "ac", false},
		{"[abc]x", "bx", true}, {"[abc]x", "dx", false}, {"[!abc]x", "dx", true}, {"[!abc]x", "ax", false},
		{"[a-c]", "b", true}, {"[a-c]", "d", false}, {"[a-]", "-", true}, {"[]]", "]", true}, {"[!]]", "]", false},
		{"[ab", "[ab", true}, {"[ab", "a", false}, {"x[", "x[", true}, {"[", "[", true}, {"[]", "[]", true},
		{"a*b*c", "a__b__b__c", true}, {"a*b*c", "a__c__b", false}, {"*a", "aaab", false}, {"*a*", "bab", true},
		{"A", "a", false}, {"**", "x", true}, {`\*`, `\x`, true}, {strings.Repeat("*a", 30) + "b", strings.Repeat("a", 200), false},
	} {
		if got := glob(c.pattern, c.text); got != c.want {
			t.Errorf("glob(%q, %q) = %v", c.pattern, c.text, got)
		}
	}
}

func TestValuesThatSf2lokiWouldNotUnderstandAreNamed(t *testing.T) {
	for _, c := range []struct {
		key, value string
		bad        bool
	}{
		{"pubsub:/event/LoginEventStream", "AAAAAAAAAqc=", false},
		{"org=prod:pubsub:/event/X", "AAAAAAAAAqc=", false},
		{"pubsub:/event/X", "AAAAAAAAAqc", true}, {"pubsub:/event/X", "", true}, {"pubsub:/event/X", "!!!!", true}, {"org=a:pubsub:/event/X", "AAA=\n", true},
		{"eventlogfile:Login", `{"ids": [["0ATA", "2026-07-01T00:47:20.000+0000"]], "last_created": "2026-07-01T00:47:20.000+0000"}`, false},
		{"eventlogfile:Login", `{"ids": [], "last_created": "2026-07-01T00:00:00Z"}`, false},
		{"eventlogfile:Login", "2026-07-01T00:00:00Z", true}, {"eventlogfile:Login", `{"last_created": "junk"}`, true}, {"eventlogfile:Login", `{"ids": []}`, true}, {"eventlogfile:Login", `[]`, true},
		{"eventlog_objects:LoginHistory", `{"ids": ["0Ya0"], "last_ts": "2026-06-30T09:00:00.000+0000"}`, false},
		{"eventlog_objects:LoginHistory", "2026-06-30T09:00:00.000+0000", false}, {"eventlog_objects:LoginHistory", "5", true},
		{"apexlog", `{"ids": ["07L0"], "last_ts": "2026-07-02T07:59:00.000+0000"}`, false}, {"org=x:apexlog", "junk", true},
		{"egress:budget", `{"date": "2026-07-01", "bytes": 150}`, false}, {"egress:budget", `{"date": "1 July", "bytes": 150}`, true}, {"egress:budget", "150", true},
		{"anything:else", "junk", false}, {"pubsub", "junk", false}, {"", "", false}, {"org=bad name:pubsub:x", "junk", false},
	} {
		if got := shapeProblem(c.key, c.value); (got != "") != c.bad {
			t.Errorf("%s = %s: %q", c.key, c.value, got)
		}
	}
}

func TestPlacesAreParsedOrRefusedWithTheRightForm(t *testing.T) {
	for text, want := range map[string]Place{
		"file:/var/lib/sf2loki/state.json":   {Scheme: "file", Name: "/var/lib/sf2loki/state.json"},
		"file:///var/lib/sf2loki/state.json": {Scheme: "file", Name: "/var/lib/sf2loki/state.json"},
		"file:state.json":                    {Scheme: "file", Name: "state.json"},
		"file:./a/../state é.json":           {Scheme: "file", Name: "state é.json"},
		"s3://b-1/sf2loki/state.json":        {Scheme: "s3", Bucket: "b-1", Name: "sf2loki/state.json"},
		"gs://b.x/a b/ü":                     {Scheme: "gs", Bucket: "b.x", Name: "a b/ü"},
	} {
		got, err := ParsePlace(text)
		if err != nil || got != want {
			t.Errorf("%s: %+v, %v", text, got, err)
		}
		if again, err := ParsePlace(got.String()); err != nil || again != got {
			t.Errorf("%s: %s is not the same place: %v", text, got, err)
		}
	}
	for text, says := range map[string]string{
		"": "file:", "state.json": "file:state.json", "/a/b": "file:/a/b", "./x:y": "file:./x:y", "http://h/x": "unknown scheme", "gcs://b/o": "unknown scheme",
		"file:": "missing", "file:/a/": "missing", "file://host/a": "names a host", "file:a\x00b": "missing",
		"s3:b/k": "write s3://BUCKET/NAME", "s3://": "write s3", "s3://b": "name of the object", "s3://b/": "name of the object", "s3://b//k": "name of the object", "s3://b/k/": "name of the object",
		"s3://key:secret@b/k": "credentials", "gs://b/k\n": "control character",
	} {
		_, err := ParsePlace(text)
		var bad *UsageError
		if !errors.As(err, &bad) || !strings.Contains(err.Error(), says) {
			t.Errorf("%q: %v, want a usage error with %q", text, err, says)
		}
	}
}

func load(t *testing.T, yaml string) *config.Config {
	t.Helper()
	file := filepath.Join(t.TempDir(), "config.yaml")
	if err := os.WriteFile(file, []byte(yaml), 0o600); err != nil {
		t.Fatal(err)
	}
	cfg, err := config.Load(file, nil)
	if err != nil {
		t.Fatal(err)
	}
	return cfg
}

func TestTheWayToABucketIsThatOfTheFlagsThenOfTheConfiguration(t *testing.T) {
	cfg := load(t, `
coordinate: {type: s3_lease, s3_lease: {bucket: leases, region: r-1, endpoint_url: "http://lease:1"}}
state: {store: s3, s3: {bucket: docs, region: r-2, endpoint_url: "http://doc:2"}, gcs: {bucket: gdocs, service_file: /key.json}}
`)
	for name, c := range map[string]struct {
		place string
		given Access
		want  Access
	}{
		"the bucket of the document": {"s3://docs/other", Access{}, Access{EndpointURL: "http://doc:2", Region: "r-2"}},
		"the bucket of the lease":    {"s3://leases/x", Access{}, Access{EndpointURL: "http://lease:1", Region: "r-1"}},
		"a bucket of Cloud Storage":  {"gs://gdocs/x", Access{}, Access{ServiceFile: "/key.json"}},
		"another bucket":             {"s3://else/x", Access{}, Access{}},
		"the name, another cloud":    {"gs://docs/x", Access{}, Access{}},
		"flags win":                  {"s3://docs/x", Access{Region: "r-9"}, Access{Region: "r-9"}},
		"a file":                     {"file:docs", Access{}, Access{}},
	} {
		t.Run(name, func(t *testing.T) {
			p, err := ParsePlace(c.place)
			if err != nil {
				t.Fatal(err)
			}
			if got := p.access(cfg, c.given); got != c.want {
				t.Errorf("%+v, want %+v", got, c.want)
			}
		})
	}
}

func TestAWriteThatWouldTakeAFileFromItsUserIsNoticed(t *testing.T) {
	for name, c := range map[string]struct {
		file, dir, self int
		problem         bool
	}{
		"our own file":                     {10001, 10001, 10001, false},
		"root, the daemon's file":          {10001, 10001, 0, true},
		"root, the daemon's directory":     {noOwner, 10001, 0, true},
		"root, its own directory":          {noOwner, 0, 0, false},
		"root, its own file":               {0, 10001, 0, false},
		"a user, root's file":              {0, 1000, 1000, true},
		"a user, a shared directory":       {noOwner, 0, 1000, false},
		"no directory yet":                 {noOwner, noOwner, 0, false},
		"a user, somebody else's new file": {noOwner, 1001, 1000, false},
	} {
		if got := ownerProblem("/s/state.json", c.file, c.dir, c.self); (got != "") != c.problem {
			t.Errorf("%s: %q", name, got)
		}
	}
}
