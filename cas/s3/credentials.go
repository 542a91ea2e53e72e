package s3

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/aws"
)

// marked makes a failure to get credentials recognisable: nothing was sent, and
// an AccessDenied inside it is the token service's, not the bucket's.
type marked struct{ aws.CredentialsProvider }

func (m marked) Retrieve(ctx context.Context) (aws.Credentials, error) {
	c, err := m.CredentialsProvider.Retrieve(ctx)
	if err != nil {
		return aws.Credentials{}, &credentialError{err}
	}
	return c, nil
}

type credentialError struct{ err error }

func (e *credentialError) Error() string { return "no AWS credentials: " + e.err.Error() }
func (e *credentialError) Unwrap() error { return e.err }
