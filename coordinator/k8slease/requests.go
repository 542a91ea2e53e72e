package k8slease

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"unicode/utf8"

	"github.com/sf2loki/sf2loki-ha/cas"
)

// RequestAnnotation is the key under which people's requests to a pair are kept,
// on the Lease itself: the permissions stay those for one name, and
// kubectl annotate works.
const RequestAnnotation = "sf2loki.io/lease-request"

const (
	// requestManager owns the annotation in managedFields when it is written here.
	// Under the name of the renewals it would look as young as the last renewal.
	requestManager = "sf2loki-ha-request"
	// maxRequest leaves the record the room it needs: Kubernetes takes 256 KiB of
	// annotations, and a record that does not fit any more costs the lease.
	maxRequest = 64 << 10
	// mostRounds bounds the updates of one write: seconds, with the pauses.
	mostRounds = 16

	hintNoLease = "the request is kept on the Lease: start a replica first, or create an empty Lease"
)

var (
	errNotText  = errors.New("an annotation holds UTF-8 text only")
	errTooLarge = fmt.Errorf("a request has at most %d bytes", maxRequest)
	errBusy     = fmt.Errorf("the lease changed under each of %d updates", mostRounds)
)

// Requests returns the register of the request object: one annotation,
// [RequestAnnotation], on the Lease of the store. It shares the store's client and
// is closed with it.
//
// Its version is a hash of the annotation, so that a renewal does not make a write
// of the request a conflict; equal bytes have equal versions, hence fresh bytes in
// every write. A write changes nothing else of the Lease. What is written is
// UTF-8 text of at most 64 KiB; anything else is Denied and is not sent.
//
// Create needs a Lease: one that does not exist is NotFound. A Lease that was made
// for the annotation would take part in the election, as the lease of somebody
// who never renews, and everybody would have to wait until it is stale.
//
// The age is what managedFields say, by the API server's clock, in whole seconds.
// It is too small, never too large, after somebody who wrote the annotation has
// changed something else of the Lease under the same field manager.
func (s *Store) Requests() cas.Register { return &requests{s} }

type requests struct{ store *Store }

// Describe returns k8s://namespace/name#annotation.
func (r *requests) Describe() string { return r.store.Describe() + "#" + RequestAnnotation }

func (r *requests) Load(ctx context.Context) (cas.Value, error) {
	const op = "load"
	v, err := call(ctx, r.store, op, func(ctx context.Context) (cas.Value, error) {
		o, err := r.store.get(ctx, "read")
		if err != nil {
			return cas.Value{}, err
		}
		text, ok := o.annotations[RequestAnnotation]
		if !ok {
			return cas.Value{}, &cas.Error{Class: cas.NotFound}
		}
		return cas.Value{Data: []byte(text), Version: requestVersion(text), Age: cas.AgeOf(o.date, o.writtenAt(RequestAnnotation))}, nil
	})
	return v, r.own(op, err)
}

func (r *requests) Create(ctx context.Context, data []byte) (cas.Version, error) {
	return r.write(ctx, "create", string(data), func(_ string, exists bool) bool { return !exists })
}

func (r *requests) Replace(ctx context.Context, data []byte, old cas.Version) (cas.Version, error) {
	return r.write(ctx, "replace", string(data), func(now string, exists bool) bool { return exists && requestVersion(now) == old })
}

// write makes text the annotation, if the one that is there may be replaced.
func (r *requests) write(ctx context.Context, op, text string, may func(now string, exists bool) bool) (cas.Version, error) {
	v, err := call(ctx, r.store, op, func(ctx context.Context) (cas.Version, error) {
		switch {
		case !utf8.ValidString(text):
			return "", &cas.Error{Class: cas.Denied, Err: errNotText}
		case len(text) > maxRequest:
			return "", &cas.Error{Class: cas.Denied, Err: errTooLarge}
		}
		return r.update(ctx, text, may)
	})
	return v, r.own(op, err)
}

// update is Store.replace for the annotation: read, compare, update on the
// resourceVersion just read, and ask again after a 409.
func (r *requests) update(ctx context.Context, text string, may func(now string, exists bool) bool) (cas.Version, error) {
	const op = "replace" // of the Lease, also where the annotation is created
	s := r.store
	for contested := range mostRounds {
		o, err := s.get(ctx, op)
		if err != nil {
			return "", unread(err, contested > 0)
		}
		now, exists := o.annotations[RequestAnnotation]
		if !may(now, exists) {
			// It may be the one this call wrote, see Store.replace.
			if contested > 0 && exists && now == text {
				return requestVersion(text), nil
			}
			return "", &cas.Error{Class: cas.Conflict}
		}
		body, err := o.annotated(RequestAnnotation, text, nil)
		if err != nil {
			return "", err
		}
		a := s.sendAs(ctx, http.MethodPut, body, requestManager)
		switch {
		case a.success():
			return r.landed(a, text)
		case a.code != http.StatusConflict:
			return "", s.failure(ctx, op, a) // never sent again from here
		}
		if err := pause(ctx, contested); err != nil {
			return "", s.failure(ctx, op, answer{err: err})
		}
	}
	return "", &cas.Error{Class: cas.Contended, Status: http.StatusConflict, Err: errBusy}
}

// landed takes the version from the answer to an update that succeeded. An answer
// that does not show the write is none.
func (r *requests) landed(a answer, text string) (cas.Version, error) {
	o, err := parseObject(a.body, r.store.name)
	switch {
	case err != nil:
		return "", &cas.Error{Class: cas.Ambiguous, Status: a.code, Err: err, Hint: hintStrange}
	case o.annotations[RequestAnnotation] != text:
		return "", &cas.Error{Class: cas.Ambiguous, Status: a.code, Err: errAltered, Hint: hintAltered}
	}
	return requestVersion(text), nil
}

// own makes an error of the store one of this register.
func (r *requests) own(op string, err error) error {
	var e *cas.Error
	if !errors.As(err, &e) {
		return err
	}
	e.Op, e.Object = op, r.Describe()
	// A Lease that is gone is a conflict to whoever knew a version of it.
	if op == "create" && e.Class == cas.Conflict && e.Status == http.StatusNotFound {
		e.Class, e.Hint = cas.NotFound, hintNoLease
	}
	return err
}

func requestVersion(text string) cas.Version {
	sum := sha256.Sum256([]byte(text))
	return cas.Version(hex.EncodeToString(sum[:16]))
}
