package statecmd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"unicode"

	"github.com/sf2loki/sf2loki-ha/cas"
	"github.com/sf2loki/sf2loki-ha/cas/file"
	"github.com/sf2loki/sf2loki-ha/cas/gcs"
	"github.com/sf2loki/sf2loki-ha/cas/s3"
	"github.com/sf2loki/sf2loki-ha/internal/config"
)

// UsageError is a command line or a configuration that cannot be carried out: exit
// code 2.
type UsageError struct{ Err error }

func (e *UsageError) Error() string { return e.Err.Error() }

// Unwrap returns the cause.
func (e *UsageError) Unwrap() error { return e.Err }

func usage(format string, args ...any) error { return &UsageError{fmt.Errorf(format, args...)} }

// The schemes of a place.
const (
	schemeFile = "file"
	schemeS3   = "s3"
	schemeGCS  = "gs"
)

// Place is where a document is: file:PATH, s3://BUCKET/KEY or gs://BUCKET/OBJECT.
type Place struct {
	Scheme, Bucket string
	// Name is the path, the key or the object's name.
	Name string
}

// ParsePlace reads a place.
func ParsePlace(text string) (Place, error) {
	scheme, rest, ok := strings.Cut(text, ":")
	if !ok || strings.ContainsRune(scheme, filepath.Separator) {
		return Place{}, usage("%q: say where it is: file:%s, s3://BUCKET/KEY or gs://BUCKET/OBJECT", text, text)
	}
	switch scheme {
	case schemeFile:
		path := strings.TrimPrefix(rest, "//")
		switch {
		case path != rest && !strings.HasPrefix(path, "/"):
			return Place{}, usage("%q names a host; write file:PATH", text)
		case path == "" || strings.HasSuffix(path, "/") || strings.ContainsRune(path, 0):
			return Place{}, usage("%q: the path of a file is missing", text)
		}
		return Place{Scheme: schemeFile, Name: filepath.Clean(path)}, nil
	case schemeS3, schemeGCS:
		bucket, name, _ := strings.Cut(strings.TrimPrefix(rest, "//"), "/")
		switch {
		case !strings.HasPrefix(rest, "//") || bucket == "" || strings.ContainsAny(bucket, "@:?# "):
			return Place{}, usage("%q: write %s://BUCKET/NAME; credentials and endpoint go into the environment, the configuration or flags", text, scheme)
		case name == "" || strings.HasPrefix(name, "/") || strings.HasSuffix(name, "/") || strings.ContainsFunc(name, unicode.IsControl):
			return Place{}, usage("%q: the name of the object is missing, begins or ends with a slash, or holds a control character", text)
		}
		return Place{Scheme: scheme, Bucket: bucket, Name: name}, nil
	}
	return Place{}, usage("%q: unknown scheme %q; known are file, s3 and gs", text, scheme)
}

func (p Place) String() string {
	if p.Scheme == schemeFile {
		return "file:" + p.Name
	}
	return p.Scheme + "://" + p.Bucket + "/" + p.Name
}

// Access is the way to a bucket, where neither the configuration nor the
// environment says it.
type Access struct{ EndpointURL, Region, ServiceFile string }

// access is the way to the place: as given, else as configured for the same
// bucket, else left to the client's own environment.
func (p Place) access(cfg *config.Config, given Access) Access {
	if given != (Access{}) {
		return given
	}
	st, co := cfg.State, cfg.Coordinate
	switch {
	case p.Scheme == schemeS3 && p.Bucket == st.S3.Bucket:
		return Access{EndpointURL: st.S3.EndpointURL, Region: st.S3.Region}
	case p.Scheme == schemeS3 && p.Bucket == co.S3Lease.Bucket:
		return Access{EndpointURL: co.S3Lease.EndpointURL, Region: co.S3Lease.Region}
	case p.Scheme == schemeGCS && p.Bucket == st.GCS.Bucket:
		return Access{EndpointURL: st.GCS.EndpointURL, ServiceFile: st.GCS.ServiceFile}
	case p.Scheme == schemeGCS && p.Bucket == co.GCSLease.Bucket:
		return Access{EndpointURL: co.GCSLease.EndpointURL, ServiceFile: co.GCSLease.ServiceFile}
	}
	return Access{}
}

// open returns the object in the place.
func (p Place) open(ctx context.Context, a Access) (cas.Register, io.Closer, error) {
	var b cas.Bucket
	var err error
	switch p.Scheme {
	case schemeS3:
		b, err = s3.Open(ctx, s3.Config{Bucket: p.Bucket, Region: a.Region, EndpointURL: a.EndpointURL})
	case schemeGCS:
		b, err = gcs.Open(ctx, gcs.Config{Bucket: p.Bucket, ServiceFile: a.ServiceFile, EndpointURL: a.EndpointURL})
	default:
		return file.New(p.Name), nothing{}, nil
	}
	if err != nil {
		return nil, nil, &UsageError{err}
	}
	return b.Register(p.Name), b, nil
}

type nothing struct{}

func (nothing) Close() error { return nil }

// configured is the place of the configured document; false without one.
func configured(cfg *config.Config) (Place, bool) {
	switch s := cfg.State; s.Store {
	case config.StoreFile:
		return Place{Scheme: schemeFile, Name: filepath.Clean(s.File.Path)}, true
	case config.StoreS3:
		return Place{Scheme: schemeS3, Bucket: s.S3.Bucket, Name: s.S3.Key}, true
	case config.StoreGCS:
		return Place{Scheme: schemeGCS, Bucket: s.GCS.Bucket, Name: s.GCS.ObjectName}, true
	}
	return Place{}, false
}

var errNoDocument = errors.New("state.store is none: this configuration has no checkpoint document")

// same reports whether two places, reached that way, are one object.
func same(p Place, a Access, q Place, b Access) bool {
	if p.Scheme == schemeFile && q.Scheme == schemeFile {
		return absolute(p.Name) == absolute(q.Name)
	}
	return p == q && strings.TrimRight(a.EndpointURL, "/") == strings.TrimRight(b.EndpointURL, "/")
}

func absolute(path string) string {
	full, err := filepath.Abs(path)
	if err != nil {
		return path
	}
	if real, err := filepath.EvalSymlinks(filepath.Dir(full)); err == nil {
		return filepath.Join(real, filepath.Base(full))
	}
	return full
}
