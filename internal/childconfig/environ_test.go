package childconfig

import (
	"reflect"
	"slices"
	"strings"
	"testing"
)

func TestEnviron(t *testing.T) {
	for in, want := range map[string]string{
		"PATH=/bin":                                        "PATH=/bin",
		"odd":                                              "odd",
		"SF2LOKI_COORDINATE={}":                            "",
		"SF2LOKI_COORDINATE__TYPE=s3_lease":                "",
		"sf2loki_coordinate__S3_lease__bucket=b":           "",
		"SF2LOKI_COORDINATE_TYPE=x":                        "",
		"SF2LOKI_WORKLOAD__COMMAND=[]":                     "",
		"SF2LOKI_WORKLOAD={}":                              "",
		"SF2LOKI_SERVICE__HEALTH_ADDR=:1":                  "",
		"Sf2loki_Service__Shutdown_Grace=1s":               "",
		"SF2LOKI_SERVICE__RUNTIME_DIR=/r":                  "",
		"SF2LOKI_SERVICE__PLATFORM_STOP_WINDOW=1s":         "",
		"SF2LOKI_STATE__FILE__SHARED=true":                 "",
		"SF2LOKI_STATE__GCS__ENDPOINT_URL=http://e":        "",
		`SF2LOKI_STATE__FILE={"path":"/p","shared":true}`:  `SF2LOKI_STATE__FILE={"path":"/p"}`,
		`SF2LOKI_STATE={"file":{"shared":1},"store":"s3"}`: `SF2LOKI_STATE={"file":{},"store":"s3"}`,
		`sf2loki_service={"log_level":"info","runtime_dir":"/r","health_addr":":1","telemetry":{"n":12345678901234567890}}`: `sf2loki_service={"log_level":"info","telemetry":{"n":12345678901234567890}}`,
		`SF2LOKI_SERVICE={ "log_level": "info" }`: `SF2LOKI_SERVICE={ "log_level": "info" }`,
		"SF2LOKI_SERVICE=no JSON":                 "SF2LOKI_SERVICE=no JSON",
		"SF2LOKI_SERVICE_HOST=10.0.0.1":           "SF2LOKI_SERVICE_HOST=10.0.0.1",
		"SF2LOKI_HA_EPOCH=7":                      "SF2LOKI_HA_EPOCH=7",
		"SF2LOKI_SINK__LOKI__URL=http://l":        "SF2LOKI_SINK__LOKI__URL=http://l",
		`SF2LOKI_ORGS=[{"name":"a"}]`:             `SF2LOKI_ORGS=[{"name":"a"}]`,
		"SF2LOKI_COORD=1":                         "SF2LOKI_COORD=1",
	} {
		var list []string
		if want != "" {
			list = []string{want}
		}
		if got := Environ([]string{in}); !slices.Equal(got, list) {
			t.Errorf("%s: %q, want %q", in, got, list)
		}
	}
}

// Every key of sf2loki that is not ours to set reads as before: by file, in each
// form of mapping, and by variable.
func TestTheirKeysAreUnchanged(t *testing.T) {
	keys := append([]string{
		"salesforce.client_id", "salesforce.limits.enabled", "orgs", "sources.pubsub.topics", "sources.transform_salt",
		"sink.loki.url", "sink.loki.labels.coordinate", "sink.workload", "service.telemetry.headers.health_addr",
	}, upstream...)
	values := []string{"yes", "'no'", "0123", "http://h:1/p", "\"${VAR}\"", "${VAR}", "[a, 'b']", "{x: 1, health_addr: y}", "~", "0o17", "\"a\\nb\"", "''", "\"\\u00e9\""}
	for _, key := range keys {
		for _, value := range values {
			names := strings.Split(key, ".")
			flow, block := value, value
			for i, name := range slices.Backward(names) {
				flow = "{" + name + ": " + flow + "}"
				block = strings.Repeat("  ", i) + name + ":" + map[bool]string{true: " ", false: "\n"}[i == len(names)-1] + block
			}
			docs := []string{block + "\n", flow}
			if value == "${VAR}" {
				docs = docs[:1] // no YAML in a flow mapping
			}
			for _, doc := range docs {
				before, after := tree(t, doc), tree(t, document(t, doc))
				for _, name := range names[:len(names)-1] {
					before, after = before[name].(map[string]any), after[name].(map[string]any)
				}
				last := names[len(names)-1]
				if dropped[key] {
					continue
				}
				if _, ok := after[last]; !ok || !reflect.DeepEqual(after[last], before[last]) {
					t.Errorf("%s: %v became %v", doc, before[last], after[last])
				}
			}
			kv := "SF2LOKI_" + strings.ToUpper(strings.ReplaceAll(key, ".", "__")) + "=" + value
			if got := Environ([]string{kv}); !dropped[key] && !slices.Equal(got, []string{kv}) {
				t.Errorf("%s became %q", kv, got)
			}
		}
	}
}
