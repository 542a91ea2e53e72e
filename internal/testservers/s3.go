package testservers

import (
	"os"
	"path/filepath"
	"testing"
)

// S3 is a running versitygw.
type S3 struct {
	// Endpoint is the base URL.
	Endpoint string
	// AccessKey and SecretKey are those of its root user.
	AccessKey, SecretKey string
	// Region is the one it signs for.
	Region string
	// Bucket exists and is empty.
	Bucket string

	dir string
}

// StartS3 starts versitygw on a directory of the test.
func StartS3(t testing.TB) *S3 {
	t.Helper()
	s := &S3{AccessKey: "test-access", SecretKey: "test-secret-of-a-test-server", Region: "us-east-1", Bucket: "test-bucket", dir: t.TempDir()}
	s.MakeBucket(t, s.Bucket)
	bin := Bin(t, "versitygw")
	port := start(t, "/healthz",
		[]string{"ROOT_ACCESS_KEY=" + s.AccessKey, "ROOT_SECRET_KEY=" + s.SecretKey},
		func(port int) []string {
			return []string{bin, "--quiet", "--keep-alive", "--region", s.Region, "--health", "/healthz", "--port", loopback(port), "posix", s.dir}
		})
	s.Endpoint = "http://" + loopback(port)
	return s
}

// MakeBucket makes another empty bucket: with this server, a directory.
func (s *S3) MakeBucket(t testing.TB, name string) {
	t.Helper()
	if err := os.Mkdir(filepath.Join(s.dir, name), 0o700); err != nil {
		t.Fatalf("testservers: %v", err)
	}
}

// Environ is the environment in which an AWS SDK finds the server's credentials
// and nothing else: no profile, no instance metadata, no other endpoint.
func (s *S3) Environ() map[string]string {
	return map[string]string{
		"AWS_ACCESS_KEY_ID":           s.AccessKey,
		"AWS_SECRET_ACCESS_KEY":       s.SecretKey,
		"AWS_SESSION_TOKEN":           "",
		"AWS_PROFILE":                 "",
		"AWS_REGION":                  "",
		"AWS_DEFAULT_REGION":          "",
		"AWS_ENDPOINT_URL":            "",
		"AWS_ENDPOINT_URL_S3":         "",
		"AWS_CONFIG_FILE":             filepath.Join(s.dir, ".no-config"),
		"AWS_SHARED_CREDENTIALS_FILE": filepath.Join(s.dir, ".no-credentials"),
		"AWS_EC2_METADATA_DISABLED":   "true",
	}
}

// Setenv sets Environ for the test.
func (s *S3) Setenv(t *testing.T) {
	t.Helper()
	for k, v := range s.Environ() {
		t.Setenv(k, v)
	}
}
