package config

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestLoadWithoutFileAndEnvironmentGivesDefaults(t *testing.T) {
	c, err := Load("", nil)
	if err != nil {
		t.Fatal(err)
	}
	got := fmt.Sprintf("%+v %+v %+v %+v", c.Coordinate, c.State, c.Service, c.Workload)
	want := "{Type:noop FileLease:{Path:/var/lib/sf2loki/leader.lease TTL:30s RenewInterval:10s PollInterval:1s HolderID:} " +
		"S3Lease:{Bucket: Key:sf2loki/leader.lease Region: EndpointURL: TTL:15s RenewInterval:5s PollInterval:1s HolderID:} " +
		"GCSLease:{Bucket: ObjectName:sf2loki/leader.lease ServiceFile: EndpointURL: TTL:15s RenewInterval:5s PollInterval:1s HolderID:} " +
		"K8sLease:{Namespace:default Name:sf2loki-leader Identity: LeaseDuration:30s RenewInterval:10s Kubeconfig:} UnsafeSkipStoreProbe:false} " +
		"{Store:file File:{Path:/var/lib/sf2loki/state.json Shared:false} S3:{Bucket: Key:sf2loki/state.json Region: EndpointURL:} " +
		"GCS:{Bucket: ObjectName:sf2loki/state.json ServiceFile: EndpointURL:}} " +
		"{HealthAddr::8080 ShutdownGrace:25s LogLevel:info LogFormat:json PlatformStopWindow:0s RuntimeDir: UnreadyAfterSinkFailing:15m0s Telemetry:{Given:false}} " +
		"{Command:[] StopGrace:0s CheckpointAPI:false UnfencedState:refuse}"
	if got != want {
		t.Errorf("defaults:\n got %s\nwant %s", got, want)
	}
}

func TestLoadReadsEveryKey(t *testing.T) {
	c := load(t, `
coordinate:
  type: s3_lease
  file_lease: {path: /m/l, ttl: 40s, renew_interval: 11s, poll_interval: 2s, holder_id: f}
  s3_lease: {bucket: lease-bucket, key: a/l, region: eu-west-1, endpoint_url: "https://minio:9000", ttl: 20s, renew_interval: 6s, poll_interval: 500ms, holder_id: s}
  gcs_lease: {bucket: g, object_name: a/g, service_file: /s, endpoint_url: "http://e", ttl: 21s, renew_interval: 7s, poll_interval: 3s, holder_id: h}
  k8s_lease: {namespace: n, name: m, identity: i, lease_duration: 22s, renew_interval: 8s, kubeconfig: /k}
  unsafe_skip_store_probe: true
state:
  store: gcs
  file: {path: /m/s, shared: yes}
  s3: {bucket: b, key: k, region: r, endpoint_url: "http://x"}
  gcs: {bucket: state-bucket, object_name: o, service_file: /sf, endpoint_url: "http://y"}
service:
  health_addr: 127.0.0.1:0
  shutdown_grace: 10s
  log_level: DEBUG
  log_format: logfmt
  platform_stop_window: 30s
  runtime_dir: /run/x
  unready_after_sink_failing: 0s
  telemetry: {enabled: true, anything: [goes]}
workload:
  command: [sf2loki, --config, /x]
  stop_grace: 2s
  checkpoint_api: true
  unfenced_state: accept
`)
	got := fmt.Sprintf("%+v %+v %+v %+v", c.Coordinate, c.State, c.Service, c.Workload)
	want := "{Type:s3_lease FileLease:{Path:/m/l TTL:40s RenewInterval:11s PollInterval:2s HolderID:f} " +
		"S3Lease:{Bucket:lease-bucket Key:a/l Region:eu-west-1 EndpointURL:https://minio:9000 TTL:20s RenewInterval:6s PollInterval:500ms HolderID:s} " +
		"GCSLease:{Bucket:g ObjectName:a/g ServiceFile:/s EndpointURL:http://e TTL:21s RenewInterval:7s PollInterval:3s HolderID:h} " +
		"K8sLease:{Namespace:n Name:m Identity:i LeaseDuration:22s RenewInterval:8s Kubeconfig:/k} UnsafeSkipStoreProbe:true} " +
		"{Store:gcs File:{Path:/m/s Shared:true} S3:{Bucket:b Key:k Region:r EndpointURL:http://x} " +
		"GCS:{Bucket:state-bucket ObjectName:o ServiceFile:/sf EndpointURL:http://y}} " +
		"{HealthAddr:127.0.0.1:0 ShutdownGrace:10s LogLevel:debug LogFormat:logfmt PlatformStopWindow:30s RuntimeDir:/run/x UnreadyAfterSinkFailing:0s Telemetry:{Given:true}} " +
		"{Command:[sf2loki --config /x] StopGrace:2s CheckpointAPI:true UnfencedState:accept}"
	if got != want {
		t.Errorf("values:\n got %s\nwant %s", got, want)
	}
	// Every key of the schema was given above, so that a new one is noticed here.
	schema.each(func(n *schemaNode) {
		if !c.IsSet(n.path) {
			t.Errorf("%s is not set by this test", n.path)
		}
	})
}

func TestSf2lokiSectionsPassUnread(t *testing.T) {
	c := load(t, `
salesforce: {client_secret: "${NOT_SET}", nonsense: 1, nonsense: 2, <<: 5}
orgs: 7
sources:
sink: &loop [*loop, !unknown x]
service:
  telemetry: {headers: {a: "${NOT_SET}"}, a: 1, a: 2}
`, "SF2LOKI_SINK__NOPE=1", "SF2LOKI_SALESFORCE=not json", "SF2LOKI_SERVICE__TELEMETRY__NOPE=x")
	if !c.Service.Telemetry.Given || c.IsSet("sink") {
		t.Errorf("telemetry given %v, sink ours %v", c.Service.Telemetry.Given, c.IsSet("sink"))
	}
}

func TestEmptyDocumentsAreEmptyMappings(t *testing.T) {
	for _, text := range []string{"", "# nothing\n", "---\n", "--- \n...\n", "null\n", "~", "\ufeff", "{}"} {
		c := load(t, text)
		if c.Coordinate.Type != TypeNoop {
			t.Errorf("%q: type %q", text, c.Coordinate.Type)
		}
	}
}

func TestUnreadableFilesAreConfigurationErrors(t *testing.T) {
	dir := t.TempDir()
	large := filepath.Join(dir, "large")
	if err := os.WriteFile(large, []byte(strings.Repeat("#", maxFile+1)), 0o600); err != nil {
		t.Fatal(err)
	}
	for path, fragment := range map[string]string{
		filepath.Join(dir, "missing.yaml"): "the file does not exist; check --config",
		dir:                                "is a directory; name the file in it",
		large:                              "larger than 1048576 bytes",
		large + "/x":                       "cannot be read: not a directory",
	} {
		c, err := Load(path, nil)
		one(t, shorten(t, path, c, err), "FILE: ", fragment)
	}
}

// The tests may run as root, whom no permission stops.
func TestPermissionDeniedNamesUserAndMode(t *testing.T) {
	p := readProblem("/etc/c.yaml", &fs.PathError{Op: "open", Path: "/etc/c.yaml", Err: fs.ErrPermission})
	for _, want := range []string{"/etc/c.yaml: permission denied", "uid 10001", "chmod 640"} {
		if !strings.Contains(p.String(), want) {
			t.Errorf("problem lacks %q: %s", want, p)
		}
	}
}

func TestAllProblemsAreReportedAtOnceInAStableOrder(t *testing.T) {
	const text = `
service: {log_level: inof, log_format: 3}
coordiante: {}
coordinate:
  type: s3_lease
  s3_lease:
    ttl: "30"
    bucket: ${MISSING}
state:
  store: gcs
workload: {command: run it}
`
	want := []string{
		`service.log_level: "inof" is not one of debug, info, warning, warn, error, critical; did you mean info? (FILE:2:22)`,
		`service.log_format: must be text, but is the number "3"; put it in quotes (FILE:2:40)`,
		`coordiante: unknown configuration key; did you mean coordinate? (FILE:3:1)`,
		`coordinate.s3_lease.ttl: "30" is a number without a unit; write 30s for seconds (FILE:7:10)`,
		`coordinate.s3_lease.bucket: the environment variable of ${MISSING} is not set; set it, or write the value here (FILE:8:13)`,
		`workload.command: must be a list of texts such as ["program", "argument"], but is a text (FILE:11:21)`,
		`coordinate.file_lease.ttl: "5x" is not a duration; write it as 30s, 1m30s or 500ms; the units are ms, s, m, h, d and w (SF2LOKI_COORDINATE__FILE_LEASE__TTL)`,
		`state.nope: unknown configuration key; valid here: store, file, s3, gcs (SF2LOKI_STATE__NOPE)`,
		`state.gcs.bucket: is empty, but state.store is gcs; give the bucket's name, here or as SF2LOKI_STATE__GCS__BUCKET (FILE:9:1)`,
	}
	// The last one has the place of its section, so that it comes with the file.
	want = []string{want[0], want[1], want[2], want[3], want[4], want[8], want[5], want[6], want[7]}
	for range 5 {
		exactly(t, problems(t, text, "SF2LOKI_STATE__NOPE=1", "SF2LOKI_COORDINATE__FILE_LEASE__TTL=5x"), want...)
	}
}

// A supervisor that restarts on exit 1 must never see it for a permanent
// mistake: every error is of the one class that exits with 2.
func TestEveryLoadErrorIsOneClass(t *testing.T) {
	for _, text := range []string{
		"a: b: c", "\xff", "a: 1\n---\nb: 2", "[]", "nope: 1", "state: 1", "state: {store: s3}", "coordinate: {type: k8s_lease}",
		"workload: {command: [\"${X}\"]}", "service: {health_addr: x}", "state: &a {file: *a}", "\x01",
	} {
		_, err := Load(write(t, text), nil)
		var config *Error
		if !errors.As(err, &config) || len(config.Problems) == 0 {
			t.Errorf("%q: %v is not an *Error with problems", text, err)
			continue
		}
		for _, p := range config.Problems {
			if p.Key == "" || p.Message == "" || p.File == "" || strings.Contains(p.String(), "\n") {
				t.Errorf("%q: incomplete problem %+v", text, p)
			}
		}
	}
}

func TestIsSetTellsExplicitValuesFromDefaults(t *testing.T) {
	c := load(t, "state: {store: file}\n", "SF2LOKI_SERVICE__SHUTDOWN_GRACE=25s")
	for key, want := range map[string]bool{
		"state": true, "state.store": true, "state.file": false, "service.shutdown_grace": true, "service": true, "service.log_level": false, "coordinate.type": false,
	} {
		if c.IsSet(key) != want {
			t.Errorf("IsSet(%s) = %v", key, !want)
		}
	}
	if c.Service.ShutdownGrace != 25*time.Second {
		t.Errorf("grace %v", c.Service.ShutdownGrace)
	}
}
