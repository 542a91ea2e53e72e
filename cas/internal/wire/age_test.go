package wire

import (
	"net/http"
	"testing"
	"time"

	"github.com/sf2loki/sf2loki-ha/cas"
)

func TestTheAgeIsDateMinusLastModifiedOfOneAnswer(t *testing.T) {
	const noon, eleven = "Mon, 30 Nov 2026 12:00:00 GMT", "Mon, 30 Nov 2026 11:00:00 GMT"
	for name, tt := range map[string]struct {
		date, modified []string
		want           time.Duration
	}{
		"an hour":                       {[]string{noon}, []string{eleven}, time.Hour},
		"another decade":                {[]string{"Sat, 01 Jan 2000 00:01:00 GMT"}, []string{"Sat, 01 Jan 2000 00:00:00 GMT"}, time.Minute},
		"written in the future":         {[]string{eleven}, []string{noon}, 0},
		"no Date":                       {nil, []string{eleven}, 0},
		"no Last-Modified":              {[]string{noon}, nil, 0},
		"garbage as Date":               {[]string{"noon"}, []string{eleven}, 0},
		"garbage as Last-Modified":      {[]string{noon}, []string{"\x00yesterday"}, 0},
		"an empty Last-Modified":        {[]string{noon}, []string{""}, 0},
		"written in 1970":               {[]string{noon}, []string{"Thu, 01 Jan 1970 00:00:00 GMT"}, 0},
		"two Dates":                     {[]string{noon, eleven}, []string{eleven}, 0},
		"two Last-Modified":             {[]string{noon}, []string{eleven, eleven}, 0},
		"a zone that is not GMT":        {[]string{noon}, []string{"Mon, 30 Nov 2026 07:00:00 EST"}, 0},
		"a form with a zone of its own": {[]string{noon}, []string{"Monday, 30-Nov-26 07:00:00 EST"}, 0},
		"ISO 8601":                      {[]string{noon}, []string{"2026-11-30T11:00:00Z"}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			h := http.Header{"Date": tt.date, "Last-Modified": tt.modified}
			if got := cas.AgeOf(TakeTimes(h)); got != tt.want {
				t.Errorf("%v, want %v", got, tt.want)
			}
			if h.Get("Last-Modified") != "" {
				t.Error("a library still sees Last-Modified")
			}
		})
	}
}
