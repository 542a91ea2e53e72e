package file_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/sf2loki/sf2loki-ha/cas"
	"github.com/sf2loki/sf2loki-ha/cas/file"
)

func TestADirectoryPassesTheProbeAlsoSeveralAtOnceAndNoFileStays(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "not", "yet", "there")
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			r := cas.Probe(t.Context(), cas.ProbeConfig{Object: "leader.lease", Open: func(context.Context) (cas.Bucket, error) {
				return file.Open(dir), nil
			}})
			if r.Verdict != cas.ProbeOK || len(r.Left) > 0 || !strings.HasPrefix(r.Area, dir) {
				t.Errorf("%s%v", r, r.CleanUp)
			}
		})
	}
	wg.Wait()
	entries, err := os.ReadDir(filepath.Join(dir, "leader.lease.probe"))
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		t.Errorf("%s was left", e.Name())
	}
}

func TestADirectoryThatCannotBeWrittenIsUnknown(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a-file")
	write(t, path, []byte("x"))
	r := cas.Probe(t.Context(), cas.ProbeConfig{Object: "leader.lease", Open: func(context.Context) (cas.Bucket, error) {
		return file.Open(path), nil
	}})
	if r.Verdict != cas.ProbeUnknown || cas.ClassOf(r.Err()) != cas.NoBucket {
		t.Errorf("%s, %v", r.Verdict, r.Err())
	}
}
