package coordinator

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/sf2loki/sf2loki-ha/cas"
)

// RequestSuffix is appended to the name of the lease object to name its request
// object.
const RequestSuffix = ".request"

// RequestState is what one read of the request object found.
type RequestState struct {
	// Request is what is asked for; the zero value if there is no object.
	Request Request
	// Version is the store's token, or "" if the object definitely does not
	// exist.
	Version cas.Version
	// Age is how long ago the document was written, by the store's own clock; 0
	// if the store does not say.
	Age time.Duration
	// Problem says what of the document asks for nothing because it cannot be
	// understood, or is nil.
	Problem error
}

// RequestStore reads and conditionally writes the request object of one lease.
// Its errors carry a [cas.Class].
type RequestStore interface {
	// ReadRequest returns the object's state. That it definitely does not exist
	// is a state, not an error.
	ReadRequest(ctx context.Context) (RequestState, error)
	// WriteRequest writes the document only if the object's version still is
	// old; an empty old means that it must not exist.
	WriteRequest(ctx context.Context, r Request, old cas.Version) error
	// DescribeRequest names the object for people, without credentials.
	DescribeRequest() string
}

// RequestsFrom keeps the request document in a conditional register.
func RequestsFrom(r cas.Register) RequestStore { return requestRegister{r} }

type requestRegister struct{ reg cas.Register }

func (s requestRegister) DescribeRequest() string { return s.reg.Describe() }

func (s requestRegister) ReadRequest(ctx context.Context) (RequestState, error) {
	v, err := s.reg.Load(ctx)
	switch {
	case errors.Is(err, cas.NotFound):
		return RequestState{}, nil
	case errors.Is(err, cas.Corrupt):
		// Also without a version: it exists and is no document. Nothing is written
		// over it.
		return RequestState{Version: v.Version, Problem: err}, nil
	case err != nil:
		return RequestState{}, fmt.Errorf("read request: %w", err)
	case v.Version == "":
		return RequestState{}, fmt.Errorf("read request %s: %w: answer without a version", s.DescribeRequest(), cas.Ambiguous)
	}
	r, problem := ParseRequest(v.Data)
	return RequestState{Request: r, Version: v.Version, Age: v.Age, Problem: problem}, nil
}

func (s requestRegister) WriteRequest(ctx context.Context, r Request, old cas.Version) error {
	var err error
	if old == "" {
		_, err = s.reg.Create(ctx, r.Marshal())
	} else {
		_, err = s.reg.Replace(ctx, r.Marshal(), old)
	}
	if err != nil {
		return fmt.Errorf("write request: %w", err)
	}
	return nil
}
