package replica

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"time"

	"github.com/sf2loki/sf2loki-ha/cas"
	"github.com/sf2loki/sf2loki-ha/cas/file"
	"github.com/sf2loki/sf2loki-ha/cas/gcs"
	"github.com/sf2loki/sf2loki-ha/cas/linkfile"
	"github.com/sf2loki/sf2loki-ha/cas/s3"
	"github.com/sf2loki/sf2loki-ha/coordinator"
	"github.com/sf2loki/sf2loki-ha/internal/config"
)

// gcsWriteInterval is the least time between two writes of one GCS object.
const gcsWriteInterval = time.Second

// clients are the opened buckets of a replica.
type clients struct{ open []io.Closer }

// Close closes every client once.
func (c *clients) Close() error {
	var errs []error
	for _, client := range c.open {
		errs = append(errs, client.Close())
	}
	c.open = nil
	return errors.Join(errs...)
}

// lease opens the registers of the lease and of its request object, or nil with
// coordinate.type noop.
func (c *clients) lease(ctx context.Context, cfg config.Coordinate, log *slog.Logger) (lease, requests cas.Register, err error) {
	switch cfg.Type {
	case config.TypeNoop:
		return nil, nil, nil
	case config.TypeFileLease:
		path := cfg.FileLease.Path
		return linkfile.New(path, fileLease(cfg.FileLease, log)), linkfile.New(path+coordinator.RequestSuffix, linkfile.Options{Foreign: coordinator.WrittenByHand}), nil
	case config.TypeS3Lease:
		b, err := c.s3(ctx, s3Config(cfg.S3Lease))
		return both(b, cfg.S3Lease.Key, err)
	case config.TypeGCSLease:
		b, err := c.gcs(ctx, gcsConfig(cfg.GCSLease))
		return both(b, cfg.GCSLease.ObjectName, err)
	}
	return nil, nil, fmt.Errorf("open lease: coordinate.type %q has no store", cfg.Type)
}

func both(b cas.Bucket, name string, err error) (lease, requests cas.Register, _ error) {
	if err != nil {
		return nil, nil, err
	}
	// The age of a hold is the store's to tell.
	return b.Register(name), cas.Aged(b, name+coordinator.RequestSuffix), nil
}

// fileLease is what makes a register of files a lease.
func fileLease(cfg config.FileLease, log *slog.Logger) linkfile.Options {
	return linkfile.Options{
		// A renewal is due before it has passed, so it costs no read of its own.
		MaxReadAge: cfg.TTL / 2,
		Foreign:    fromUpstream,
		Changing: func(err error) {
			log.Error("another program renews this lease", "path", cfg.Path, "error", err.Error())
		},
	}
}

// fromUpstream tells whether a file is a lease that sf2loki wrote by itself.
func fromUpstream(data []byte) bool {
	r, err := coordinator.ParseRecord(data)
	return err == nil && r.Foreign() && r.Holder != ""
}

func s3Config(l config.S3Lease) s3.Config {
	return s3.Config{Bucket: l.Bucket, Region: l.Region, EndpointURL: l.EndpointURL}
}

func gcsConfig(l config.GCSLease) gcs.Config {
	return gcs.Config{Bucket: l.Bucket, ServiceFile: l.ServiceFile, EndpointURL: l.EndpointURL}
}

// OpenState opens the register of the checkpoint document, or nil with
// state.store none. The caller closes what it returns.
func OpenState(ctx context.Context, cfg config.State) (cas.Register, io.Closer, error) {
	c := &clients{}
	reg, err := c.state(ctx, cfg)
	return reg, c, err
}

func (c *clients) state(ctx context.Context, cfg config.State) (cas.Register, error) {
	switch cfg.Store {
	case config.StoreNone:
		return nil, nil
	case config.StoreFile:
		return file.New(cfg.File.Path), nil
	case config.StoreS3:
		b, err := c.s3(ctx, s3.Config{Bucket: cfg.S3.Bucket, Region: cfg.S3.Region, EndpointURL: cfg.S3.EndpointURL})
		return register(b, cfg.S3.Key, err)
	case config.StoreGCS:
		b, err := c.gcs(ctx, gcs.Config{Bucket: cfg.GCS.Bucket, ServiceFile: cfg.GCS.ServiceFile, EndpointURL: cfg.GCS.EndpointURL})
		return register(b, cfg.GCS.ObjectName, err)
	}
	return nil, fmt.Errorf("open checkpoint document: state.store %q has no store", cfg.Store)
}

func register(b cas.Bucket, name string, err error) (cas.Register, error) {
	if err != nil {
		return nil, err
	}
	return b.Register(name), nil
}

func (c *clients) s3(ctx context.Context, cfg s3.Config) (cas.Bucket, error) {
	b, err := s3.Open(ctx, cfg)
	if err != nil {
		return nil, fmt.Errorf("open S3 client: %w", err)
	}
	c.open = append(c.open, b)
	return b, nil
}

func (c *clients) gcs(ctx context.Context, cfg gcs.Config) (cas.Bucket, error) {
	b, err := gcs.Open(ctx, cfg)
	if err != nil {
		return nil, fmt.Errorf("open Cloud Storage client: %w", err)
	}
	c.open = append(c.open, b)
	return b, nil
}

// StateWriteInterval is how far apart writes of the checkpoint document must
// be for its store.
func StateWriteInterval(cfg config.State) time.Duration {
	if cfg.Store == config.StoreGCS {
		return gcsWriteInterval
	}
	return 0
}
