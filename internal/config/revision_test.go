package config

import (
	"os"
	"path/filepath"
	"testing"
)

func TestARevisionIsWhatIsDeployedAndNotWhichReplica(t *testing.T) {
	const file = `coordinate:
  type: s3_lease
  s3_lease: {bucket: b}
state: {store: s3, s3: {bucket: b}}
salesforce:
  client_id: ${CLIENT_ID}
`
	revision := func(t *testing.T, document, version string, command []string, environ ...string) string {
		t.Helper()
		path := filepath.Join(t.TempDir(), "config.yaml")
		if err := os.WriteFile(path, []byte(document), 0o600); err != nil {
			t.Fatal(err)
		}
		c, err := Load(path, append(environ, "CLIENT_ID=x"))
		if err != nil {
			t.Fatal(err)
		}
		return c.Revision(version, command)
	}
	base := revision(t, file, "v1", []string{"work"})
	for name, c := range map[string]struct {
		got  string
		same bool
	}{
		"the same again":               {revision(t, file, "v1", []string{"work"}), true},
		"another name of the replica":  {revision(t, file, "v1", []string{"work"}, "SF2LOKI_COORDINATE__S3_LEASE__HOLDER_ID=b"), true},
		"another address":              {revision(t, file, "v1", []string{"work"}, "SF2LOKI_SERVICE__HEALTH_ADDR=:9999"), true},
		"another way to the store":     {revision(t, file, "v1", []string{"work"}, "SF2LOKI_COORDINATE__S3_LEASE__ENDPOINT_URL=http://127.0.0.1:1"), true},
		"another value of a variable":  {revision(t, file, "v1", []string{"work"}, "CLIENT_ID=y"), true},
		"another binary":               {revision(t, file, "v2", []string{"work"}), false},
		"another command":              {revision(t, file, "v1", []string{"work", "-v"}), false},
		"another setting of ours":      {revision(t, file, "v1", []string{"work"}, "SF2LOKI_SERVICE__SHUTDOWN_GRACE=7s"), false},
		"another section of sf2loki's": {revision(t, file+"sources: {}\n", "v1", []string{"work"}), false},
	} {
		if (c.got == base) != c.same {
			t.Errorf("%s: %s, before it was %s", name, c.got, base)
		}
	}
	named := func(id string) string {
		return revision(t, "service:\n  health_addr: "+id+"\n"+file, "v1", nil)
	}
	if named("127.0.0.1:1") != named("127.0.0.1:2") {
		t.Error("two files that differ only in what names the replica are two revisions")
	}
}
