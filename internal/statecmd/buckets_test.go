package statecmd

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sf2loki/sf2loki-ha/cas"
	"github.com/sf2loki/sf2loki-ha/cas/s3"
	"github.com/sf2loki/sf2loki-ha/checkpoint"
	"github.com/sf2loki/sf2loki-ha/internal/testservers"
)

// onS3 is a pair in a bucket of a running server.
func onS3(t *testing.T, srv *testservers.S3) user {
	at := fmt.Sprintf("bucket: %s, region: %s, endpoint_url: %q", srv.Bucket, srv.Region, srv.Endpoint)
	return user{cfg: load(t, fmt.Sprintf("coordinate: {type: s3_lease, s3_lease: {%s}}\nstate: {store: s3, s3: {%s}}\n", at, at))}
}

func TestFiveThousandKeysGoToABucketAndBackByteIdentical(t *testing.T) {
	srv := testservers.StartS3(t)
	srv.Setenv(t)
	u := onS3(t, srv)
	dir := t.TempDir()
	var doc checkpoint.Document
	for i := range 5000 {
		doc.Set(fmt.Sprintf("eventlogfile:Type%d é", i), fmt.Sprintf(`{"ids": [["0AT%06d", "2026-07-01T00:47:20.000+0000"]], "last_created": "2026-07-01T00:47:20.000+0000", "note": "日本 🛰️ %d"}`, i, i))
	}
	user := doc.Encode()
	doc.Set(checkpoint.EpochKey, "12")
	source, back := filepath.Join(dir, "state.json"), filepath.Join(dir, "back.json")
	if err := os.WriteFile(source, doc.Encode(), 0o600); err != nil {
		t.Fatal(err)
	}
	object := "s3://" + srv.Bucket + "/sf2loki/state.json"
	if out := u.must(t, copied(t, "file:"+source, object, false)); !strings.Contains(out, "copied 5000 checkpoint(s)") {
		t.Errorf("%q", out)
	}
	// A pair takes it over, and gives it back.
	b, err := s3.Open(t.Context(), s3.Config{Bucket: srv.Bucket, Region: srv.Region, EndpointURL: srv.Endpoint})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	if _, err := checkpoint.Open(b.Register("sf2loki/state.json"), checkpoint.WithLease(u.cfg.LeaseIdentity(), ttl)).Seal(t.Context(), pair{1}); err != nil {
		t.Fatal(err)
	}
	u.must(t, copied(t, object, "file:"+back, false))
	got, err := os.ReadFile(back)
	if err != nil || !bytes.Equal(got, user) {
		t.Errorf("%d bytes, %v; want the %d of the user's keys", len(got), err, len(user))
	}
	if out := u.must(t, export); out != string(user)+"\n" {
		t.Error("the export differs")
	}
	if info, err := os.Stat(back); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}
}

func TestABucketThatCannotBeUsedIsNamed(t *testing.T) {
	srv := testservers.StartS3(t)
	srv.Setenv(t)
	source := filepath.Join(t.TempDir(), "state.json")
	if err := os.WriteFile(source, []byte(`{"a": "1"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		change func(*testing.T, *testservers.S3)
		class  cas.Class
		hint   string
	}{
		"missing bucket": {func(_ *testing.T, s *testservers.S3) { s.Bucket = "not-there" }, cas.NoBucket, "bucket"},
		"denied":         {func(t *testing.T, _ *testservers.S3) { t.Setenv("AWS_SECRET_ACCESS_KEY", "wrong") }, cas.Denied, "AWS_SECRET_ACCESS_KEY"},
	} {
		t.Run(name, func(t *testing.T) {
			here := *srv
			c.change(t, &here)
			u := onS3(t, &here)
			object := "s3://" + here.Bucket + "/sf2loki/state.json"
			for verb, f := range map[string]func() (string, string, error){
				"show": func() (string, string, error) { return u.do(t, Flags{}, false, show("*")) },
				"set":  func() (string, string, error) { return u.do(t, Flags{}, false, set("a", "1")) },
				"copy to": func() (string, string, error) {
					return u.do(t, Flags{}, false, copied(t, "file:"+source, object, false))
				},
				"copy from": func() (string, string, error) {
					return u.do(t, Flags{}, false, copied(t, object, "file:"+source+".new", false))
				},
			} {
				out, _, err := f()
				if cas.ClassOf(err) != c.class || !strings.Contains(err.Error(), object) || !strings.Contains(err.Error(), "; ") || out != "" {
					t.Errorf("%s: %v", verb, err)
				}
			}
		})
	}
}

func TestTheWayToAStoreCanBeGivenByFlags(t *testing.T) {
	srv := testservers.StartS3(t)
	srv.Setenv(t)
	u := alone(t)
	u.write(t, `{"a": "1"}`)
	from, to := Place{Scheme: schemeFile, Name: u.path}, Place{Scheme: schemeS3, Bucket: srv.Bucket, Name: "x.json"}
	var out, errs bytes.Buffer
	c := &Command{Config: u.cfg, Out: &out, Err: &errs}
	if err := c.Copy(t.Context(), from, to, Access{}, Access{EndpointURL: srv.Endpoint, Region: srv.Region}, false); err != nil {
		t.Fatal(err)
	}
	// And by the environment.
	t.Setenv("AWS_ENDPOINT_URL", srv.Endpoint)
	t.Setenv("AWS_REGION", srv.Region)
	u.must(t, copied(t, to.String(), "file:"+u.path+".back", false))
	if got, err := os.ReadFile(u.path + ".back"); err != nil || string(got) != `{"a": "1"}` {
		t.Errorf("%s, %v", got, err)
	}
	var bad *UsageError
	err := (&Command{Config: u.cfg, Out: &out, Err: &errs}).Copy(t.Context(), from, to, Access{Region: "r"}, Access{}, false)
	if !errors.As(err, &bad) {
		t.Errorf("a region for a file: %v", err)
	}
}

func TestCloudStorageTakesTheSameVerbs(t *testing.T) {
	srv := testservers.StartGCS(t)
	at := fmt.Sprintf("bucket: %s, endpoint_url: %q", srv.Bucket, srv.Endpoint)
	u := user{cfg: load(t, fmt.Sprintf("coordinate: {type: gcs_lease, gcs_lease: {%s}}\nstate: {store: gcs, gcs: {%s}}\n", at, at))}
	source := filepath.Join(t.TempDir(), "state.json")
	const text = `{"b": "1", "é 🛰️": "\u00e9"}`
	if err := os.WriteFile(source, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	object := "gs://" + srv.Bucket + "/sf2loki/state.json"
	u.must(t, copied(t, "file:"+source, object, false))
	u.must(t, set("c", "3"))
	u.must(t, del("c"))
	u.must(t, copied(t, object, "file:"+source+".back", false))
	back, err := os.ReadFile(source + ".back")
	if want := `{"b": "1", "\u00e9 \ud83d\udef0\ufe0f": "\u00e9"}`; err != nil || string(back) != want {
		t.Errorf("%s, %v; want %s", back, err, want)
	}
	u.cfg.State.GCS.Bucket = "not-there"
	if _, _, err := u.do(t, Flags{}, false, set("a", "1")); err == nil || !strings.Contains(err.Error(), "gs://not-there/sf2loki/state.json") {
		t.Errorf("%v", err)
	}
}
