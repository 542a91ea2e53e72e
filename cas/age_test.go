package cas_test

import (
	"testing"
	"time"

	"github.com/sf2loki/sf2loki-ha/cas"
	"github.com/sf2loki/sf2loki-ha/cas/mem"
)

func TestAnAgeIsTheDifferenceOfTwoTimesAndNeverNegative(t *testing.T) {
	at := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	for name, tt := range map[string]struct {
		date, modified time.Time
		want           time.Duration
	}{
		"an hour":                     {at.Add(time.Hour), at, time.Hour},
		"an hour, two zones":          {at.Add(time.Hour), at.In(time.FixedZone("", 7200)), time.Hour},
		"the same second":             {at, at, 0},
		"written in the future":       {at, at.Add(time.Hour), 0},
		"no date":                     {time.Time{}, at, 0},
		"no time of the write":        {at, time.Time{}, 0},
		"neither":                     {time.Time{}, time.Time{}, 0},
		"written in 1970":             {at, time.Unix(0, 0), 0},
		"it is 1970":                  {time.Unix(0, 0), at, 0},
		"both in the first year":      {time.Time{}.Add(2 * time.Hour), time.Time{}.Add(time.Hour), 0},
		"a request of four years ago": {at, at.AddDate(-4, 0, 0), at.Sub(at.AddDate(-4, 0, 0))},
		"more than a duration holds":  {at.AddDate(5000, 0, 0), at, 10 * 365 * 24 * time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			got := cas.AgeOf(tt.date, tt.modified)
			if got != tt.want {
				t.Errorf("%v, want %v", got, tt.want)
			}
			if got+100*365*24*time.Hour < 0 {
				t.Error("a century later the age overflows")
			}
		})
	}
}

// asked is a bucket that tells how it was opened.
type asked struct {
	*mem.Bucket
	aged string
}

func (a *asked) Aged(name string) cas.Register {
	a.aged = name
	return a.Bucket.Register(name)
}

func TestABucketIsAskedForTheAgeWhereItHasToBe(t *testing.T) {
	b := &asked{Bucket: mem.New().Open()}
	if r := cas.Aged(b, "k"); b.aged != "k" || r.Describe() != "mem://k" {
		t.Errorf("Aged was called with %q and gave %s", b.aged, r.Describe())
	}
	if r := cas.Aged(b.Bucket, "k"); r.Describe() != "mem://k" { // a bucket that always says it
		t.Errorf("%s", r.Describe())
	}
}
