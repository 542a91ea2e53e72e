package config

import (
	"strings"
	"testing"
	"time"
)

func TestEnvironmentOverridesTheFile(t *testing.T) {
	c := load(t, "coordinate: {type: noop, s3_lease: {bucket: from-file, key: from/file}}\nservice: {log_level: info}\nworkload: {command: [a, b]}\n",
		"SF2LOKI_COORDINATE__TYPE=s3_lease", "SF2LOKI_COORDINATE__S3_LEASE__BUCKET=from-env", "sf2loki_State__sTore=none",
		"SF2LOKI_SERVICE__LOG_LEVEL=DEBUG", "SF2LOKI_SERVICE__SHUTDOWN_GRACE=30s", `SF2LOKI_WORKLOAD__COMMAND=["c"]`, "SF2LOKI_STATE__FILE__SHARED=on",
		"SF2LOKI_COORDINATE__S3_LEASE__TTL=PT20S")
	if c.Coordinate.Type != TypeS3Lease || c.Coordinate.S3Lease.Bucket != "from-env" || c.Coordinate.S3Lease.Key != "from/file" || c.State.Store != StoreNone ||
		c.Service.LogLevel != "debug" || c.Service.ShutdownGrace != 30*time.Second || strings.Join(c.Workload.Command, " ") != "c" || !c.State.File.Shared ||
		c.Coordinate.S3Lease.TTL != 20*time.Second {
		t.Errorf("%+v", c)
	}
}

func TestEnvironmentAloneIsEnough(t *testing.T) {
	c, err := Load("", []string{"SF2LOKI_COORDINATE__TYPE=gcs_lease", "SF2LOKI_COORDINATE__GCS_LEASE__BUCKET=b", "SF2LOKI_STATE__STORE=gcs", "SF2LOKI_STATE__GCS__BUCKET=b", "PATH=/bin", "NOEQUALS"})
	if err != nil {
		t.Fatal(err)
	}
	if c.LeaseObject() != "gs://b/sf2loki/leader.lease" || c.StateObject() != "gs://b/sf2loki/state.json" || !c.IsSet("state.store") {
		t.Errorf("%s, %s", c.LeaseObject(), c.StateObject())
	}
}

func TestSectionsInTheEnvironmentAreJSONAndMergedInDepth(t *testing.T) {
	c := load(t, "coordinate:\n  type: s3_lease\n  s3_lease: {bucket: file, key: file/key, region: file-region}\nstate:\n",
		`SF2LOKI_COORDINATE={"s3_lease": {"bucket": "json", "ttl": 20.5, "renew_interval": 6, "region": null}, "type": "s3_lease"}`,
		"SF2LOKI_COORDINATE__S3_LEASE__BUCKET=deepest",
		`SF2LOKI_STATE={"store": "none"}`)
	l := c.Coordinate.S3Lease
	if l.Bucket != "deepest" || l.Key != "file/key" || l.TTL != 20500*time.Millisecond || l.RenewInterval != 6*time.Second || l.Region != "" {
		t.Errorf("%+v", l)
	}
}

func TestEnvironmentFillsASectionLeftEmptyInTheFile(t *testing.T) {
	c := load(t, "state:\ncoordinate: {type: noop, file_lease: }\n", "SF2LOKI_STATE__STORE=none", "SF2LOKI_COORDINATE__TYPE=noop", "SF2LOKI_COORDINATE__FILE_LEASE__HOLDER_ID=me")
	if c.State.Store != StoreNone || c.Coordinate.FileLease.HolderID != "me" {
		t.Errorf("%+v", c.State)
	}
}

func TestNamesThatAreNotConfigurationAreIgnored(t *testing.T) {
	c := load(t, "", "SF2LOKI_NOPE=1", "SF2LOKI_COORDIANTE__TYPE=x", "SF2LOKI_HA_EPOCH=7", "sf2loki_ha_state__store=s3", "SF2LOKI_HA__STATE=1", "SF2LOKI_=1", "SF2LOKI___STATE=1", "SF2LOKI=1",
		"SF2LOKISTATE__STORE=s3", "XSF2LOKI_STATE__STORE=s3", "SF2LOKI_STATE__STORE_NO_VALUE")
	if c.State.Store != StoreFile {
		t.Errorf("store %q", c.State.Store)
	}
}

func TestEnvironmentMistakes(t *testing.T) {
	for env, want := range map[string]string{
		"SF2LOKI_SERVICE__SHUTDOWN_GRACE=30":             `service.shutdown_grace: "30" is a number without a unit; write 30s for seconds (SF2LOKI_SERVICE__SHUTDOWN_GRACE)`,
		"SF2LOKI_SERVICE__SHUTDOWN_GRACE=":               `service.shutdown_grace: "" is not a duration; write it as 30s, 1m30s or 500ms; the units are ms, s, m, h, d and w (SF2LOKI_SERVICE__SHUTDOWN_GRACE)`,
		"SF2LOKI_SERVICE__NOPE=1":                        "service.nope: unknown configuration key; valid here: health_addr, shutdown_grace, log_level, log_format, platform_stop_window, runtime_dir, unready_after_sink_failing, telemetry (SF2LOKI_SERVICE__NOPE)",
		"sf2loki_coordinate__S3_LEASE__BUKCET=b":         "coordinate.s3_lease.bukcet: unknown configuration key; did you mean SF2LOKI_COORDINATE__S3_LEASE__BUCKET? (sf2loki_coordinate__S3_LEASE__BUKCET)",
		"SF2LOKI_STATE__S3_LEASE__BUCKET=b":              "state.s3_lease: unknown configuration key; there is coordinate.s3_lease; valid here: store, file, s3, gcs (SF2LOKI_STATE__S3_LEASE__BUCKET)",
		"SF2LOKI_STATE__STORE__KIND=s3":                  "state.store: is a value, not a section; the variable is SF2LOKI_STATE__STORE (SF2LOKI_STATE__STORE__KIND)",
		"SF2LOKI_STATE__=s3":                             "state.(an empty key): unknown configuration key; valid here: store, file, s3, gcs (SF2LOKI_STATE__)",
		"SF2LOKI_STATE=file":                             `state: is not JSON: invalid character 'i' in literal false (expecting 'a') at byte 2; the value has to be JSON, such as {"store": ...} (SF2LOKI_STATE)`,
		"SF2LOKI_STATE=":                                 `state: is not JSON: it ends too early; the value has to be JSON, such as {"store": ...} (SF2LOKI_STATE)`,
		`SF2LOKI_STATE={"store": "s3"`:                   `state: is not JSON: it ends too early; the value has to be JSON, such as {"store": ...} (SF2LOKI_STATE)`,
		`SF2LOKI_STATE={} {}`:                            `state: is not JSON: more text follows the value; the value has to be JSON, such as {"store": ...} (SF2LOKI_STATE)`,
		`SF2LOKI_STATE={"store": "s3", "store": "file"}`: `state: has the key "store" twice; remove one; the value has to be JSON, such as {"store": ...} (SF2LOKI_STATE)`,
		`SF2LOKI_STATE=[]`:                               "state: must be a section with keys such as store, but is a list (SF2LOKI_STATE)",
		`SF2LOKI_STATE=null`:                             "state: is an empty section (null); remove the line or put keys below it, indented (SF2LOKI_STATE)",
		`SF2LOKI_STATE={"stroe": 1}`:                     "state.stroe: unknown configuration key; did you mean state.store? (SF2LOKI_STATE)",
		`SF2LOKI_STATE={"store": 1}`:                     `state.store: must be text, but is the number "1"; put it in quotes (SF2LOKI_STATE)`,
		`SF2LOKI_SERVICE={"shutdown_grace": "1e3"}`:      `service.shutdown_grace: "1e3" is not a duration; write it as 30s, 1m30s or 500ms; the units are ms, s, m, h, d and w (SF2LOKI_SERVICE)`,
		"SF2LOKI_WORKLOAD__COMMAND=run it":               `workload.command: is not JSON: invalid character 'r' looking for beginning of value at byte 1; the value has to be JSON, such as ["first", "second"] (SF2LOKI_WORKLOAD__COMMAND)`,
		"SF2LOKI_WORKLOAD__COMMAND__0=run":               "workload.command: is a value, not a section; the variable is SF2LOKI_WORKLOAD__COMMAND (SF2LOKI_WORKLOAD__COMMAND__0)",
		"SF2LOKI_STATE__FILE__SHARED=maybe":              `state.file.shared: must be true or false, but is the text "maybe" (SF2LOKI_STATE__FILE__SHARED)`,
		"SF2LOKI_STATE=" + strings.Repeat("[", 100):      `state: is nested deeper than 32 levels; the value has to be JSON, such as {"store": ...} (SF2LOKI_STATE)`,
	} {
		c, err := Load("", []string{env, "SF2LOKI_COORDINATE__TYPE=noop"})
		exactly(t, shorten(t, "no file", c, err), want)
	}
}

func TestNamesThatDifferOnlyInCaseMustAgree(t *testing.T) {
	c, err := Load("", []string{"sf2loki_state__store=none", "SF2LOKI_STATE__STORE=file"})
	exactly(t, shorten(t, "no file", c, err), "state.store: is also given by SF2LOKI_STATE__STORE; names differ only in case, keep one (sf2loki_state__store)")
	if _, err := Load("", []string{"sf2loki_state__store=none", "SF2LOKI_STATE__STORE=none"}); err != nil {
		t.Errorf("equal values: %v", err)
	}
	// One name given twice is what a shell makes of an override: the last wins.
	c, err = Load("", []string{"SF2LOKI_STATE__STORE=bad", "SF2LOKI_STATE__STORE=none"})
	if err != nil || c.State.Store != StoreNone {
		t.Errorf("%v", err)
	}
}

func TestInterpolation(t *testing.T) {
	env := []string{"B=my-bucket", "EMPTY=", "H=minio.example", "P=9000", "NEST=${B}", "T=20s", "N=20", "B=last-wins", "lower=x"}
	c := load(t, `
coordinate:
  type: s3_lease
  s3_lease:
    bucket: "${B}"
    endpoint_url: https://${H}:${P}
    holder_id: "${EMPTY}a${NEST}b$B${lower}${H:-z}${1}$${}"
    ttl: ${T}
state: {store: none}
workload: {command: [echo, "${H}"]}
`, env...)
	l := c.Coordinate.S3Lease
	if l.Bucket != "last-wins" || l.EndpointURL != "https://minio.example:9000" || l.HolderID != "a${B}b$Bx${H:-z}${1}$${}" || l.TTL != 20*time.Second || c.Workload.Command[1] != "minio.example" {
		t.Errorf("%+v %q", l, c.Workload.Command)
	}
	// A number stays a text: 20 of what?
	one(t, problems(t, "service: {shutdown_grace: \"${N}\"}", env...), `service.shutdown_grace: "20" is a number without a unit; write 20s`)
	// Keys keep their name.
	one(t, problems(t, "state: {\"${B}\": x}", env...), "state.${B}: unknown configuration key")
	// Unset is fatal, even where the environment replaces the value; the value
	// of a variable is not searched for references.
	one(t, problems(t, "state: {store: \"${MISSING}\"}", "SF2LOKI_STATE__STORE=none"), "state.store: the environment variable of ${MISSING} is not set", "(FILE:1:16)")
	if got := load(t, "coordinate: {type: noop}", "SF2LOKI_COORDINATE__FILE_LEASE__HOLDER_ID=${B}", "B=x").Coordinate.FileLease.HolderID; got != "${B}" {
		t.Errorf("environment value was interpolated: %q", got)
	}
	exactly(t, problems(t, "workload: {command: [a, \"${ONE}${TWO}\"]}"),
		"workload.command: the environment variable of ${ONE} is not set; set it, or write the value here (FILE:1:25)",
		"workload.command: the environment variable of ${TWO} is not set; set it, or write the value here (FILE:1:25)")
}

// What the supervisor hands to its command is never configuration of another
// supervisor inside it, whatever sections there will be.
func TestOwnVariablesAreNotOverrides(t *testing.T) {
	l := &loader{env: []string{"SF2LOKI_HA_EPOCH=7", "sf2loki_ha_epoch=8", "Sf2loki_HA_SOCKET__PATH=/x", "SF2LOKI_FOO=1", "sf2loki_foo=2"}}
	for _, o := range l.overrides() {
		if o.path[0] != "foo" {
			t.Errorf("%s is taken for configuration", o.name)
		}
	}
	if len(l.problems) > 0 {
		t.Errorf("names that are not ours were judged: %v", l.problems)
	}
}
