package gcs_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sf2loki/sf2loki-ha/cas"
	"github.com/sf2loki/sf2loki-ha/cas/castest"
	"github.com/sf2loki/sf2loki-ha/cas/gcs"
	"github.com/sf2loki/sf2loki-ha/internal/testservers"
)

// isolate hides the credentials and settings of the machine.
func isolate(t *testing.T) {
	t.Helper()
	for k, v := range map[string]string{
		"STORAGE_EMULATOR_HOST": "", "GOOGLE_APPLICATION_CREDENTIALS": "", "GOOGLE_CLOUD_UNIVERSE_DOMAIN": "",
		"HOME": t.TempDir(), "GCE_METADATA_HOST": "127.0.0.1:1",
	} {
		t.Setenv(k, v)
	}
}

func open(t *testing.T, cfg gcs.Config) *gcs.Bucket {
	t.Helper()
	b, err := gcs.Open(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = b.Close() })
	return b
}

func class(t *testing.T, what string, err error, want cas.Class) *cas.Error {
	t.Helper()
	var e *cas.Error
	if !errors.As(err, &e) || e.Class != want {
		t.Fatalf("%s: %v, want class %q", what, err, want)
	}
	return e
}

func TestConformanceOnFakeGCSServer(t *testing.T) {
	isolate(t)
	srv := testservers.StartGCS(t)
	open := func(t *testing.T) cas.Bucket {
		b, err := gcs.Open(t.Context(), gcs.Config{Bucket: srv.Bucket, EndpointURL: srv.Endpoint})
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	castest.Run(t, open)
	castest.Exact(t, open)
}

func TestMissingBucketIsNeverAMissingObject(t *testing.T) {
	isolate(t)
	srv := testservers.StartGCS(t)
	r := open(t, gcs.Config{Bucket: "no-such-bucket", EndpointURL: srv.Endpoint}).Register("k")
	_, err := r.Load(t.Context())
	if e := class(t, "load", err, cas.NoBucket); e.Hint == "" {
		t.Error("no hint")
	}
	_, err = r.Create(t.Context(), []byte("x"))
	class(t, "create", err, cas.NoBucket)
	_, err = r.Replace(t.Context(), []byte("x"), "1")
	class(t, "replace", err, cas.NoBucket)
}

func TestEmulatorHostIsHonoured(t *testing.T) {
	isolate(t)
	srv := testservers.StartGCS(t)
	for _, host := range []string{srv.Endpoint, strings.TrimPrefix(srv.Endpoint, "http://")} {
		t.Setenv("STORAGE_EMULATOR_HOST", host)
		r := open(t, gcs.Config{Bucket: srv.Bucket}).Register("k" + host)
		if _, err := r.Create(t.Context(), []byte("x")); err != nil {
			t.Errorf("%s: %v", host, err)
		}
	}
}

func TestOpenRefusesAnUnusableConfiguration(t *testing.T) {
	isolate(t)
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	for name, tt := range map[string]struct {
		cfg  gcs.Config
		want string
	}{
		"no bucket":          {gcs.Config{}, "bucket"},
		"endpoint no URL":    {gcs.Config{Bucket: "b", EndpointURL: "127.0.0.1:4443"}, "endpoint"},
		"endpoint with path": {gcs.Config{Bucket: "b", EndpointURL: "http://u:hunter2@h/base"}, "endpoint"},
		"no such file":       {gcs.Config{Bucket: "b", ServiceFile: filepath.Join(dir, "none")}, "service file"},
		"file without JSON":  {gcs.Config{Bucket: "b", ServiceFile: write("a", "hunter2")}, "service file"},
		"file without type":  {gcs.Config{Bucket: "b", ServiceFile: write("b", `{"private_key":"hunter2"}`)}, "service file"},
		"unknown type":       {gcs.Config{Bucket: "b", ServiceFile: write("c", `{"type":"x","private_key":"hunter2"}`)}, "service file"},
		"broken key":         {gcs.Config{Bucket: "b", ServiceFile: write("d", `{"type":"service_account","private_key":"hunter2"}`)}, "service file"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := gcs.Open(t.Context(), tt.cfg)
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Fatalf("err = %v, want one about %q", err, tt.want)
			}
			if strings.Contains(err.Error(), "hunter2") {
				t.Errorf("the error leaks a credential: %v", err)
			}
		})
	}
}
