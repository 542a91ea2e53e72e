package config

import (
	"fmt"
	"strings"
	"testing"
)

func TestUnknownKeysNameTheNearestValidOne(t *testing.T) {
	for text, want := range map[string]string{
		"coordiante: {type: s3_lease}": "coordiante: unknown configuration key; did you mean coordinate? (FILE:1:1)",
		"sinks: {}":                    "sinks: unknown configuration key; did you mean sink? (FILE:1:1)",
		"bananas: {}":                  "bananas: unknown configuration key; valid here: coordinate, state, service, workload, salesforce, orgs, sources, sink (FILE:1:1)",
		"coordinate: {type: noop, s3_lease: {bukcet: b}}":         "coordinate.s3_lease.bukcet: unknown configuration key; did you mean coordinate.s3_lease.bucket? (FILE:1:37)",
		"coordinate: {type: noop, s3_lease: {renewInterval: 5s}}": "coordinate.s3_lease.renewInterval: unknown configuration key; did you mean coordinate.s3_lease.renew_interval? (FILE:1:37)",
		"coordinate: {type: noop, s3_lease: {renew: 5s}}":         "coordinate.s3_lease.renew: unknown configuration key; did you mean coordinate.s3_lease.renew_interval? (FILE:1:37)",
		"coordinate: {type: noop, s3_lease: {endpoint: x}}":       "coordinate.s3_lease.endpoint: unknown configuration key; did you mean coordinate.s3_lease.endpoint_url? (FILE:1:37)",
		"coordinate: {type: noop, s3_lease: {tll: 5s}}":           "coordinate.s3_lease.tll: unknown configuration key; did you mean coordinate.s3_lease.ttl? (FILE:1:37)",
		"coordinate: {s3-lease: {}}":                              "coordinate.s3-lease: unknown configuration key; did you mean coordinate.s3_lease? (FILE:1:14)",
		"coordinate: {type: noop, s3_lease: {object_name: x}}":    "coordinate.s3_lease.object_name: unknown configuration key; there is coordinate.gcs_lease.object_name; valid here: bucket, key, region, endpoint_url, ttl, renew_interval, poll_interval, holder_id (FILE:1:37)",
		"state: {path: /x}":                                       "state.path: unknown configuration key; there is state.file.path; valid here: store, file, s3, gcs (FILE:1:9)",
		"s3_lease: {}":                                            "s3_lease: unknown configuration key; there is coordinate.s3_lease; valid here: coordinate, state, service, workload, salesforce, orgs, sources, sink (FILE:1:1)",
		"command: [x]":                                            "command: unknown configuration key; there is workload.command; valid here: coordinate, state, service, workload, salesforce, orgs, sources, sink (FILE:1:1)",
		"state.store: s3":                                         "state.store: unknown configuration key; write it as nested sections, one name a line (FILE:1:1)",
		"coordinate: {s3_lease.bucket: x}":                        "coordinate.s3_lease.bucket: unknown configuration key; write it as nested sections, one name a line (FILE:1:14)",
		"state: {1: x}":                                           "state.1: unknown configuration key; valid here: store, file, s3, gcs (FILE:1:9)",
		"state: {~: x}":                                           "state.~: unknown configuration key; valid here: store, file, s3, gcs (FILE:1:9)",
		"state: {\"\": x}":                                        "state.(an empty key): unknown configuration key; valid here: store, file, s3, gcs (FILE:1:9)",
	} {
		exactly(t, problems(t, text), want)
	}
}

// A misspelt key is one mistake: that its proper form is missing follows.
func TestAMisspeltKeyIsNotAlsoReportedAsMissing(t *testing.T) {
	one(t, problems(t, "coordinate: {type: s3_lease, s3_lease: {buckett: b}}\nstate: {store: none}"), "did you mean coordinate.s3_lease.bucket?")
	one(t, problems(t, "coordinate: {type: s3_lease, s3_lease: {bucket: 7}}\nstate: {store: none}"), "must be text")
	one(t, problems(t, "coordinate: {tpye: s3_lease, s3_lease: {bucket: b}}"), "did you mean coordinate.type?")
	// Beside the proper key it hides nothing.
	if got := problems(t, "coordinate: {type: s3_lease, s3_lease: {bucket: b_b/c, bukcet: x}}\nstate: {store: none}"); len(got) != 2 || !strings.Contains(got[0], "has a slash") {
		t.Errorf("%q", got)
	}
}

func TestEveryKeyIsSuggestedForATypingError(t *testing.T) {
	schema.each(func(n *schemaNode) {
		runes := []rune(n.name)
		if len(runes) < 3 {
			return
		}
		for at := range runes[:len(runes)-1] {
			swapped := append([]rune(nil), runes...)
			swapped[at], swapped[at+1] = swapped[at+1], swapped[at]
			if string(swapped) == n.name {
				continue
			}
			if section := schemaParent(n); section.child(string(swapped)) == nil {
				if _, meant := unknownKey(section, string(swapped)); meant != n.path {
					t.Errorf("%s in %q: meant %q, want %q", string(swapped), section.path, meant, n.path)
				}
			}
		}
	})
}

func schemaParent(n *schemaNode) *schemaNode {
	if p := parent(n.path); p != "" {
		return schema.find(p)
	}
	return schema
}

func TestKeyNamesThatAreNotNamesAreNotRepeated(t *testing.T) {
	long := strings.Repeat("k", 100)
	one(t, problems(t, "state: {"+long+": 1}"), "state.(a key of 100 bytes): unknown")
	one(t, problems(t, "state: {\"a\\nb\": 1}"), "state.(a key of 3 bytes): unknown")
	one(t, problems(t, "state: {\"https://u:sekrit@h\": 1}"), "state....@h: unknown")
	if got := fmt.Sprint(problems(t, "state: {\"https://u:sekrit@h\": 1}")); strings.Contains(got, "sekrit") {
		t.Error(got)
	}
}
