package s3

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/smithy-go/logging"

	"github.com/sf2loki/sf2loki-ha/cas/internal/wire"
)

// customRegion is what requests to a custom endpoint are signed for if no region
// is configured. Most such stores accept any region, and those that insist on one
// by default insist on this one.
const customRegion = "us-east-1"

// Config says which bucket, and where.
type Config struct {
	// Bucket is the name of the bucket. Required.
	Bucket string
	// Region is the region of the bucket. Default: what the AWS SDK finds
	// (AWS_REGION, the shared configuration), and us-east-1 with a custom endpoint.
	Region string
	// EndpointURL is the base URL of another store than Amazon's, such as
	// http://127.0.0.1:9000. It is addressed path style. Default: Amazon's endpoint
	// of the region, or AWS_ENDPOINT_URL_S3 or AWS_ENDPOINT_URL. Userinfo in it is
	// ignored.
	EndpointURL string
	// HTTPClient is the client whose transport requests go through, for tests.
	// Default: one of our own. Its redirect policy is not used.
	HTTPClient *http.Client
}

// Open returns the bucket. It sends no request: a missing bucket, unreachable
// endpoint or missing credentials are errors of the first call. An error of Open
// is one of the configuration.
func Open(ctx context.Context, cfg Config) (*Bucket, error) {
	if cfg.Bucket == "" {
		return nil, errors.New("open s3 bucket: no bucket name is configured")
	}
	opts := []func(*config.LoadOptions) error{
		config.WithLogger(logging.Nop{}), // the SDK's own lines have neither our format nor our redaction
	}
	if cfg.Region != "" {
		opts = append(opts, config.WithRegion(cfg.Region))
	}
	sdk, err := config.LoadDefaultConfig(ctx, opts...)
	if err != nil {
		return nil, fmt.Errorf("open s3 bucket %s: load AWS configuration: %w", cfg.Bucket, wire.Cause(err))
	}

	hc := httpClient(cfg.HTTPClient, sdk.HTTPClient)
	var endpointErr error
	client := s3.NewFromConfig(sdk, func(o *s3.Options) {
		o.HTTPClient = hc
		if o.Credentials != nil {
			o.Credentials = marked{o.Credentials}
		}

		// No second attempt behind the caller's back, and no token bucket shared by
		// calls that would refuse new ones after an outage.
		o.Retryer = aws.NopRetryer{}
		o.RetryMaxAttempts = 0 // or AWS_MAX_ATTEMPTS would wrap the retryer

		// One form on the wire for every store: no checksum trailer, no
		// Expect: 100-continue. The signature covers the body's hash.
		o.RequestChecksumCalculation = aws.RequestChecksumCalculationWhenRequired
		o.ResponseChecksumValidation = aws.ResponseChecksumValidationWhenRequired
		o.DisableLogOutputChecksumValidationSkipped = true
		o.ContinueHeaderThresholdBytes = -1
		o.APIOptions = append(o.APIOptions, takeAge)

		if cfg.EndpointURL != "" {
			o.BaseEndpoint = aws.String(cfg.EndpointURL)
		}
		if o.BaseEndpoint != nil { // ours, or the environment's
			u, err := wire.Endpoint(*o.BaseEndpoint)
			if err != nil {
				endpointErr = err
				return
			}
			o.BaseEndpoint = aws.String(u.String())
			o.UsePathStyle = true
			if o.Region == "" {
				o.Region = customRegion
			}
		}
	})
	if endpointErr != nil {
		return nil, fmt.Errorf("open s3 bucket %s: %w", cfg.Bucket, endpointErr)
	}
	if client.Options().Region == "" {
		return nil, fmt.Errorf("open s3 bucket %s: no region is configured; set the region of the bucket in the configuration, or AWS_REGION", cfg.Bucket)
	}
	return &Bucket{name: cfg.Bucket, client: client, http: hc}, nil
}

// httpClient builds on the transport that the SDK configured, which knows
// AWS_CA_BUNDLE.
func httpClient(given *http.Client, fromSDK aws.HTTPClient) *http.Client {
	if given != nil {
		return wire.Client(given)
	}
	if b, ok := fromSDK.(*awshttp.BuildableClient); ok {
		t := b.GetTransport() // a copy
		wire.Tune(t)
		return wire.Client(&http.Client{Transport: t})
	}
	return wire.Client(nil)
}
