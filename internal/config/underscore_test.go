package config

import (
	"strings"
	"testing"
)

func TestVariablesWithTooFewUnderscoresAreRefused(t *testing.T) {
	const fix = "sections are separated by two underscores; rename the variable to "
	for env, want := range map[string]string{
		"SF2LOKI_COORDINATE_TYPE=noop":                "coordinate.type: " + fix + "SF2LOKI_COORDINATE__TYPE (SF2LOKI_COORDINATE_TYPE)",
		"sf2loki_coordinate_type=noop":                "coordinate.type: " + fix + "SF2LOKI_COORDINATE__TYPE (sf2loki_coordinate_type)",
		"SF2LOKI_STATE_STORE=none":                    "state.store: " + fix + "SF2LOKI_STATE__STORE (SF2LOKI_STATE_STORE)",
		"SF2LOKI_STATE____STORE=none":                 "state.store: " + fix + "SF2LOKI_STATE__STORE (SF2LOKI_STATE____STORE)",
		"SF2LOKI_SERVICE_HEALTH_ADDR=:1":              "service.health_addr: " + fix + "SF2LOKI_SERVICE__HEALTH_ADDR (SF2LOKI_SERVICE_HEALTH_ADDR)",
		`SF2LOKI_WORKLOAD_COMMAND=["x"]`:              "workload.command: " + fix + "SF2LOKI_WORKLOAD__COMMAND (SF2LOKI_WORKLOAD_COMMAND)",
		"SF2LOKI_COORDINATE_S3_LEASE_BUCKET=b":        "coordinate.s3_lease.bucket: " + fix + "SF2LOKI_COORDINATE__S3_LEASE__BUCKET (SF2LOKI_COORDINATE_S3_LEASE_BUCKET)",
		"SF2LOKI_COORDINATE_S3_LEASE__BUCKET=b":       "coordinate.s3_lease.bucket: " + fix + "SF2LOKI_COORDINATE__S3_LEASE__BUCKET (SF2LOKI_COORDINATE_S3_LEASE__BUCKET)",
		"SF2LOKI_COORDINATE__S3_LEASE_BUCKET=b":       "coordinate.s3_lease.bucket: " + fix + "SF2LOKI_COORDINATE__S3_LEASE__BUCKET (SF2LOKI_COORDINATE__S3_LEASE_BUCKET)",
		`SF2LOKI_COORDINATE_S3_LEASE={"bucket": "b"}`: "coordinate.s3_lease: " + fix + "SF2LOKI_COORDINATE__S3_LEASE (SF2LOKI_COORDINATE_S3_LEASE)",
	} {
		exactly(t, problems(t, "coordinate: {type: noop}", env), want)
	}
}

func TestAVariableWithTooFewUnderscoresIsJudgedAsItWasMeant(t *testing.T) {
	c, err := Load("", []string{"SF2LOKI_COORDINATE_TYPE=s3_lease", "SF2LOKI_COORDINATE__S3_LEASE__KEY=k"})
	got := strings.Join(shorten(t, "no file", c, err), "\n")
	for _, want := range []string{"rename the variable to SF2LOKI_COORDINATE__TYPE", "coordinate.s3_lease.bucket: is empty", "state.store: is not set"} {
		if !strings.Contains(got, want) {
			t.Errorf("lacks %q:\n%s", want, got)
		}
	}
	if strings.Contains(got, "without a type") {
		t.Errorf("the type was given:\n%s", got)
	}
}

// Kubernetes puts such variables into every container for Services that happen
// to be named sf2loki, sf2loki-state and so on; a supervisor's own variables are
// in the environment of its command.
func TestVariablesOfOthersWithOneUnderscoreAreIgnored(t *testing.T) {
	load(t, "", "SF2LOKI_SERVICE_HOST=10.0.0.1", "SF2LOKI_SERVICE_PORT=80", "SF2LOKI_SERVICE_PORT_HTTP=80", "SF2LOKI_PORT=tcp://10.0.0.1:80", "SF2LOKI_PORT_80_TCP_ADDR=10.0.0.1",
		"SF2LOKI_STATE_SERVICE_HOST=10.0.0.1", "SF2LOKI_STATE_PORT=tcp://10.0.0.1:80", "SF2LOKI_COORDINATE_PORT_80_TCP=x", "SF2LOKI_WORKLOAD_SERVICE_PORT=1",
		"SF2LOKI_HA_STATE_STORE=s3", "SF2LOKI_HA_EPOCH=7", "SF2LOKI_SINK_LOKI_URL=x", "SF2LOKI_STATE_NOPE=x", "SF2LOKI_COORDINATE_=x")
}

// The words of a variable mean one key, however many underscores are between.
func TestNoTwoKeysHaveTheSameWords(t *testing.T) {
	seen := map[string]string{}
	schema.each(func(n *schemaNode) {
		words := strings.ReplaceAll(n.path, ".", "_")
		if before, ok := seen[words]; ok {
			t.Errorf("%s and %s", before, n.path)
		}
		seen[words] = n.path
	})
}
