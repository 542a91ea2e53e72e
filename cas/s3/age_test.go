package s3_test

import (
	"testing"
	"time"

	"github.com/sf2loki/sf2loki-ha/cas"
	"github.com/sf2loki/sf2loki-ha/cas/castest"
	"github.com/sf2loki/sf2loki-ha/cas/s3"
	"github.com/sf2loki/sf2loki-ha/internal/testservers"
	"github.com/sf2loki/sf2loki-ha/internal/wiretest"
)

// The times are decades away from this machine's own.
func TestTheAgeIsDateMinusLastModifiedWhateverTimeItIsHere(t *testing.T) {
	isolate(t)
	const noon, eleven = "Date: Sat, 01 Jan 2050 12:00:00 GMT", "Last-Modified: Sat, 01 Jan 2050 11:00:00 GMT"
	for name, tt := range map[string]struct {
		header []string
		want   time.Duration
	}{
		"an hour":                     {[]string{noon, eleven}, time.Hour},
		"an hour, in the past":        {[]string{"Date: Fri, 01 Jan 1999 12:00:00 GMT", "Last-Modified: Fri, 01 Jan 1999 11:00:00 GMT"}, time.Hour},
		"no Date":                     {[]string{eleven}, 0},
		"no Last-Modified":            {[]string{noon}, 0},
		"neither":                     {nil, 0},
		"written in the future":       {[]string{noon, "Last-Modified: Sat, 01 Jan 2050 12:00:01 GMT"}, 0},
		"garbage as Date":             {[]string{"Date: noon", eleven}, 0},
		"garbage as Last-Modified":    {[]string{noon, "Last-Modified: yesterday"}, 0},
		"Last-Modified without value": {[]string{noon, "Last-Modified: "}, 0},
		"two Dates":                   {[]string{noon, "Date: Sat, 01 Jan 2050 13:00:00 GMT", eleven}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			srv := wiretest.Start(t, wiretest.Respond(200, doc, append(tt.header, "ETag: "+etag)...))
			v, err := open(t, s3.Config{Bucket: "bkt", EndpointURL: srv.URL()}).Register(key).Load(t.Context())
			if err != nil || string(v.Data) != doc || v.Version != etag {
				t.Fatalf("%q %q %v: the answer is good whatever its times are", v.Data, v.Version, err)
			}
			if v.Age != tt.want {
				t.Errorf("age %v, want %v", v.Age, tt.want)
			}
		})
	}
}

func TestVersitygwSaysWhenItWrote(t *testing.T) {
	srv := testservers.StartS3(t)
	srv.Setenv(t)
	castest.Ages(t, func(t *testing.T) cas.Bucket {
		return open(t, s3.Config{Bucket: srv.Bucket, EndpointURL: srv.Endpoint})
	})
}
