package k8slease_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/sf2loki/sf2loki-ha/internal/wiretest"
)

// managed is an entry of managedFields that names these annotations.
func managed(manager, at string, annotations ...string) map[string]any {
	named := map[string]any{}
	for _, a := range annotations {
		named["f:"+a] = map[string]any{}
	}
	e := map[string]any{
		"manager": manager, "operation": "Update", "apiVersion": "coordination.k8s.io/v1", "fieldsType": "FieldsV1",
		"fieldsV1": map[string]any{"f:metadata": map[string]any{"f:annotations": named}, "f:spec": map[string]any{"f:renewTime": map[string]any{}}},
	}
	if at != "" {
		e["time"] = at
	}
	return e
}

// The times are decades away from this machine's own.
func TestTheAgeOfARequestIsTheAPIServersWord(t *testing.T) {
	const (
		request, record = "sf2loki.io/lease-request", "sf2loki.io/lease-record"
		noon            = "Date: Sat, 01 Jan 2050 12:00:00 GMT"
		eleven, half    = "2050-01-01T11:00:00Z", "2050-01-01T11:30:00Z"
		later           = "2050-01-01T12:00:01Z"
	)
	for name, tt := range map[string]struct {
		header  string
		entries any
		want    time.Duration
	}{
		"an hour":                      {noon, []any{managed("kubectl-annotate", eleven, request)}, time.Hour},
		"an hour, in the past":         {"Date: Fri, 01 Jan 1999 12:00:00 GMT", []any{managed("k", "1999-01-01T11:00:00Z", request)}, time.Hour},
		"an hour, two zones":           {noon, []any{managed("k", "2050-01-01T13:00:00+02:00", request)}, time.Hour},
		"renewed since, by others":     {noon, []any{managed("kubectl-annotate", eleven, request), managed("sf2loki-ha", half, record)}, time.Hour},
		"two name it: the newer one":   {noon, []any{managed("a", half, record, request), managed("b", eleven, request)}, 30 * time.Minute},
		"two name it, the other order": {noon, []any{managed("b", eleven, request), managed("a", half, request)}, 30 * time.Minute},
		"nobody names it":              {noon, []any{managed("sf2loki-ha", eleven, record)}, 0},
		"a longer name":                {noon, []any{managed("k", eleven, request+"-2")}, 0},
		"no entries":                   {noon, []any{}, 0},
		"no managedFields":             {noon, nil, 0},
		"no Date":                      {"X-Other: 1", []any{managed("k", eleven, request)}, 0},
		"garbage as Date":              {"Date: noon", []any{managed("k", eleven, request)}, 0},
		"no time":                      {noon, []any{managed("k", "", request)}, 0},
		"no time in one of two":        {noon, []any{managed("k", eleven, request), managed("l", "", request)}, 0},
		"no time in one without it":    {noon, []any{managed("k", eleven, request), managed("l", "", record)}, time.Hour},
		"garbage as time":              {noon, []any{managed("k", "eleven", request)}, 0},
		"written in the future":        {noon, []any{managed("k", later, request)}, 0},
		"an entry without fields":      {noon, []any{managed("k", eleven, request), map[string]any{"manager": "m", "time": half}}, time.Hour},
		"an entry in another form":     {noon, []any{managed("k", eleven, request), map[string]any{"manager": "m", "time": half, "fieldsV1": map[string]any{"f:metadata": []any{}}}}, 0},
		"managedFields in a new form":  {noon, map[string]any{"all": eleven}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			o := put(requested(t, holdA, "10"), "metadata.managedFields", tt.entries)
			text, err := json.Marshal(o)
			if err != nil {
				t.Fatal(err)
			}
			r, _ := requests(t, wiretest.Respond(200, string(text), asJSON, tt.header))
			v, err := r.Load(t.Context())
			if err != nil || string(v.Data) != holdA || v.Version == "" {
				t.Fatalf("%q, %v: the request is good whatever its age", v.Data, err)
			}
			if v.Age != tt.want {
				t.Errorf("age %v, want %v", v.Age, tt.want)
			}
		})
	}
}
