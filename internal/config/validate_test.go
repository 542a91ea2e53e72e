package config

import (
	"strings"
	"testing"
	"time"
)

// The messages below hold for any set of types that the build does not have.
var offeredTypes = strings.Join(offered(types), ", ")

func TestNamesOfTypeStoreLevelAndFormat(t *testing.T) {
	for text, want := range map[string]string{
		"coordinate: {type: s3, s3_lease: {bucket: b}}\nstate: {store: none}":       `coordinate.type: "s3" is not one of ` + offeredTypes + `; did you mean s3_lease? (FILE:1:20)`,
		"coordinate: {type: S3_LEASE, s3_lease: {bucket: b}}\nstate: {store: none}": `coordinate.type: "S3_LEASE" is not one of ` + offeredTypes + `; did you mean s3_lease? (FILE:1:20)`,
		"coordinate: {type: zookeeper}":                                             `coordinate.type: "zookeeper" is not one of ` + offeredTypes + ` (FILE:1:20)`,
		"coordinate: {type: ''}":                                                    `coordinate.type: "" is not one of ` + offeredTypes + ` (FILE:1:20)`,
		"state: {store: redis}":                                                     `state.store: "redis" is not one of file, s3, gcs, none (FILE:1:16)`,
		"state: {store: nnoe}":                                                      `state.store: "nnoe" is not one of file, s3, gcs, none; did you mean none? (FILE:1:16)`,
		"service: {log_level: inof}":                                                `service.log_level: "inof" is not one of debug, info, warning, warn, error, critical; did you mean info? (FILE:1:22)`,
		"service: {log_format: JSON}":                                               `service.log_format: "JSON" is not one of json, logfmt; did you mean json? (FILE:1:23)`,
		"service: {log_format: text}":                                               `service.log_format: "text" is not one of json, logfmt (FILE:1:23)`,
	} {
		exactly(t, problems(t, text), want)
	}
	for text, want := range map[string]string{"DEBUG": "debug", "Warn": "warn", "warning": "warning", "critical": "critical", "error": "error", "InFo": "info"} {
		if c := load(t, "service: {log_level: "+text+"}"); c.Service.LogLevel != want {
			t.Errorf("%s = %q", text, c.Service.LogLevel)
		}
	}
}

func TestAKubernetesLeaseIsNamedAsKubernetesNamesObjects(t *testing.T) {
	load(t, "coordinate: {type: k8s_lease}\nstate: {store: none}")
	lease := func(fields string) []string {
		return problems(t, "coordinate: {type: k8s_lease, k8s_lease: {"+fields+"}}\nstate: {store: none}")
	}
	for _, fields := range []string{"namespace: a-1, name: a.b-c.d", "name: '1'"} {
		load(t, "coordinate: {type: k8s_lease, k8s_lease: {"+fields+"}}\nstate: {store: none}")
	}
	for fields, want := range map[string]string{
		"name: ''":                              "k8s_lease.name: is empty",
		"namespace: ''":                         "k8s_lease.namespace: is empty",
		"namespace: a.b":                        "k8s_lease.namespace: \"a.b\" has the character '.'",
		"name: logs/leader":                     "k8s_lease.name: \"logs/leader\" has the character '/'",
		"name: Leader":                          "k8s_lease.name: \"Leader\" has the character 'L'",
		"name: -a":                              "k8s_lease.name: \"-a\" does not begin and end with",
		"name: a..b":                            "k8s_lease.name: \"a..b\" does not begin and end with",
		"name: " + strings.Repeat("a", 254):     "k8s_lease.name: has 254 characters; Kubernetes takes at most 253",
		"namespace: " + strings.Repeat("a", 64): "k8s_lease.namespace: has 64 characters; Kubernetes takes at most 63",
	} {
		one(t, lease(fields), want)
	}
	got := strings.Join(problems(t, "coordinate: {type: k8s_lease, k8s_lease: {name: '', lease_duration: 9s}}\n"), "\n")
	for _, want := range []string{"k8s_lease.name: is empty", "k8s_lease.renew_interval: 10s is not less than half of the ttl of 9s", "state.store: is not set"} {
		if !strings.Contains(got, want) {
			t.Errorf("lacks %q:\n%s", want, got)
		}
	}
}

func TestHealthAddress(t *testing.T) {
	for _, addr := range []string{":8080", ":0", "127.0.0.1:65535", "[::1]:80", "localhost:1", "0.0.0.0:8080", "health.internal:9090", "[fe80::1%eth0]:1"} {
		load(t, "service: {health_addr: '"+addr+"'}")
	}
	for addr, want := range map[string]string{
		"8080": `"8080" is not host:port; write it as ":8080", "127.0.0.1:8080" or "[::1]:8080"`, "": `"" is not host:port`, "::1:8080": "is not host:port", "host": "is not host:port", "http://h:1": "is not host:port",
		" :80": "is not host:port", "u:p@h:80": `"...@h:80" is not host:port`, "a/b:80": "is not host:port",
		":": "has no port between 0 and 65535; 0 means a free one", ":65536": "has no port between 0 and 65535", ":http": "has no port between", ":-1": "has no port between", ":+1": "has no port between", ": 80": "has no port between",
	} {
		one(t, problems(t, "service: {health_addr: '"+addr+"'}"), "service.health_addr: ", want, "(FILE:1:24)")
	}
	one(t, problems(t, "service: {health_addr: 8080}"), "service.health_addr: must be text, but is the number \"8080\"; put it in quotes")
}

// s3 wraps the text of an otherwise valid lease section.
func s3(section string) string {
	return "coordinate: {type: s3_lease, s3_lease: {bucket: b, " + section + "}}\nstate: {store: none}\n"
}

func gcs(section string) string {
	return "coordinate: {type: gcs_lease, gcs_lease: {bucket: b, " + section + "}}\nstate: {store: none}\n"
}

func TestRelationsOfTheSelectedLease(t *testing.T) {
	for name, c := range map[string]struct {
		text string
		want []string
	}{
		"renew not below half of the ttl": {s3("ttl: 60s, renew_interval: 30s"), []string{"coordinate.s3_lease.renew_interval: 30s is not less than half of the ttl of 1m0s; raise the ttl to 1m0.5s or renew every 29.99s (FILE:1:78)"}},
		"no room for three calls":         {s3("ttl: 15s, renew_interval: 7s"), []string{"coordinate.s3_lease.renew_interval: 7s + 3 calls of 1.5s = 11.5s does not fit into the 10.85s a term has before its work must stop (ttl 15s less 1.0% drift, stop grace 3s, kill margin 1s); raise the ttl to 16s or renew every 6.35s (FILE:1:78)"}},
		"both at once": {s3("renew_interval: 9s"), []string{
			"coordinate.s3_lease.renew_interval: 9s + 3 calls of 1.5s = 13.5s does not fit into the 10.85s a term has before its work must stop (ttl 15s less 1.0% drift, stop grace 3s, kill margin 1s); raise the ttl to 18.5s or renew every 6.35s (FILE:1:68)",
			"coordinate.s3_lease.renew_interval: 9s is not less than half of the ttl of 15s; raise the ttl to 18.5s or renew every 6.35s (FILE:1:68)"}},
		"only the ttl given":      {s3("ttl: 9s"), []string{"coordinate.s3_lease.renew_interval: 5s + 3 calls of 900ms = 7.7s does not fit", "coordinate.s3_lease.renew_interval: 5s is not less than half of the ttl of 9s"}},
		"ttl too short":           {s3("ttl: 500ms"), []string{"coordinate.s3_lease.ttl: 500ms is outside 1s to 10m0s (FILE:1:57)"}},
		"ttl too long":            {s3("ttl: 15m"), []string{"coordinate.s3_lease.ttl: 15m0s is outside 1s to 10m0s (FILE:1:57)"}},
		"minutes meant":           {s3("ttl: 15, renew_interval: 5m"), []string{"coordinate.s3_lease.renew_interval: 5m0s + 3 calls of", "coordinate.s3_lease.renew_interval: 5m0s is not less than half of the ttl of 15s"}},
		"poll too fast":           {s3("poll_interval: 50ms"), []string{"coordinate.s3_lease.poll_interval: 50ms is less than 100ms; each poll is a request that is paid for, so use 100ms or more (FILE:1:67)"}},
		"poll longer than ttl":    {s3("poll_interval: 16s"), []string{"coordinate.s3_lease.poll_interval: 16s is longer than the ttl of 15s; use at most 15s, better a tenth of it (FILE:1:67)"}},
		"zero is not a default":   {s3("ttl: 0, renew_interval: 0s, poll_interval: 0ms"), []string{"coordinate.s3_lease.ttl: 0s must be greater than 0; leave the key out for the default (FILE:1:57)", "coordinate.s3_lease.renew_interval: 0s must be greater", "coordinate.s3_lease.poll_interval: 0s must be greater"}},
		"negative":                {s3("ttl: -15"), []string{"coordinate.s3_lease.ttl: -15s must be greater than 0; leave the key out for the default (FILE:1:57)"}},
		"gcs writes":              {gcs("ttl: 8s, renew_interval: 900ms"), []string{"coordinate.gcs_lease.renew_interval: 900ms is shorter than 1s, and the store accepts no second write of one object within 1s; renew every 1s or less often (FILE:1:79)"}},
		"gcs calls take a second": {gcs("ttl: 6s, renew_interval: 2s"), []string{"coordinate.gcs_lease.renew_interval: 2s + 3 calls of 1s = 5s does not fit into the"}},
		"grace of nothing left":   {"service: {platform_stop_window: 2s, shutdown_grace: -1}", []string{"service.platform_stop_window: 2s leaves no time to stop the work; 2s of it are kept for the release (FILE:1:33)", "service.shutdown_grace: -1s must be greater than 0 (FILE:1:53)"}},
	} {
		t.Run(name, func(t *testing.T) {
			got := problems(t, c.text)
			if len(got) != len(c.want) {
				t.Fatalf("%d problems, want %d:\n%s", len(got), len(c.want), strings.Join(got, "\n"))
			}
			for _, w := range c.want {
				if !strings.Contains(strings.Join(got, "\n"), w) {
					t.Errorf("lacks %q:\n%s", w, strings.Join(got, "\n"))
				}
			}
		})
	}
	one(t, problems(t, "coordinate: {type: file_lease, file_lease: {ttl: 20s, renew_interval: 10s}}"),
		"coordinate.file_lease.renew_interval: 10s is not less than half of the ttl of 20s; raise the ttl to 20.5s or renew every 9.99s (FILE:1:71)")
	for _, text := range []string{s3("ttl: 6s, renew_interval: 2s"), s3("ttl: 45s, renew_interval: 15s"), s3("ttl: 10m, renew_interval: 1m"), gcs("ttl: 8s, renew_interval: 2s"), s3("ttl: 16s, renew_interval: 7s"), s3("renew_interval: 6.35s")} {
		load(t, text)
	}
}

// sf2loki refuses these whatever the type is, and so must we: the file is its.
func TestHalfRuleHoldsForLeasesThatAreNotSelected(t *testing.T) {
	exactly(t, problems(t, "coordinate: {type: noop, file_lease: {ttl: 20s, renew_interval: 10s}}"),
		"coordinate.file_lease.renew_interval: 10s is not less than half of ttl (20s); raise ttl above 20s or renew more often (FILE:1:65)")
	exactly(t, problems(t, "coordinate: {type: noop, k8s_lease: {lease_duration: 15s}}"),
		"coordinate.k8s_lease.renew_interval: 10s is not less than half of lease_duration (15s); raise lease_duration above 20s or renew more often (FILE:1:26)")
	load(t, "coordinate: {type: noop, file_lease: {ttl: 20.001, renew_interval: 10s}, s3_lease: {ttl: 1s, renew_interval: 1w}}")
	one(t, problems(t, "coordinate: {type: noop, file_lease: {ttl: 1s, renew_interval: 36499d}}"), "less than half")
}

func TestStopGraceMustLeaveTimeToRenew(t *testing.T) {
	exactly(t, problems(t, s3("ttl: 15s")+"workload: {stop_grace: 12s}"),
		"workload.stop_grace: 12s leaves too little of the ttl of 15s to renew it every 5s; use at most 4.35s or set coordinate.s3_lease.ttl to 23s (FILE:3:24)")
	load(t, s3("ttl: 15s")+"workload: {stop_grace: 4.35s}")
	one(t, problems(t, s3("ttl: 15s")+"workload: {stop_grace: 4.36s}"), "use at most 4.35s")
	for _, zero := range []string{"0s", "0", "-1"} {
		one(t, problems(t, "workload: {stop_grace: "+zero+"}"), "workload.stop_grace: ", "must be greater than 0; leave the key out for the default (FILE:1:24)")
	}
	// Without a lease nothing runs out, so that any grace fits.
	load(t, "workload: {stop_grace: 10m}")
	load(t, s3("ttl: 23s")+"workload: {stop_grace: 12s}")
	one(t, problems(t, s3("ttl: 15s")+"workload: {stop_grace: 20m}"), "use at most 4.35s (FILE")
	// A relation that fails even without the grace is the renewal's.
	one(t, problems(t, s3("renew_interval: 7s")+"workload: {stop_grace: 12s}"), "coordinate.s3_lease.renew_interval: 7s + 3 calls", "stop grace 12s", "raise the ttl to 25s (FILE")
	load(t, s3("ttl: 25s, renew_interval: 7s")+"workload: {stop_grace: 12s}")
}

func TestElectionCarriesTheSelectedDurations(t *testing.T) {
	c := load(t, gcs("ttl: 20s, renew_interval: 6s, poll_interval: 2s, holder_id: me")+"workload: {stop_grace: 1s}\nservice: {shutdown_grace: 9s, platform_stop_window: 30s}\n")
	e := c.Election("replica-a")
	if e.Identity != "replica-a" || e.TTL != 20*time.Second || e.RenewInterval != 6*time.Second || e.PollInterval != 2*time.Second || e.MinWriteInterval != time.Second ||
		e.StopGrace != time.Second || e.ShutdownGrace != 9*time.Second || e.PlatformStopWindow != 30*time.Second {
		t.Errorf("%+v", e)
	}
	if err := e.Validate(); err != nil || c.HolderID() != "me" {
		t.Errorf("%v, holder %q", err, c.HolderID())
	}
	for text, want := range map[string]time.Duration{s3("ttl: 6s, renew_interval: 2s"): 6 * time.Second, "coordinate: {type: file_lease}": 30 * time.Second, "": 0} {
		e := load(t, text).Election("x")
		if e.TTL != want || e.MinWriteInterval != 0 || e.StopGrace != 0 {
			t.Errorf("%q: %+v", text, e)
		}
		if err := e.Validate(); err != nil {
			t.Errorf("%q: %v", text, err)
		}
	}
	if e := (&Config{Coordinate: Coordinate{Type: TypeK8sLease, K8sLease: K8sLease{LeaseDuration: 30 * time.Second, RenewInterval: 10 * time.Second}}}).Election("x"); e.TTL != 30*time.Second || e.RenewInterval != 10*time.Second {
		t.Errorf("k8s: %+v", e)
	}
	// The coordinator reads zero as its default; the file means none.
	if e := load(t, "service: {shutdown_grace: 0s}").Election("x"); e.ShutdownGrace != time.Millisecond {
		t.Errorf("grace %v", e.ShutdownGrace)
	}
}

func TestHolderIDIsThatOfTheSelectedType(t *testing.T) {
	const all = "file_lease: {holder_id: f}, s3_lease: {bucket: b, holder_id: s}, gcs_lease: {bucket: b, holder_id: g}}\nstate: {store: none}\n"
	for typ, want := range map[string]string{TypeNoop: "", TypeFileLease: "f", TypeS3Lease: "s", TypeGCSLease: "g"} {
		if got := load(t, "coordinate: {type: "+typ+", "+all).HolderID(); got != want {
			t.Errorf("%s: %q, want %q", typ, got, want)
		}
	}
	if got := (&Config{Coordinate: Coordinate{Type: TypeK8sLease, K8sLease: K8sLease{Identity: "k"}}}).HolderID(); got != "k" {
		t.Errorf("k8s: %q", got)
	}
}
