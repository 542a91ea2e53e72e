package config

import (
	"strings"
	"testing"
)

// The three relations that a newcomer had to find one after the other.
func TestRelationsAreReportedTogether(t *testing.T) {
	got := problems(t, s3("ttl: 3s, renew_interval: 5s, poll_interval: 10s"))
	if all := strings.Join(got, "\n"); len(got) != 3 ||
		!strings.Contains(all, "coordinate.s3_lease.poll_interval: 10s is longer than the ttl of 3s") ||
		!strings.Contains(all, "coordinate.s3_lease.renew_interval: 5s is not less than half of the ttl of 3s") ||
		!strings.Contains(all, "coordinate.s3_lease.renew_interval: 5s + 3 calls") {
		t.Errorf("want three problems:\n%s", all)
	}
}

// One mistake hides no other whose values are known, and brings no second one
// about a value that is not.
func TestOneMistakeDoesNotHideOthers(t *testing.T) {
	for name, c := range map[string]struct {
		text string
		want []string
	}{
		"unit of the ttl": {s3("ttl: '15', poll_interval: 1ms") + "service: {shutdown_grace: -1}\nworkload: {stop_grace: -1}", []string{
			"coordinate.s3_lease.ttl: \"15\" is a number without a unit", "coordinate.s3_lease.poll_interval: 1ms is less than", "service.shutdown_grace: -1s must", "workload.stop_grace: -1s must"}},
		"unit of the grace": {s3("ttl: 9s") + "workload: {stop_grace: '3'}", []string{
			"workload.stop_grace: \"3\" is a number", "coordinate.s3_lease.renew_interval: 5s is not less than half"}},
		"unit of the drain": {s3("ttl: 9s") + "service: {shutdown_grace: '3'}", []string{
			"service.shutdown_grace: \"3\" is a number", "renew_interval: 5s is not less than half", "renew_interval: 5s + 3 calls"}},
		"unknown type": {"coordinate: {type: zookeeper, file_lease: {ttl: 20s}}\nstate: {store: s3}\nservice: {platform_stop_window: 1s}\nworkload: {stop_grace: 1h}", []string{
			"coordinate.type: \"zookeeper\"", "coordinate.file_lease.renew_interval", "state.s3.bucket: is empty", "service.platform_stop_window: 1s leaves"}},
		"misspelt type": {"coordinate: {type: s3, s3_lease: {poll_interval: 10ms}}\nstate: {store: file}", []string{
			"did you mean s3_lease?", "coordinate.s3_lease.bucket: is empty, but coordinate.type is meant to be s3_lease", "poll_interval: 10ms", "state.store: file is on this replica's own disk, where a takeover would not find it, but coordinate.type is meant to be s3_lease"}},
		"misspelt store":      {"state: {store: S3}", []string{"did you mean s3?", "state.s3.bucket: is empty, but state.store is meant to be s3"}},
		"misspelt section":    {"coordiante: {type: s3_lease}\nstate: {store: s3}\nservice: {log_level: x, shutdown_grace: -1}", []string{"did you mean coordinate?", "state.s3.bucket", "service.log_level", "service.shutdown_grace: -1s"}},
		"misspelt subsection": {"coordinate: {type: s3_lease, s3_leese: {bucket: b}}\nstate: {store: s3}", []string{"did you mean coordinate.s3_lease?", "state.s3.bucket"}},
		"duplicate key":       {"state: {store: none, store: s3}\nservice: {log_level: x}\ncoordinate: {type: s3_lease}", []string{"state.store: is given twice", "service.log_level: \"x\"", "coordinate.s3_lease.bucket: is empty"}},
		"duplicate section":   {"state: {store: s3}\nstate: {}\nservice: {log_level: x}", []string{"state: is given twice", "service.log_level: \"x\""}},
		"circle":              {"workload: {command: &c [a, *c]}\nservice: {log_level: x}", []string{"workload.command: contains itself", "service.log_level: \"x\""}},
		"missing variable":    {"state: {store: \"${NO}\"}\ncoordinate: {type: s3_lease}", []string{"state.store: the environment variable of ${NO} is not set", "coordinate.s3_lease.bucket: is empty"}},
	} {
		t.Run(name, func(t *testing.T) {
			got := problems(t, c.text)
			all := strings.Join(got, "\n")
			if len(got) != len(c.want) {
				t.Errorf("%d problems, want %d:\n%s", len(got), len(c.want), all)
			}
			for _, w := range c.want {
				if !strings.Contains(all, w) {
					t.Errorf("lacks %q:\n%s", w, all)
				}
			}
		})
	}
}

// Without a type both replicas would lead: a lease that is described has to be
// selected, or noop said.
func TestALeaseWithoutATypeIsRefused(t *testing.T) {
	const state = "state: {store: none}\n"
	for text, want := range map[string]string{
		"coordinate: {s3_lease: {bucket: b}}\n" + state:                "coordinate.type: is not set, but coordinate.s3_lease is given; without a type there is no election and every replica leads; set coordinate.type: s3_lease, or noop if there is only ever one replica (FILE:1:14)",
		"coordinate: {gcs_lease: {bucket: b}}\n" + state:               "set coordinate.type: gcs_lease, or noop",
		"coordinate: {file_lease: {path: /m/l}}\n" + state:             "set coordinate.type: file_lease, or noop",
		"coordinate: {k8s_lease: {name: x}}\n" + state:                 "set coordinate.type: k8s_lease, or noop",
		"coordinate: {s3_lease: {}}\nstate: {store: none}":             "is not set, but coordinate.s3_lease is given",
		"coordinate: {gcs_lease: {bucket: b}, s3_lease: {}}\n" + state: "is not set, but coordinate.s3_lease and coordinate.gcs_lease are given; without a type there is no election and every replica leads; set coordinate.type: s3_lease or gcs_lease, or noop if there is only ever one replica (FILE:1:38)",
	} {
		got := problems(t, text)
		var found []string
		for _, p := range got {
			if strings.HasPrefix(p, "coordinate.type: ") {
				found = append(found, p)
			}
		}
		one(t, found, want)
		for _, env := range []string{"SF2LOKI_COORDINATE__TYPE=noop", `SF2LOKI_COORDINATE={"type": "noop"}`} {
			load(t, text, env)
		}
		load(t, strings.Replace(text, "coordinate: {", "coordinate: {type: noop, ", 1))
	}
	c, err := Load("", []string{"SF2LOKI_COORDINATE__S3_LEASE__BUCKET=b", "SF2LOKI_STATE__STORE=none"})
	exactly(t, shorten(t, "no file", c, err), "coordinate.type: is not set, but coordinate.s3_lease is given; without a type there is no election and every replica leads; set SF2LOKI_COORDINATE__TYPE=s3_lease, or noop if there is only ever one replica (SF2LOKI_COORDINATE__S3_LEASE__BUCKET)")
	// What is wrong with the lease that is meant is said at once.
	got := strings.Join(problems(t, "coordinate: {s3_lease: {poll_interval: 1ms}}\n"), "\n")
	for _, want := range []string{"coordinate.type: is not set", "coordinate.s3_lease.bucket: is empty, but coordinate.type is meant to be s3_lease", "poll_interval: 1ms is less", "state.store: is not set, but coordinate.type is meant to be s3_lease"} {
		if !strings.Contains(got, want) {
			t.Errorf("lacks %q:\n%s", want, got)
		}
	}
	load(t, "coordinate: {}")
}

// An offer is something that works.
func TestTypesThatThisBuildRefusesAreNotOffered(t *testing.T) {
	const refusal = "gcs_lease is not in this build"
	saved := notInBuild
	notInBuild = map[string]string{TypeGCSLease: refusal}
	defer func() { notInBuild = saved }()
	exactly(t, problems(t, "coordinate: {type: zookeeper}"), `coordinate.type: "zookeeper" is not one of noop, file_lease, s3_lease, k8s_lease (FILE:1:20)`)
	exactly(t, problems(t, "coordinate: {type: gcs}"), `coordinate.type: "gcs" is not one of noop, file_lease, s3_lease, k8s_lease; `+refusal+" (FILE:1:20)")
	one(t, problems(t, "coordinate: {gcs_lease: {bucket: b}}"), "set coordinate.type: gcs_lease, or noop if there is only ever one replica; "+refusal)
}
