package config

import (
	"path/filepath"
	"testing"
)

func TestExamplesLoad(t *testing.T) {
	paths, err := filepath.Glob("../../examples/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	want := map[string][2]string{
		"s3.yaml":   {"s3://my-sf2loki/sf2loki/leader.lease", "s3://my-sf2loki/sf2loki/state.json"},
		"gcs.yaml":  {"gs://my-sf2loki/sf2loki/leader.lease", "gs://my-sf2loki/sf2loki/state.json"},
		"k8s.yaml":  {"k8s://sf2loki/sf2loki-leader", "s3://my-sf2loki/sf2loki/state.json"},
		"file.yaml": {"file:/shared/sf2loki/leader.lease", "file:/shared/sf2loki/state.json"},
	}
	for _, path := range paths {
		c, err := Load(path, nil)
		if err != nil {
			t.Errorf("%s: %v", path, err)
			continue
		}
		name := filepath.Base(path)
		if w, ok := want[name]; ok && (c.LeaseObject() != w[0] || c.StateObject() != w[1]) {
			t.Errorf("%s: lease %s, state %s", name, c.LeaseObject(), c.StateObject())
		}
		delete(want, name)
	}
	for name := range want {
		t.Errorf("examples/%s is missing", name)
	}
}
