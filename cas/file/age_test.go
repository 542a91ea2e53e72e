package file_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/sf2loki/sf2loki-ha/cas/file"
)

func TestTheAgeIsWhatPassedSinceTheFileWasWritten(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x")
	r := file.New(path)
	v, err := r.Create(t.Context(), []byte("1"))
	if err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct {
		written     time.Duration // from now
		least, most time.Duration
	}{
		"an hour ago":                          {-time.Hour, time.Hour, time.Hour + time.Minute},
		"in the future: a clock was put back":  {time.Hour, 0, 0},
		"in 1970: the file system has no time": {-time.Duration(time.Now().UnixNano()), 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			at := time.Now().Add(tt.written)
			if err := os.Chtimes(path, at, at); err != nil {
				t.Fatal(err)
			}
			got, err := r.Load(t.Context())
			if err != nil || got.Age < tt.least || got.Age > tt.most {
				t.Errorf("age %v, %v; want %v to %v", got.Age, err, tt.least, tt.most)
			}
			v = got.Version
		})
	}
	if _, err := r.Replace(t.Context(), []byte("2"), v); err != nil {
		t.Fatal(err)
	}
	if got, err := r.Load(t.Context()); err != nil || got.Age > time.Minute {
		t.Errorf("age %v after a write, %v", got.Age, err)
	}
}
