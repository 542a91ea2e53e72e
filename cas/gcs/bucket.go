package gcs

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"sync/atomic"

	"cloud.google.com/go/storage"

	"github.com/sf2loki/sf2loki-ha/cas"
	"github.com/sf2loki/sf2loki-ha/internal/bounded"
)

var (
	errClosed    = errors.New("bucket is closed")
	errNoVersion = errors.New("the answer is a success without a generation")
	errTooLarge  = fmt.Errorf("larger than %d bytes", cas.MaxSize)
)

// Bucket is an opened bucket.
type Bucket struct {
	name   string
	client *storage.Client
	http   *http.Client // below the library
	closed atomic.Bool
}

// Register returns the object of that name.
func (b *Bucket) Register(name string) cas.Register { return &register{bucket: b, name: name} }

var _ cas.ScratchBucket = (*Bucket)(nil)

// Scratch implements cas.ScratchBucket.
func (b *Bucket) Scratch(of string) cas.Scratch {
	return cas.NewScratch(b, of, func(ctx context.Context, name string) error {
		r := &register{bucket: b, name: name}
		_, err := call(ctx, r, "remove", func(ctx context.Context) (struct{}, error) {
			ctx, _ = newAttempt(ctx)
			err := r.object().Delete(ctx)
			if e := apiError(err); e != nil && e.Code == http.StatusNotFound && (whatIs404(e) == object || whatIs404(e) == eitherOne) {
				err = nil
			}
			return struct{}{}, err
		})
		return err
	})
}

// Close closes the client and its idle connections and makes the registers of
// this bucket fail.
func (b *Bucket) Close() error {
	b.closed.Store(true)
	b.http.CloseIdleConnections()
	return b.client.Close()
}

type register struct {
	bucket *Bucket
	name   string
	dates  *dates // nil: the age is worth no request
}

func (r *register) Describe() string { return "gs://" + r.bucket.name + "/" + r.name }

func (r *register) object() *storage.ObjectHandle {
	return r.bucket.client.Bucket(r.bucket.name).Object(r.name)
}

func (r *register) Load(ctx context.Context) (cas.Value, error) {
	return call(ctx, r, "load", func(ctx context.Context) (cas.Value, error) {
		v, err := r.read(ctx)
		if isBare404(err) {
			return cas.Value{}, r.whatIsMissing(ctx, err)
		}
		return v, err
	})
}

func (r *register) read(ctx context.Context) (cas.Value, error) {
	download, a := newAttempt(ctx)
	in, err := r.object().NewReader(download)
	if err != nil {
		return cas.Value{}, err
	}
	defer in.Close()
	data, err := io.ReadAll(io.LimitReader(in, cas.MaxSize+1))
	if cut := a.truncated(); cut != nil {
		return cas.Value{}, fmt.Errorf("read body: %w", cut)
	}
	switch {
	case err != nil: // such as a checksum that does not fit
		return cas.Value{}, fmt.Errorf("read body: %w", err)
	case in.Attrs.Generation <= 0:
		return cas.Value{}, errNoVersion
	}
	v := cas.Value{Version: version(in.Attrs.Generation), Age: r.age(ctx, a, in.Attrs.Generation)}
	if len(data) > cas.MaxSize {
		return v, errTooLarge
	}
	v.Data = data
	return v, nil
}

func (r *register) Create(ctx context.Context, data []byte) (cas.Version, error) {
	return r.put(ctx, "create", data, storage.Conditions{DoesNotExist: true})
}

func (r *register) Replace(ctx context.Context, data []byte, old cas.Version) (cas.Version, error) {
	generation, err := strconv.ParseInt(string(old), 10, 64)
	if err != nil || generation <= 0 || version(generation) != old {
		// No object has such a version, and 0 would be sent as no condition at all.
		return call(ctx, r, "replace", func(context.Context) (cas.Version, error) { return "", cas.Conflict })
	}
	return r.put(ctx, "replace", data, storage.Conditions{GenerationMatch: generation})
}

func (r *register) put(ctx context.Context, op string, data []byte, condition storage.Conditions) (cas.Version, error) {
	data = bytes.Clone(data) // an abandoned request may still read it
	return call(ctx, r, op, func(ctx context.Context) (cas.Version, error) {
		ctx, _ = newAttempt(ctx)
		w := r.object().If(condition).NewWriter(ctx)
		w.ContentType = "application/json"
		w.CacheControl = "no-store" // a cached lease is a stale one
		// More than the document: it fits into one chunk, which is one request with
		// its checksum in front, and the buffer is not the default's 16 MiB.
		w.ChunkSize = len(data) + 1

		_, werr := w.Write(data)
		err := w.Close() // the verdict; a failed Write only says that Close will fail
		if err == nil {
			err = werr
		}
		if err != nil {
			return "", err
		}
		if attrs := w.Attrs(); attrs != nil && attrs.Generation > 0 {
			return version(attrs.Generation), nil
		}
		return "", errNoVersion
	})
}

func version(generation int64) cas.Version { return cas.Version(strconv.FormatInt(generation, 10)) }

// call bounds f by ctx and gives its error a class.
func call[T any](ctx context.Context, r *register, op string, f func(context.Context) (T, error)) (T, error) {
	var zero T
	if r.bucket.closed.Load() {
		return zero, r.failure(ctx, op, errClosed)
	}
	v, err := bounded.Call(ctx, f)
	if err != nil {
		return v, r.failure(ctx, op, err)
	}
	return v, nil
}
