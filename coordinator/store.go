package coordinator

import (
	"context"
	"errors"
	"fmt"

	"github.com/sf2loki/sf2loki-ha/cas"
)

// Lease is what a read of the lease found.
type Lease struct {
	// Version is the store's token of the state that was read.
	Version cas.Version
	// Record is the document, if Corrupt is nil.
	Record Record
	// Corrupt says why the bytes are not a lease record, or is nil. A corrupt
	// lease is a foreign lease of unknown holder: it has to go stale.
	Corrupt error
}

// LeaseStore reads and conditionally writes one lease. Its errors carry a
// [cas.Class]. There is no unconditional write and no delete.
type LeaseStore interface {
	// Read returns the lease; a lease that definitely does not exist is an
	// error of class NotFound.
	Read(ctx context.Context) (Lease, error)
	// Create writes the lease only if none exists.
	Create(ctx context.Context, r Record) (cas.Version, error)
	// Replace writes the lease only if its version still is old.
	Replace(ctx context.Context, r Record, old cas.Version) (cas.Version, error)
	// Describe names the lease for people, without credentials.
	Describe() string
}

// FromRegister keeps the lease as a JSON object in a conditional register.
func FromRegister(r cas.Register) LeaseStore { return registerStore{r} }

type registerStore struct{ reg cas.Register }

func (s registerStore) Describe() string { return s.reg.Describe() }

func (s registerStore) Read(ctx context.Context) (Lease, error) {
	v, err := s.reg.Load(ctx)
	if errors.Is(err, cas.Corrupt) && v.Version != "" {
		// Too large to be read is a state of the lease like any other junk: it has
		// to go stale, and then it is replaced.
		return Lease{Version: v.Version, Corrupt: err}, nil
	}
	if err != nil {
		return Lease{}, fmt.Errorf("read lease: %w", err)
	}
	if v.Version == "" {
		// Without a token nothing could be written on top of it: no answer.
		return Lease{}, fmt.Errorf("read lease %s: %w", s.Describe(), &cas.Error{
			Class: cas.Ambiguous, Op: "load", Object: s.Describe(), Err: errors.New("answer without a version")})
	}
	rec, err := ParseRecord(v.Data)
	return Lease{Version: v.Version, Record: rec, Corrupt: err}, nil
}

func (s registerStore) Create(ctx context.Context, r Record) (cas.Version, error) {
	data, err := r.Marshal()
	if err != nil {
		return "", err
	}
	return confirmed(s.reg.Create(ctx, data))
}

func (s registerStore) Replace(ctx context.Context, r Record, old cas.Version) (cas.Version, error) {
	data, err := r.Marshal()
	if err != nil {
		return "", err
	}
	return confirmed(s.reg.Replace(ctx, data, old))
}

// confirmed refuses a success without a version: success is both.
func confirmed(v cas.Version, err error) (cas.Version, error) {
	switch {
	case err != nil:
		return "", fmt.Errorf("write lease: %w", err)
	case v == "":
		return "", fmt.Errorf("write lease: %w: success without a version", cas.Ambiguous)
	}
	return v, nil
}
