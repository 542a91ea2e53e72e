package s3_test

import (
	"errors"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"github.com/johannesboyne/gofakes3"
	"github.com/johannesboyne/gofakes3/backend/s3mem"

	"github.com/sf2loki/sf2loki-ha/cas"
	"github.com/sf2loki/sf2loki-ha/cas/castest"
	"github.com/sf2loki/sf2loki-ha/cas/s3"
	"github.com/sf2loki/sf2loki-ha/internal/testservers"
)

// isolate gives the test AWS credentials and hides whatever the machine has.
func isolate(t *testing.T) {
	t.Helper()
	none := filepath.Join(t.TempDir(), "none")
	for k, v := range map[string]string{
		"AWS_ACCESS_KEY_ID": "AKIATEST", "AWS_SECRET_ACCESS_KEY": "test-secret-key",
		"AWS_SESSION_TOKEN": "", "AWS_PROFILE": "", "AWS_REGION": "", "AWS_DEFAULT_REGION": "",
		"AWS_ENDPOINT_URL": "", "AWS_ENDPOINT_URL_S3": "",
		"AWS_CONFIG_FILE": none, "AWS_SHARED_CREDENTIALS_FILE": none,
		"AWS_EC2_METADATA_DISABLED": "true",
	} {
		t.Setenv(k, v)
	}
}

func open(t *testing.T, cfg s3.Config) *s3.Bucket {
	t.Helper()
	b, err := s3.Open(t.Context(), cfg)
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

// Not castest.Exact: versitygw 1.8.0 looks up the ETag of a path first and opens
// the file at that path afterwards, so a write in between shows newer data beside
// the older ETag.
func TestConformanceOnVersitygw(t *testing.T) {
	srv := testservers.StartS3(t)
	srv.Setenv(t)
	castest.Run(t, func(t *testing.T) cas.Bucket {
		b, err := s3.Open(t.Context(), s3.Config{Bucket: srv.Bucket, EndpointURL: srv.Endpoint})
		if err != nil {
			t.Fatal(err)
		}
		return b
	})
}

// The store inside "make demo".
func TestConformanceOnGofakes3(t *testing.T) {
	isolate(t)
	backend := s3mem.New()
	if err := backend.CreateBucket("bkt"); err != nil {
		t.Fatal(err)
	}
	srv := httptest.NewServer(gofakes3.New(backend).Server())
	t.Cleanup(srv.Close)
	open := func(t *testing.T) cas.Bucket {
		b, err := s3.Open(t.Context(), s3.Config{Bucket: "bkt", EndpointURL: srv.URL})
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	castest.Run(t, open)
	castest.Exact(t, open)
}

func TestMissingBucketIsNeverAMissingObject(t *testing.T) {
	srv := testservers.StartS3(t)
	srv.Setenv(t)
	r := open(t, s3.Config{Bucket: "no-such-bucket", EndpointURL: srv.Endpoint}).Register("k")
	_, err := r.Load(t.Context())
	if e := class(t, "load", err, cas.NoBucket); e.Hint == "" {
		t.Error("no hint")
	}
	_, err = r.Create(t.Context(), []byte("x"))
	class(t, "create", err, cas.NoBucket)
	_, err = r.Replace(t.Context(), []byte("x"), `"etag"`)
	class(t, "replace", err, cas.NoBucket)
}

func TestWrongSecretIsDeniedWithAHint(t *testing.T) {
	srv := testservers.StartS3(t)
	srv.Setenv(t)
	t.Setenv("AWS_SECRET_ACCESS_KEY", "wrong")
	_, err := open(t, s3.Config{Bucket: srv.Bucket, EndpointURL: srv.Endpoint}).Register("k").Load(t.Context())
	if e := class(t, "load", err, cas.Denied); !strings.Contains(e.Hint, "secret") || e.Code != "SignatureDoesNotMatch" {
		t.Errorf("code %q, hint %q", e.Code, e.Hint)
	}
}

func TestOpenRefusesAnUnusableConfiguration(t *testing.T) {
	isolate(t)
	for name, tt := range map[string]struct {
		cfg  s3.Config
		want string
	}{
		"no bucket":         {s3.Config{Region: "eu-west-1"}, "bucket"},
		"no region":         {s3.Config{Bucket: "b"}, "region"},
		"endpoint no URL":   {s3.Config{Bucket: "b", EndpointURL: "127.0.0.1:9000"}, "endpoint"},
		"endpoint of query": {s3.Config{Bucket: "b", EndpointURL: "http://u:hunter2@h/?token=hunter2"}, "endpoint"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := s3.Open(t.Context(), tt.cfg)
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Fatalf("err = %v, want one about %q", err, tt.want)
			}
			if strings.Contains(err.Error(), "hunter2") {
				t.Errorf("the error leaks a credential: %v", err)
			}
		})
	}
}

func TestRegionComesFromTheEnvironmentIfNotConfigured(t *testing.T) {
	isolate(t)
	t.Setenv("AWS_REGION", "eu-west-1")
	open(t, s3.Config{Bucket: "b"})
}
