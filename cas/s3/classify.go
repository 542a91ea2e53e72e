package s3

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	smithy "github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"github.com/sf2loki/sf2loki-ha/cas"
	"github.com/sf2loki/sf2loki-ha/cas/internal/wire"
)

// failure makes a cas.Error of whatever a call returned.
func (r *register) failure(ctx context.Context, op string, err error) *cas.Error {
	e := &cas.Error{Class: cas.Ambiguous, Op: op, Object: r.Describe()}

	// 1. Our own verdicts.
	switch {
	case errors.Is(err, cas.Conflict):
		e.Class = cas.Conflict
		return e
	case errors.Is(err, errTooLarge):
		e.Class, e.Err, e.Hint = cas.Corrupt, err, hintCorrupt
		return e
	case errors.Is(err, errNoVersion), errors.Is(err, errClosed):
		e.Err = err
		return e
	}

	// 2. No credentials: nothing was sent. A credential source that was merely too
	// slow for this call's deadline has not refused anything.
	var cred *credentialError
	if errors.As(err, &cred) {
		e.Hint = hintNoCredentials
		e.Err = wire.Because(cred.Error(), err)
		if ctx.Err() == nil {
			e.Class = cas.Denied
		}
		return e
	}

	// 3. No answer of the service: timeout, reset, cut body, an end of the context,
	// or something the SDK could not make sense of. A write may have landed.
	a := answerOf(err)
	e.Status, e.Code = a.status, a.code
	if a.status == 0 {
		e.Err = wire.Cause(err)
		if cause := ctx.Err(); cause != nil {
			e.Err = wire.Because("no answer: "+cause.Error(), errors.Join(cause, err))
		}
		return e
	}

	// 4. The service's code, then its status.
	e.Err = a.cause(err)
	e.Class, e.Hint = classify(op, a)
	return e
}

// answer is what a response said.
type answer struct {
	status    int
	code      string // as the SDK reports it: made up from the status if there was none
	message   string
	region    string // the bucket's, where the service names it
	location  string // host of a redirect
	requestID string
}

func answerOf(err error) (a answer) {
	var resp *smithyhttp.ResponseError
	if errors.As(err, &resp) && resp.Response != nil && resp.Response.Response != nil {
		a.status = resp.HTTPStatusCode()
		a.region = resp.Response.Header.Get("X-Amz-Bucket-Region")
		if u, err := resp.Response.Location(); err == nil {
			a.location = u.Host
		}
	}
	var aws *awshttp.ResponseError
	if errors.As(err, &aws) {
		a.requestID = aws.ServiceRequestID()
	}
	var api smithy.APIError
	if errors.As(err, &api) {
		a.code, a.message = api.ErrorCode(), api.ErrorMessage()
	}
	return a
}

// cause is the message of the service, or the SDK's where there is none.
func (a answer) cause(err error) error {
	text := a.message
	switch {
	case a.code == "": // the body was no error document
		return wire.Cause(err)
	case text == "" || text == a.code || text == http.StatusText(a.status):
		text = "the store gave no reason"
	}
	if a.requestID != "" {
		text += fmt.Sprintf(" (request id %s)", a.requestID)
	}
	return wire.Because(text, err)
}

// classify is the table of docs/errors.md. "Which side is safe" is decided by the
// effect on a lease: an answer that is not understood must neither let a standby
// claim nor let a leader believe that it lost or kept something.
func classify(op string, a answer) (cas.Class, string) {
	write := op == "create" || op == "replace"

	// 1. Codes.
	switch a.code {
	case "NoSuchKey":
		switch op {
		case "load":
			return cas.NotFound, ""
		case "replace": // S3 says 404, other stores 412, where If-Match meets nothing
			return cas.Conflict, ""
		}
	case "NoSuchBucket", "InvalidBucketName", "NoSuchAccessPoint":
		return cas.NoBucket, hintNoBucket
	case "PermanentRedirect", "TemporaryRedirect", "AuthorizationHeaderMalformed",
		"IllegalLocationConstraintException", "IncorrectEndpoint", "InvalidRegionName":
		return cas.NoBucket, hintRegion(a)
	case "PreconditionFailed": // also inside an answer whose status is 200
		if write {
			return cas.Conflict, ""
		}
		return cas.Ambiguous, "" // we sent no condition
	case "ConditionalRequestConflict", "OperationAborted":
		return cas.Contended, ""
	case "NotImplemented":
		return cas.Unsupported, hintUnsupported
	}
	if hint, ok := denials[a.code]; ok {
		return cas.Denied, hint
	}
	if a.code == "AccessDenied" {
		return cas.Denied, permissions[op]
	}
	if strings.HasPrefix(a.code, "KMS.") {
		return cas.Denied, hintKMS
	}

	// 2. Status. The code may have been made up from it by the SDK.
	switch {
	case a.status == http.StatusNotModified:
		// Some stores' 412 to If-None-Match; we send no other condition of that kind.
		if op == "create" {
			return cas.Conflict, ""
		}
		return cas.Ambiguous, ""
	case a.status >= 300 && a.status < 400:
		return cas.NoBucket, hintRegion(a)
	case a.status == http.StatusUnauthorized, a.status == http.StatusForbidden:
		return cas.Denied, permissions[op]
	case a.status == http.StatusConflict, a.status == http.StatusTooManyRequests:
		return cas.Contended, ""
	case a.status == http.StatusPreconditionFailed && write:
		return cas.Conflict, ""
	case a.status == http.StatusNotImplemented:
		return cas.Unsupported, hintUnsupported
	case a.status == http.StatusNotFound:
		// Not the store's "no such key": a proxy without a route, a wrong base path.
		// As absence it would be claimed, as a conflict it would end a term.
		return cas.Ambiguous, hintStrange404
	}
	return cas.Ambiguous, ""
}
