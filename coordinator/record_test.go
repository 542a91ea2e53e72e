package coordinator

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"time"
)

func TestParsingOddRecords(t *testing.T) {
	for name, c := range map[string]struct {
		data    string
		corrupt string // fragment of the error, or ""
		epoch   int64
	}{
		"upstream's three fields":   {`{"holder":"a","expires_at":"2026-01-01T12:00:30+00:00","epoch":3}`, "", 3},
		"a time without a zone":     {`{"holder":"a","expires_at":"2026-01-01T12:00:30","epoch":3}`, "", 3},
		"expires_at is a number":    {`{"holder":"a","expires_at":17,"epoch":3}`, "", 3},
		"expires_at is not a date":  {`{"holder":"a","expires_at":"soon","epoch":3}`, "", 3},
		"no epoch":                  {`{"holder":"a"}`, "", 0},
		"the largest epoch":         {`{"holder":"a","epoch":9007199254740991}`, "", MaxEpoch},
		"the history is damaged":    {`{"holder":"a","epoch":1,"history":"x"}`, "", 1},
		"an epoch too large":        {`{"holder":"a","epoch":9007199254740992}`, "epoch", 0},
		"an epoch beyond 64 bits":   {`{"holder":"a","epoch":99999999999999999999}`, "epoch", 0},
		"a negative epoch":          {`{"holder":"a","epoch":-1}`, "epoch", 0},
		"an epoch that is a text":   {`{"holder":"a","epoch":"x"}`, "epoch", 0},
		"an epoch with a fraction":  {`{"holder":"a","epoch":1.5}`, "epoch", 0},
		"a holder that is a number": {`{"holder":5,"epoch":1}`, "holder", 0},
		"a list":                    {`[1, 2]`, "JSON object", 0},
		"null":                      {`null`, "JSON object", 0},
		"half a document":           {`{"holder":"a"`, "JSON object", 0},
		"nothing":                   {``, "JSON object", 0},
		"not UTF-8":                 {"{\"holder\":\"\xff\"}", "UTF-8", 0},
		"two documents":             {`{"epoch":1}{"epoch":2}`, "JSON object", 0},
		"larger than any record":    {`{"holder":"` + strings.Repeat("x", maxRecord) + `"}`, "bytes", 0},
	} {
		t.Run(name, func(t *testing.T) {
			r, err := ParseRecord([]byte(c.data))
			if (err == nil) != (c.corrupt == "") || err != nil && !strings.Contains(err.Error(), c.corrupt) {
				t.Fatalf("error %v, want one about %q", err, c.corrupt)
			}
			if r.Epoch != c.epoch {
				t.Errorf("epoch %d, want %d", r.Epoch, c.epoch)
			}
		})
	}
}

func TestARecordSurvivesARoundTripWithWhatItDoesNotKnow(t *testing.T) {
	at := time.Date(2026, 11, 30, 12, 0, 0, 123456000, time.UTC)
	want := Record{
		Holder: "a", ExpiresAt: at, Epoch: 7, Version: 1, MinVersion: 1, Lease: "s3://b/k", Incarnation: "i", Term: "t", WriteID: "w",
		TTL: 1500 * time.Millisecond, Renew: 500 * time.Millisecond, State: Held, Stopping: true, AcquiredAt: at, RenewedAt: at,
		Platform: map[string]string{"zone": "z"}, Revision: "r",
		History: []PastTerm{{Epoch: 6, Holder: "b", From: at, To: at, Reason: "stale"}},
		extra:   map[string]json.RawMessage{"of_tomorrow": json.RawMessage(`{"x":[1,2]}`), "a\"b": json.RawMessage(`null`)},
	}
	data, err := want.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	got, err := ParseRecord(data)
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
	if !strings.HasPrefix(string(data), `{"holder":"a","expires_at":"2026-11-30T12:00:00.123456Z","epoch":7,`) {
		t.Errorf("upstream's fields do not come first: %s", data)
	}
}

func TestATTLInARecordIsCapped(t *testing.T) {
	for text, want := range map[string]time.Duration{
		`{"ttl_ms":15000}`:               15 * time.Second,
		`{"ttl_ms":99999999999}`:         MaxTTL,
		`{"ttl_ms":9223372036854775807}`: MaxTTL,
		`{"ttl_ms":-5}`:                  0,
		`{}`:                             0,
	} {
		r, err := ParseRecord([]byte(text))
		if err != nil || r.TTL != want {
			t.Errorf("%s: %v, %v; want %v", text, r.TTL, err, want)
		}
	}
}

func FuzzParseRecord(f *testing.F) {
	for _, seed := range []string{`{"holder":"a","epoch":3}`, `{"epoch":"x"}`, `[]`, "\xff\xfe", `{"history":[{}]}`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		r, err := ParseRecord(data)
		if err != nil {
			return
		}
		again, err := r.Marshal()
		if err != nil {
			t.Fatalf("%q was read and cannot be written: %v", data, err)
		}
		if _, err := ParseRecord(again); err != nil {
			t.Fatalf("%q was written as %q and cannot be read: %v", data, again, err)
		}
	})
}
