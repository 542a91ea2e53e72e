package main

import (
	"context"
	"fmt"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/sf2loki/sf2loki-ha/cas"
	"github.com/sf2loki/sf2loki-ha/cas/gcs"
	"github.com/sf2loki/sf2loki-ha/cas/s3"
	"github.com/sf2loki/sf2loki-ha/internal/failoverbench"
	"github.com/sf2loki/sf2loki-ha/internal/testservers"
)

// servers are the third-party servers of a run, started as tests start them.
type servers struct {
	testing.TB // for its hidden method only: whatever is not below does not exist
	cleanups   []func()
}

// failure is what a test would have ended with.
type failure struct{ text string }

func (*servers) Helper()                        {}
func (*servers) Fatalf(format string, a ...any) { panic(failure{fmt.Sprintf(format, a...)}) }
func (s *servers) Cleanup(f func())             { s.cleanups = append(s.cleanups, f) }
func (s *servers) stop() {
	for _, f := range slices.Backward(s.cleanups) {
		f()
	}
}

func (s *servers) TempDir() string {
	dir, err := os.MkdirTemp("", "bench-failover-")
	if err != nil {
		s.Fatalf("%v", err)
	}
	s.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

// place opens a store, and says how far apart it wants the writes of one object.
func (s *servers) place(ctx context.Context, store string) (_ failoverbench.Place, spacing time.Duration, err error) {
	defer func() {
		switch f := recover().(type) {
		case nil:
		case failure:
			err = fmt.Errorf("start %s: %s", store, f.text)
		default:
			panic(f)
		}
	}()
	switch store {
	case "versitygw":
		server := testservers.StartS3(s)
		for k, v := range server.Environ() {
			if err := os.Setenv(k, v); err != nil {
				return nil, 0, err
			}
		}
		p, err := failoverbench.NewHTTP(store, server.Endpoint, func(endpoint string) (cas.Bucket, error) {
			return s3.Open(ctx, s3.Config{Bucket: server.Bucket, Region: server.Region, EndpointURL: endpoint})
		})
		return p, 0, err
	case "fake-gcs-server":
		server := testservers.StartGCS(s)
		p, err := failoverbench.NewHTTP(store, server.Endpoint, func(endpoint string) (cas.Bucket, error) {
			return gcs.Open(ctx, gcs.Config{Bucket: server.Bucket, EndpointURL: endpoint})
		})
		return p, time.Second, err
	case "memory":
		return failoverbench.NewMemory(), 0, nil
	}
	return nil, 0, fmt.Errorf("-stores: %q is not one of memory, versitygw, fake-gcs-server", store)
}
