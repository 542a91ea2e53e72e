package linkfile_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/sf2loki/sf2loki-ha/cas/linkfile"
)

func TestTheAgeIsWhatPassedSinceTheVersionWasWritten(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x")
	r := linkfile.New(path, linkfile.Options{Foreign: func(data []byte) bool { return string(data) == "theirs" }})
	touch := func(path string, ago time.Duration) {
		t.Helper()
		at := time.Now().Add(-ago)
		if err := os.Chtimes(path, at, at); err != nil {
			t.Fatal(err)
		}
	}
	age := func(what, data string, least, most time.Duration) {
		t.Helper()
		got, err := r.Load(t.Context())
		if err != nil || string(got.Data) != data || got.Age < least || got.Age > most {
			t.Errorf("%s: %q, age %v, %v; want %v to %v", what, got.Data, got.Age, err, least, most)
		}
	}
	const slack = time.Minute
	v, err := r.Create(t.Context(), []byte("1"))
	if err != nil {
		t.Fatal(err)
	}
	age("just created", "1", 0, slack)
	touch(path+".1", time.Hour)
	age("an hour old, its copy is not", "1", time.Hour, time.Hour+slack)
	touch(path+".1", -time.Hour)
	age("written in the future", "1", 0, 0)
	touch(path+".1", time.Hour)
	if _, err := r.Replace(t.Context(), []byte("2"), v); err != nil {
		t.Fatal(err)
	}
	age("just replaced", "2", 0, slack)

	// Another program's record is the object, and so is its age.
	if err := os.WriteFile(path, []byte("theirs"), 0o600); err != nil {
		t.Fatal(err)
	}
	touch(path, 2*time.Hour)
	age("another program's", "theirs", 2*time.Hour, 2*time.Hour+slack)
}
