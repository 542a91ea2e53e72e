package gcs

import (
	"context"
	"errors"
	"net/http"
	"regexp"
	"strings"

	"cloud.google.com/go/storage"
	"google.golang.org/api/googleapi"
	"google.golang.org/api/iterator"

	"github.com/sf2loki/sf2loki-ha/cas"
)

// missing is what a 404 is about.
type missing int

const (
	something missing = iota // not our service's words
	eitherOne                // its words of former times and of emulators: object or bucket
	object
	bucket
)

var (
	bucketText = regexp.MustCompile(`(?i)\bbucket\b.*\bdoes not exist\b`)
	objectText = regexp.MustCompile(`(?i)^no such object\b`)
)

// whatIs404 reads the text of a 404: the message of the JSON error, or the whole
// body, which is plain text for downloads.
func whatIs404(e *googleapi.Error) missing {
	text := strings.TrimSpace(e.Message)
	if text == "" {
		text = strings.TrimSpace(e.Body)
	}
	switch {
	case objectText.MatchString(text):
		return object
	case len(text) < 500 && bucketText.MatchString(text):
		return bucket
	case text == http.StatusText(http.StatusNotFound):
		return eitherOne
	}
	return something
}

func isBare404(err error) bool {
	e := apiError(err)
	return e != nil && e.Code == http.StatusNotFound && whatIs404(e) == eitherOne
}

// errAbsent: the object definitely does not exist.
var errAbsent = errors.New("no such object in an existing bucket")

// whatIsMissing finds out what a bare 404 was about by listing at most one name.
// That the bucket can be listed proves that it exists, so that the 404 was the
// object's. A listing that shows the object contradicts the 404; then, and on any
// other failure, nothing is known.
func (r *register) whatIsMissing(ctx context.Context, bare error) error {
	ctx, a := newAttempt(ctx)
	q := &storage.Query{Prefix: r.name}
	if err := q.SetAttrSelection([]string{"Name"}); err != nil {
		return err
	}
	it := r.bucket.client.Bucket(r.bucket.name).Objects(ctx, q)
	it.PageInfo().MaxSize = 1
	first, err := it.Next()
	switch {
	case errors.Is(err, iterator.Done) && a.status() != http.StatusOK:
		// The library takes 204 for an empty listing; the service does not send it.
		return errors.New("a listing was answered without content")
	case errors.Is(err, iterator.Done):
		return errAbsent
	case err == nil && first.Name != r.name: // a longer name; ours would come first
		return errAbsent
	case err == nil:
		return errors.New("a read answered 404, a listing shows the object")
	}
	if e := apiError(err); e != nil && e.Code == http.StatusNotFound && whatIs404(e) != something {
		return &missingBucket{bare}
	}
	return &unsettled{err}
}

// missingBucket is the 404 of a read that turned out to be the bucket's.
type missingBucket struct{ err error }

func (e *missingBucket) Error() string { return e.err.Error() }
func (e *missingBucket) Unwrap() error { return e.err }
func (e *missingBucket) Is(t error) bool {
	return t == cas.NoBucket
}

// unsettled is the failure of the listing that should have settled a 404.
type unsettled struct{ err error }

func (e *unsettled) Error() string {
	return "tell a missing object from a missing bucket: " + e.err.Error()
}
func (e *unsettled) Unwrap() error { return e.err }
