package gcs

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"strings"

	"cloud.google.com/go/auth"
	"cloud.google.com/go/auth/credentials"
	"cloud.google.com/go/storage"
	"google.golang.org/api/option"

	"github.com/sf2loki/sf2loki-ha/cas/internal/wire"
)

// emulatorEnv is honoured as by Google's client libraries.
const emulatorEnv = "STORAGE_EMULATOR_HOST"

// scope is the least that reads and writes objects.
const scope = "https://www.googleapis.com/auth/devstorage.read_write"

// Config says which bucket, and where.
type Config struct {
	// Bucket is the name of the bucket. Required.
	Bucket string
	// ServiceFile is the path of a credentials file (service account, workload
	// identity federation, …). Default: application default credentials.
	ServiceFile string
	// EndpointURL is the base URL of another server than Google's, such as
	// http://127.0.0.1:4443. Default: STORAGE_EMULATOR_HOST, or Google's service.
	// Userinfo in it is ignored. Without ServiceFile its requests are anonymous.
	EndpointURL string
	// HTTPClient is the client whose transport requests go through, below
	// authentication, for tests. Default: one of our own. Its redirect policy is
	// not used.
	HTTPClient *http.Client
}

// Open returns the bucket. It sends no request: a missing bucket, unreachable
// endpoint or missing credentials are errors of the first call. An error of Open
// is one of the configuration.
func Open(ctx context.Context, cfg Config) (*Bucket, error) {
	fail := func(err error) (*Bucket, error) {
		return nil, fmt.Errorf("open gcs bucket %s: %w", cfg.Bucket, err)
	}
	if cfg.Bucket == "" {
		return nil, errors.New("open gcs bucket: no bucket name is configured")
	}
	endpoint, err := endpointOf(cfg)
	if err != nil {
		return fail(err)
	}

	base := wire.Client(cfg.HTTPClient)
	transport := base.Transport
	if transport == nil {
		transport = http.DefaultTransport
	}
	switch {
	case cfg.ServiceFile != "":
		detect, err := fromFile(cfg.ServiceFile)
		if err != nil {
			return fail(err)
		}
		transport = &authenticate{base: transport, detect: detect}
	case endpoint == nil:
		transport = &authenticate{base: transport, detect: fromEnvironment}
	}
	hc := *base
	hc.Transport = &single{base: transport}

	opts := []option.ClientOption{
		// Authentication is ours (see authenticate), so the library looks for no
		// credentials, and has nobody to report telemetry to.
		option.WithHTTPClient(&hc),
		option.WithoutAuthentication(),
		option.WithTelemetryDisabled(),
		storage.WithDisabledClientMetrics(),
		storage.WithJSONReads(),
	}
	if endpoint != nil {
		opts = append(opts, option.WithEndpoint(endpoint.String()+"/storage/v1/"))
	}
	client, err := storage.NewClient(ctx, opts...)
	if err != nil {
		return fail(wire.Cause(err))
	}
	client.SetRetry(storage.WithPolicy(storage.RetryNever))
	return &Bucket{name: cfg.Bucket, client: client, http: base}, nil
}

// endpointOf is the custom endpoint, or nil for Google's.
func endpointOf(cfg Config) (*url.URL, error) {
	raw := cfg.EndpointURL
	if raw == "" {
		if raw = os.Getenv(emulatorEnv); raw == "" {
			return nil, nil
		}
		if !strings.Contains(raw, "://") {
			raw = "http://" + raw
		}
	}
	u, err := wire.Endpoint(raw)
	if err != nil {
		return nil, err
	}
	u.Path = strings.TrimSuffix(u.Path, "/storage/v1") // as the client library wants it
	if u.Path != "" {
		return nil, errors.New("endpoint URL: want http://host[:port] or https://host[:port] without a path; uploads have a path of their own")
	}
	return u, nil
}

// fromFile reads the file now, so that a wrong path is an error of the
// configuration, and returns how to make credentials of it.
func fromFile(path string) (func() (*auth.Credentials, error), error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("service file: %w", err)
	}
	var f struct {
		Type credentials.CredType `json:"type"`
	}
	if json.Unmarshal(b, &f) != nil || f.Type == "" { // the error would quote the file
		return nil, fmt.Errorf("service file: %s is not a Google credentials file (JSON with a \"type\")", path)
	}
	detect := func() (*auth.Credentials, error) {
		return credentials.NewCredentialsFromJSON(f.Type, b, &credentials.DetectOptions{Scopes: []string{scope}})
	}
	if _, err := detect(); err != nil {
		return nil, fmt.Errorf("service file: %s: %w", path, wire.Cause(err))
	}
	return detect, nil
}

// fromEnvironment looks for application default credentials. It may ask the
// metadata server whether there is one.
func fromEnvironment() (*auth.Credentials, error) {
	return credentials.DetectDefault(&credentials.DetectOptions{Scopes: []string{scope}})
}
