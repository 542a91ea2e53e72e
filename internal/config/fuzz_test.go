package config

import (
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var seeds = []string{
	"", "a: b", "coordinate: {type: s3_lease, s3_lease: {bucket: b, ttl: 15s, renew_interval: 5s}}\nstate: {store: s3, s3: {bucket: b}}\n",
	"coordinate:\n  type: gcs_lease\n  gcs_lease:\n    bucket: ${B}\n    endpoint_url: http://h:1\nstate:\n  store: gcs\n  gcs: {bucket: b}\n",
	"state: &a {file: *a}\n", "<<: [*x]\n", "? [a]\n: b\n", "- &l [*l]\n", "%YAML 1.1\n---\na: !!int 'x'\n...\n", "\xff\xfe", "workload: {command: [a, 'b', \"\\x00\"]}\n",
	"service: {shutdown_grace: P1DT2H3.5S, health_addr: ':8080', telemetry: {x: *y}}\n", "service: {shutdown_grace: 1:59.9, log_level: INFO}\n", "a: |\n  x\n y\n", "state: !!set {a, b}\n",
	"coordinate: {type: noop, s3_lease: {ttl: 99999999999999999999999999, renew_interval: .inf, poll_interval: 1e999}}", "a: 'x\n\n", "\ufeffstate: {}", "--- !<tag:yaml.org,2002:binary> aGk=\n",
}

// check loads data as a file and as values of the environment. The only thing
// that can go wrong is a configuration error.
func checkLoad(t *testing.T, path string, data []byte) {
	t.Helper()
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	text := string(data)
	for _, env := range [][]string{
		nil,
		{text, "SF2LOKI_" + text, "SF2LOKI_COORDINATE__" + text + "=1"},
		{"SF2LOKI_COORDINATE=" + text}, {"SF2LOKI_WORKLOAD__COMMAND=" + text}, {"SF2LOKI_SERVICE__SHUTDOWN_GRACE=" + text},
		{"SF2LOKI_COORDINATE__TYPE=s3_lease", "SF2LOKI_COORDINATE__S3_LEASE__BUCKET=" + text, "SF2LOKI_COORDINATE__S3_LEASE__ENDPOINT_URL=" + text, "AWS_ENDPOINT_URL=" + text, "SF2LOKI_STATE__STORE=s3", "SF2LOKI_STATE__S3__BUCKET=b"},
		{"SF2LOKI_STATE__FILE__PATH=" + text, "SF2LOKI_COORDINATE__TYPE=file_lease", "SF2LOKI_COORDINATE__FILE_LEASE__PATH=" + text},
	} {
		c, err := Load(path, env)
		var config *Error
		switch {
		case err == nil && c == nil, err != nil && c != nil:
			t.Fatalf("%q %q: %v, %v", data, env, c, err)
		case err != nil && !errors.As(err, &config):
			t.Fatalf("%q %q: %v is not an *Error", data, env, err)
		case err != nil && len(strings.Split(err.Error(), "\n")) != len(config.Problems)+1:
			t.Fatalf("%q %q: not one line a problem:\n%v", data, env, err)
		case err == nil:
			if e := c.Election("x"); e.Validate() != nil {
				t.Fatalf("%q %q: accepted, but %v", data, env, e.Validate())
			}
			_, _, _ = c.HolderID(), c.LeaseObject(), c.StateObject()
		}
	}
}

func FuzzLoad(f *testing.F) {
	for _, s := range seeds {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) { checkLoad(t, filepath.Join(t.TempDir(), "c.yaml"), data) })
}

// The same as an ordinary test: every seed cut at every byte, and a few hundred
// with bytes changed. The random numbers are the same in each run.
func TestLoadNeverPanicsOnDamagedFiles(t *testing.T) {
	path := filepath.Join(t.TempDir(), "c.yaml")
	r := rand.New(rand.NewPCG(1, 2))
	const bytes = "{}[]:,&*!|>'\"%@`#-?<~= \n\t\x00\xff09azP$"
	for _, s := range seeds {
		for cut := range len(s) {
			if cut%3 == 0 {
				checkLoad(t, path, []byte(s[:cut]))
			}
		}
		for range 40 {
			data := []byte(s)
			for range r.IntN(4) + 1 {
				if at := r.IntN(len(data) + 1); at < len(data) && r.IntN(2) == 0 {
					data[at] = bytes[r.IntN(len(bytes))]
				} else {
					data = append(data[:at:at], append([]byte{bytes[r.IntN(len(bytes))]}, data[at:]...)...)
				}
			}
			checkLoad(t, path, data)
		}
	}
}
