package gcs

import (
	"context"
	"errors"
	"net/http"
	"strings"

	"google.golang.org/api/googleapi"

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
	case errors.Is(err, errAbsent):
		e.Class, e.Status, e.Err = cas.NotFound, http.StatusNotFound, err
		return e
	case errors.Is(err, errNoVersion), errors.Is(err, errClosed):
		e.Err = err
		return e
	}

	// 2. No credentials: nothing was sent. A token service that was merely too slow
	// for this call's deadline has not refused anything.
	var cred *credentialError
	if errors.As(err, &cred) {
		e.Err, e.Hint = wire.Because(cred.Error(), err), hintNoCredentials
		if ctx.Err() == nil {
			e.Class = cas.Denied
		}
		return e
	}

	// 3. No answer of the service: timeout, reset, cut body, an end of the context,
	// or an answer the library could not make sense of. A write may have landed.
	api := apiError(err)
	if api == nil {
		e.Err = wire.Cause(err)
		if cause := ctx.Err(); cause != nil {
			e.Err = wire.Because("no answer: "+cause.Error(), errors.Join(cause, err))
		}
		return e
	}

	// 4. The service's reason, then its status.
	e.Status, e.Code, e.Err = api.Code, reasonOf(api), causeOf(api, err)
	if errors.Is(err, cas.NoBucket) {
		e.Class, e.Hint = cas.NoBucket, hintNoBucket
		return e
	}
	var list *unsettled
	if errors.As(err, &list) {
		op = "list"
	}
	e.Class, e.Hint = classify(op, api)
	return e
}

// apiError is the service's answer, or nil. For downloads the library leaves the
// body unread; the error document in it is read here.
func apiError(err error) *googleapi.Error {
	var e *googleapi.Error
	if !errors.As(err, &e) {
		return nil
	}
	if e.Message != "" || len(e.Errors) > 0 || e.Body == "" {
		return e
	}
	var read *googleapi.Error
	again := googleapi.CheckResponseWithBody(&http.Response{StatusCode: e.Code, Header: e.Header}, []byte(e.Body))
	if !errors.As(again, &read) {
		return e
	}
	read.Code = e.Code // the status that was sent, whatever the document says
	return read
}

func reasonOf(e *googleapi.Error) string {
	if len(e.Errors) > 0 {
		return e.Errors[0].Reason
	}
	return ""
}

// causeOf is the message of the service.
func causeOf(e *googleapi.Error, err error) error {
	text := strings.TrimSpace(e.Message)
	if text == "" {
		text = strings.TrimSpace(e.Body)
	}
	const most = 300 // a proxy's page is no message
	switch {
	case text == "":
		text = "the store gave no reason"
	case len(text) > most:
		text = strings.ToValidUTF8(text[:most], "") + "…"
	}
	return wire.Because(text, err)
}

// classify is the table of docs/errors.md. "Which side is safe" is decided by the
// effect on a lease: an answer that is not understood must neither let a standby
// claim nor let a leader believe that it lost or kept something. op is load,
// create, replace or list.
func classify(op string, e *googleapi.Error) (cas.Class, string) {
	write := op == "create" || op == "replace"

	// 1. Reasons.
	switch reasonOf(e) {
	case "rateLimitExceeded", "userRateLimitExceeded": // with 429, 403 or 503
		return cas.Contended, ""
	case "notImplemented":
		return cas.Unsupported, hintUnsupported
	case "retentionPolicyNotMet", "objectUnderActiveHold":
		return cas.Denied, hintRetention
	}

	// 2. Status.
	switch {
	case e.Code >= 300 && e.Code < 400:
		return cas.NoBucket, hintRedirect
	case e.Code == http.StatusBadRequest && strings.HasPrefix(e.Message, "Invalid bucket name"):
		return cas.NoBucket, hintNoBucket
	case e.Code == http.StatusUnauthorized:
		return cas.Denied, hintUnauthenticated
	case e.Code == http.StatusForbidden:
		return cas.Denied, permissions[op]
	case e.Code == http.StatusNotFound:
		return classify404(op, e)
	case e.Code == http.StatusConflict, e.Code == http.StatusTooManyRequests:
		return cas.Contended, ""
	case e.Code == http.StatusPreconditionFailed && write:
		return cas.Conflict, ""
	case e.Code == http.StatusNotImplemented:
		return cas.Unsupported, hintUnsupported
	}
	return cas.Ambiguous, ""
}

func classify404(op string, e *googleapi.Error) (cas.Class, string) {
	switch what := whatIs404(e); {
	case what == bucket:
		return cas.NoBucket, hintNoBucket
	case what == object && op == "load":
		return cas.NotFound, ""
	case what == object && op == "replace":
		return cas.Conflict, ""
	// A write to an object that is not there is a 412, so the only thing a write
	// can miss is its bucket.
	case what == eitherOne && (op == "create" || op == "replace"):
		return cas.NoBucket, hintNoBucket
	}
	// Not the service's words: a proxy without a route, a wrong endpoint. As absence
	// it would be claimed, as a conflict it would end a term.
	return cas.Ambiguous, hintStrange404
}
