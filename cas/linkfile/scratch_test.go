package linkfile_test

import (
	"context"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/sf2loki/sf2loki-ha/cas"
	"github.com/sf2loki/sf2loki-ha/cas/linkfile"
)

func TestTheProbePassesAndLeavesNothing(t *testing.T) {
	dir := t.TempDir()
	report := cas.Probe(t.Context(), cas.ProbeConfig{
		Object: "leader.lease",
		Open: func(context.Context) (cas.Bucket, error) {
			return linkfile.Open(dir, linkfile.Options{MaxReadAge: time.Minute}), nil
		},
	})
	if report.Verdict != cas.ProbeOK {
		t.Errorf("%+v", report)
	}
	if got := fmt.Sprint(files(t, dir), files(t, filepath.Join(dir, "leader.lease.probe"))); got != "[leader.lease.probe] []" {
		t.Errorf("files: %v", got)
	}
}

func TestWhatIsRemovedFromTheScratchAreaIsAbsentAndCanBeMadeAgain(t *testing.T) {
	b := linkfile.Open(t.TempDir(), linkfile.Options{})
	area := b.Scratch("leader.lease")
	for range 2 {
		r := area.Register("a")
		v, err := r.Create(t.Context(), []byte("1"))
		for n := 2; err == nil && n < 80; n++ {
			v, err = r.Replace(t.Context(), fmt.Append(nil, n), v)
		}
		if err == nil {
			err = area.Remove(t.Context(), "a")
		}
		if err == nil {
			err = area.Remove(t.Context(), "a") // what is gone is removed already
		}
		if err != nil {
			t.Fatal(err)
		}
		_, err = r.Load(t.Context())
		class(t, "load", err, cas.NotFound)
	}
	for _, name := range []string{"", "..", "../leader.lease", "a.1"} {
		class(t, "remove "+name, area.Remove(t.Context(), name), cas.Denied)
	}
}
