package s3

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync/atomic"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/sf2loki/sf2loki-ha/cas"
	"github.com/sf2loki/sf2loki-ha/internal/bounded"
)

var (
	errClosed    = errors.New("bucket is closed")
	errNoVersion = errors.New("the answer is a success without an ETag")
	errTooLarge  = fmt.Errorf("larger than %d bytes", cas.MaxSize)
)

// Bucket is an opened bucket.
type Bucket struct {
	name   string
	client *s3.Client
	http   *http.Client
	closed atomic.Bool
}

// Register returns the object of that key.
func (b *Bucket) Register(name string) cas.Register { return &register{bucket: b, key: name} }

var _ cas.ScratchBucket = (*Bucket)(nil)

// Scratch implements cas.ScratchBucket.
func (b *Bucket) Scratch(object string) cas.Scratch {
	return cas.NewScratch(b, object, func(ctx context.Context, name string) error {
		r := &register{bucket: b, key: name}
		_, err := call(ctx, r, "remove", func(ctx context.Context) (struct{}, error) {
			_, err := b.client.DeleteObject(ctx, &s3.DeleteObjectInput{Bucket: aws.String(b.name), Key: aws.String(name)})
			if answerOf(err).code == "NoSuchKey" { // S3 says 204, other stores this
				err = nil
			}
			return struct{}{}, err
		})
		return err
	})
}

// Close closes idle connections and makes the registers of this bucket fail.
func (b *Bucket) Close() error {
	b.closed.Store(true)
	b.http.CloseIdleConnections()
	return nil
}

type register struct {
	bucket *Bucket
	key    string
}

func (r *register) Describe() string { return "s3://" + r.bucket.name + "/" + r.key }

func (r *register) Load(ctx context.Context) (cas.Value, error) {
	return call(ctx, r, "load", func(ctx context.Context) (cas.Value, error) {
		out, err := r.bucket.client.GetObject(ctx, &s3.GetObjectInput{
			Bucket: aws.String(r.bucket.name),
			Key:    aws.String(r.key),
		})
		if err != nil {
			return cas.Value{}, err
		}
		defer out.Body.Close()
		// The whole body, from this answer: a cut one fails here, not in a parser.
		data, err := io.ReadAll(io.LimitReader(out.Body, cas.MaxSize+1))
		switch {
		case err != nil:
			return cas.Value{}, fmt.Errorf("read body: %w", err)
		case aws.ToString(out.ETag) == "":
			return cas.Value{}, errNoVersion
		}
		v := cas.Value{Version: cas.Version(*out.ETag), Age: ageOf(out.ResultMetadata)}
		if len(data) > cas.MaxSize {
			return v, errTooLarge
		}
		v.Data = data
		return v, nil
	})
}

func (r *register) Create(ctx context.Context, data []byte) (cas.Version, error) {
	return r.put(ctx, "create", data, func(in *s3.PutObjectInput) { in.IfNoneMatch = aws.String("*") })
}

func (r *register) Replace(ctx context.Context, data []byte, old cas.Version) (cas.Version, error) {
	if old == "" || old == "*" {
		// No condition at all, or one that is always true: never on the wire.
		return call(ctx, r, "replace", func(context.Context) (cas.Version, error) { return "", cas.Conflict })
	}
	return r.put(ctx, "replace", data, func(in *s3.PutObjectInput) { in.IfMatch = aws.String(string(old)) })
}

func (r *register) put(ctx context.Context, op string, data []byte, condition func(*s3.PutObjectInput)) (cas.Version, error) {
	data = bytes.Clone(data) // an abandoned request may still read it
	return call(ctx, r, op, func(ctx context.Context) (cas.Version, error) {
		in := &s3.PutObjectInput{
			Bucket:        aws.String(r.bucket.name),
			Key:           aws.String(r.key),
			Body:          bytes.NewReader(data),
			ContentLength: aws.Int64(int64(len(data))),
			ContentType:   aws.String("application/json"),
			CacheControl:  aws.String("no-store"), // a cached lease is a stale one
		}
		condition(in)
		out, err := r.bucket.client.PutObject(ctx, in)
		if err != nil {
			return "", err
		}
		if aws.ToString(out.ETag) == "" {
			return "", errNoVersion
		}
		return cas.Version(*out.ETag), nil
	})
}

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
