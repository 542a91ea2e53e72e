package childconfig

import (
	"os"
	"reflect"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/sf2loki/sf2loki-ha/internal/config"
)

var settings = Settings{HealthAddr: "127.0.0.1:4321", Drain: 30 * time.Second}

const (
	noop  = "coordinate:\n  type: noop\n"
	ours  = "  health_addr: \"127.0.0.1:4321\"\n  shutdown_grace: 24s\n"
	added = noop + "service:\n" + ours
)

func document(t *testing.T, in string) string {
	t.Helper()
	out, err := Document([]byte(in), settings)
	if err != nil {
		t.Fatalf("%v\n%s", err, in)
	}
	return string(out)
}

func TestDocument(t *testing.T) {
	for name, c := range map[string]struct{ in, want string }{
		"empty":          {"", added},
		"null":           {"null\n", added},
		"only a comment": {"# nothing\n", added},
		"lease": {
			"# ours\ncoordinate: {type: s3_lease, s3_lease: {bucket: b}}\n# theirs\nsink: {loki: {url: \"${URL}\"}} # here\nworkload: {command: [a]}\n",
			"# theirs\nsink: {loki: {url: \"${URL}\"}} # here\n" + added},
		"service": {
			"service:\n  log_level: debug # loud\n  runtime_dir: /run/x\n  health_addr: :8080\n  platform_stop_window: 30s\n  telemetry: {enabled: yes}\n  shutdown_grace: 9s\n",
			"service:\n  log_level: debug # loud\n  telemetry: {enabled: yes}\n" + ours + noop},
		"service of nothing": {"service:\n", "service:\n" + ours + noop},
		"flow service":       {"service: {log_level: info, runtime_dir: /r}\n", "service: {log_level: info, health_addr: \"127.0.0.1:4321\", shutdown_grace: 24s}\n" + noop},
		"state": {
			"state:\n  store: file\n  file: {path: /p, shared: true}\n  gcs: {bucket: b, endpoint_url: http://e}\n  s3: {endpoint_url: http://s}\n",
			"state:\n  store: file\n  file: {path: /p}\n  gcs: {bucket: b}\n  s3: {endpoint_url: 'http://s'}\n" + added},
		"YAML 1.1 texts":       {"sink: [yes, 'yes', 0123, 2024-01-01, ~]\nsources: 12:30\n", "sink: [yes, 'yes', 0123, 2024-01-01, ~]\nsources: 12:30\n" + added},
		"their key twice":      {"sink: {a: 1, a: 2}\n", "sink: {a: 1, a: 2}\n" + added},
		"anchor that goes":     {"coordinate: {s3_lease: &b {bucket: x}}\nsink: *b\norgs: *b\n", "sink: &b {bucket: x}\norgs: *b\n" + added},
		"merge that goes":      {"workload: &b {u: x}\nsink: {<<: *b, v: y}\n", "sink: {<<: &b {u: x}, v: y}\n" + added},
		"key of ours merged":   {"sink: &b {runtime_dir: /r, log_level: info}\nservice:\n  <<: *b\n", "sink: &b {runtime_dir: /r, log_level: info}\nservice:\n  log_level: info\n" + ours + noop},
		"shared with theirs":   {"service: &s {health_addr: x, log_level: info}\nsink: *s\n", "service: {log_level: info, health_addr: \"127.0.0.1:4321\", shutdown_grace: 24s}\nsink: &s {health_addr: x, log_level: info}\n" + noop},
		"ours through theirs":  {"sink: &f {path: /p, shared: true}\nstate: {file: *f}\n", "sink: &f {path: /p, shared: true}\nstate: {file: {path: /p}}\n" + added},
		"merged section":       {"<<: {coordinate: {type: s3_lease}, sink: {a: 1}}\n", "sink: {a: 1}\n" + added},
		"byte order mark":      {"\ufeffsink: 1\n", "sink: 1\n" + added},
		"reference is no text": {"sink:\n  n: ${N}\n  t: '${T}'\n", "sink:\n  n: ${N}\n  t: '${T}'\n" + added},
	} {
		t.Run(name, func(t *testing.T) {
			if got := document(t, c.in); got != c.want {
				t.Errorf("got:\n%s\nwant:\n%s", got, c.want)
			}
		})
	}
}

func TestDocumentRefuses(t *testing.T) {
	for in, want := range map[string]error{
		"a: 1\n---\nb: 2\n":                     errNotOne,
		"- hidden\n":                            errNotOne,
		"a: [hidden\n":                          errNotOne,
		"sink: [12:30]":                         errChanged,
		"service: hidden\n":                     errNotOne,
		"service: {}\nservice: {}\n":            errTwice,
		"service: {log_level: a, log_level: b}": errTwice,
		"service: &s\n  <<: *s\n":               errNesting,
		"sink: &s [*s, hidden]\nworkload: 1\n":  nil,
	} {
		if _, err := Document([]byte(in), settings); err != want {
			t.Errorf("%q: %v, want %v", in, err, want)
		}
	}
}

func TestGrace(t *testing.T) {
	for drain, want := range map[time.Duration]time.Duration{
		30 * time.Second: 24 * time.Second, 8 * time.Second: 2 * time.Second,
		8900 * time.Millisecond: 2 * time.Second, 6500 * time.Millisecond: time.Second, 0: time.Second,
	} {
		if got := (Settings{Drain: drain}).grace(); got != want {
			t.Errorf("drain %v: grace %v, want %v", drain, got, want)
		}
	}
}

// upstream are sf2loki's keys in the sections that both programs read.
var upstream = strings.Fields(`
state.store state.file.path state.s3.bucket state.s3.key state.s3.region state.s3.endpoint_url
state.gcs.bucket state.gcs.object_name state.gcs.service_file
service.log_level service.log_format service.health_addr service.shutdown_grace
service.unready_after_sink_failing service.telemetry`)

// A key that is added to the configuration and not to dropped would stop sf2loki.
func TestEveryKeyIsTheirsOrDropped(t *testing.T) {
	known := map[string]bool{}
	for _, key := range upstream {
		known[key] = true
	}
	n := 0
	var walk func(string, reflect.Type)
	walk = func(path string, typ reflect.Type) {
		for i := range typ.NumField() {
			tag, ok := typ.Field(i).Tag.Lookup("key")
			if !ok {
				continue
			}
			name, _, _ := strings.Cut(tag, ",")
			key := join(path, name)
			f := typ.Field(i).Type
			if f.Kind() == reflect.Struct && f != reflect.TypeFor[config.Opaque]() {
				walk(key, f)
				continue
			}
			n++
			if !known[key] && !below(key) {
				t.Errorf("%s is neither sf2loki's nor dropped", key)
			}
		}
	}
	walk("", reflect.TypeFor[config.Config]())
	if n < len(upstream) {
		t.Errorf("saw %d keys", n)
	}
}

func tree(t *testing.T, text string) map[string]any {
	t.Helper()
	var m map[string]any
	if err := yaml.Unmarshal([]byte(text), &m); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	return m
}

// Upstream's example, with values of our own: it differs where it is said to.
func TestExample(t *testing.T) {
	data, err := os.ReadFile("testdata/example.yaml")
	if err != nil {
		t.Fatal(err)
	}
	got, want := tree(t, document(t, string(data))), tree(t, string(data))
	delete(want, "workload")
	want["coordinate"] = map[string]any{"type": "noop"}
	service := want["service"].(map[string]any)
	delete(service, "runtime_dir")
	service["health_addr"], service["shutdown_grace"] = "127.0.0.1:4321", "24s"
	delete(want["state"].(map[string]any)["file"].(map[string]any), "shared")
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %v\nwant %v", got, want)
	}
}
