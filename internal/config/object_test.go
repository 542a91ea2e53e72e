package config

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

// s3Pair is a lease and a checkpoint document in S3, each bucket, key, endpoint.
func s3Pair(lease, state [3]string) string {
	return fmt.Sprintf("coordinate: {type: s3_lease, s3_lease: {bucket: '%s', key: '%s', endpoint_url: '%s'}}\nstate: {store: s3, s3: {bucket: '%s', key: '%s', endpoint_url: '%s'}}\n",
		lease[0], lease[1], lease[2], state[0], state[1], state[2])
}

func TestLeaseMustNotBeTheCheckpointObject(t *testing.T) {
	exactly(t, problems(t, "coordinate: {type: s3_lease, s3_lease: {bucket: b, key: sf2loki/state.json}}\nstate: {store: s3, s3: {bucket: b}}\n"),
		"coordinate.s3_lease.key: the lease s3://b/sf2loki/state.json is the same object as the checkpoint document s3://b/sf2loki/state.json (state.s3.key, from line 2); give one of them another name (FILE:1:57)")
	exactly(t, problems(t, "coordinate: {type: gcs_lease, gcs_lease: {bucket: b}}\n", "SF2LOKI_STATE__STORE=gcs", "SF2LOKI_STATE__GCS__BUCKET=b", "SF2LOKI_STATE__GCS__OBJECT_NAME=sf2loki/leader.lease"),
		"coordinate.gcs_lease.object_name: the lease gs://b/sf2loki/leader.lease is the same object as the checkpoint document gs://b/sf2loki/leader.lease (state.gcs.object_name, from SF2LOKI_STATE__GCS__OBJECT_NAME); give one of them another name (FILE:1:31)")
	exactly(t, problems(t, s3Pair([3]string{"b", "k", ""}, [3]string{"b", "k.request", ""})),
		"coordinate.s3_lease.key: the lease s3://b/k is no object of its own beside the checkpoint document s3://b/k.request (state.s3.key, from line 2); give one of them another name (FILE:1:59)")

	const minio = "http://minio:9000"
	for name, c := range map[string]struct {
		lease, state [3]string
		env          []string
		same         bool
	}{
		"equal":                         {[3]string{"b", "k", minio}, [3]string{"b", "k", minio}, nil, true},
		"trailing slash":                {[3]string{"b", "k", minio}, [3]string{"b", "k", minio + "/"}, nil, true},
		"case of scheme and host":       {[3]string{"b", "k", "HTTP://MinIO:9000"}, [3]string{"b", "k", minio}, nil, true},
		"default port":                  {[3]string{"b", "k", "https://m:443"}, [3]string{"b", "k", "https://m"}, nil, true},
		"default port of http":          {[3]string{"b", "k", "http://m:80/"}, [3]string{"b", "k", "http://m"}, nil, true},
		"either scheme":                 {[3]string{"b", "k", "http://m"}, [3]string{"b", "k", "https://m"}, nil, true},
		"trailing dot":                  {[3]string{"b", "k", "http://m."}, [3]string{"b", "k", "http://m"}, nil, true},
		"loopback":                      {[3]string{"b", "k", "http://localhost:9000"}, [3]string{"b", "k", "http://127.0.0.1:9000"}, nil, true},
		"loopback v6":                   {[3]string{"b", "k", "http://[::1]:9000"}, [3]string{"b", "k", "http://127.1.2.3:9000"}, nil, true},
		"aws default":                   {[3]string{"b", "k", ""}, [3]string{"b", "k", "https://s3.amazonaws.com"}, nil, true},
		"aws regional":                  {[3]string{"b", "k", "https://s3.eu-west-1.amazonaws.com"}, [3]string{"b", "k", "https://s3.dualstack.eu-west-1.amazonaws.com/"}, nil, true},
		"aws private":                   {[3]string{"b", "k", "https://bucket.vpce-1.s3.eu-west-1.vpce.amazonaws.com"}, [3]string{"b", "k", ""}, nil, true},
		"endpoint from the environment": {[3]string{"b", "k", minio}, [3]string{"b", "k", ""}, []string{"AWS_ENDPOINT_URL=http://other", "AWS_ENDPOINT_URL_S3=" + minio}, true},
		"general endpoint":              {[3]string{"b", "k", minio}, [3]string{"b", "k", ""}, []string{"AWS_ENDPOINT_URL=" + minio}, true},
		"drill object":                  {[3]string{"b", "k", ""}, [3]string{"b", "k.drill", ""}, nil, true},
		"object of the probe":           {[3]string{"b", "k", ""}, [3]string{"b", "k.probe/state.json", ""}, nil, true},

		"other key":               {[3]string{"b", "k", minio}, [3]string{"b", "k2", minio}, nil, false},
		"key is case-sensitive":   {[3]string{"b", "k", minio}, [3]string{"b", "K", minio}, nil, false},
		"other bucket":            {[3]string{"b", "k", minio}, [3]string{"c", "k", minio}, nil, false},
		"other port":              {[3]string{"b", "k", "http://127.0.0.1:9000"}, [3]string{"b", "k", "http://127.0.0.1:9001"}, nil, false},
		"other host":              {[3]string{"b", "k", "http://m1"}, [3]string{"b", "k", "http://m2"}, nil, false},
		"aws is not a look-alike": {[3]string{"b", "k", ""}, [3]string{"b", "k", "https://s3.notamazonaws.com"}, nil, false},
		"endpoint ignored":        {[3]string{"b", "k", minio}, [3]string{"b", "k", ""}, []string{"AWS_ENDPOINT_URL=" + minio, "AWS_IGNORE_CONFIGURED_ENDPOINT_URLS=true"}, false},
		"other path":              {[3]string{"b", "k", "http://m/a"}, [3]string{"b", "k", "http://m/b"}, nil, false},
		"other suffix":            {[3]string{"b", "k", ""}, [3]string{"b", "k.json", ""}, nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			text := s3Pair(c.lease, c.state)
			if !c.same {
				load(t, text, c.env...)
				return
			}
			one(t, problems(t, text, c.env...), "coordinate.s3_lease.key: the lease ", "give one of them another name")
		})
	}
}

// Cloud Storage speaks S3 as well, so that two kinds can mean one object.
func TestLeaseMustNotBeTheCheckpointObjectUnderAnotherInterface(t *testing.T) {
	text := "coordinate: {type: s3_lease, s3_lease: {bucket: b, key: k, endpoint_url: 'https://storage.googleapis.com'}}\nstate: {store: gcs, gcs: {bucket: b, object_name: k}}\n"
	one(t, problems(t, text), "the lease s3://b/k at https://storage.googleapis.com is the same object as the checkpoint document gs://b/k")
	load(t, text, "STORAGE_EMULATOR_HOST=127.0.0.1:4443")
	text = "coordinate: {type: gcs_lease, gcs_lease: {bucket: b, object_name: k, endpoint_url: 'http://localhost:4443/storage/v1/'}}\nstate: {store: gcs, gcs: {bucket: b, object_name: k}}\n"
	one(t, problems(t, text, "STORAGE_EMULATOR_HOST=127.0.0.1:4443"), "is the same object")
	load(t, text)
}

func TestLeaseFileMustNotBeTheCheckpointFile(t *testing.T) {
	dir := t.TempDir()
	real := filepath.Join(dir, "real")
	link := filepath.Join(dir, "link")
	if err := os.Mkdir(real, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(real, link); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(real, "one"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Link(filepath.Join(real, "one"), filepath.Join(real, "two")); err != nil {
		t.Fatal(err)
	}
	wd, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	relative, err := filepath.Rel(wd, filepath.Join(real, "x"))
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		lease, state string
		same         bool
	}{
		"equal":               {real + "/x", real + "/x", true},
		"cleaned":             {real + "/../real//x", real + "/x", true},
		"relative":            {relative, real + "/x", true},
		"symbolic directory":  {link + "/sub/x", real + "/sub/x", true},
		"hard link":           {real + "/one", real + "/two", true},
		"lock of the state":   {real + "/state.json.lock", real + "/state.json", true},
		"lock of the lease":   {real + "/leader.lease", real + "/leader.lease.lock", true},
		"numbered sibling":    {real + "/leader.lease", real + "/leader.lease.17", true},
		"unfinished write":    {real + "/leader.lease", real + "/leader.lease.0123456789abcdef.tmp", true},
		"temporary":           {real + "/leader.lease.tmp", real + "/leader.lease", true},
		"lock through a link": {link + "/a", real + "/a.lock", true},
		"different":           {real + "/leader.lease", real + "/state.json", false},
		"another extension":   {real + "/x", real + "/x.json", false},
		"same name elsewhere": {real + "/x", dir + "/x", false},
	} {
		t.Run(name, func(t *testing.T) {
			text := fmt.Sprintf("coordinate: {type: file_lease, file_lease: {path: '%s'}}\nstate: {file: {path: '%s'}}\n", c.lease, c.state)
			if !c.same {
				load(t, text)
				return
			}
			one(t, problems(t, text), "coordinate.file_lease.path: the lease file:", "file ", "(state.file.path, from line 2); give one of them another name")
		})
	}
	one(t, problems(t, "coordinate: {type: file_lease, file_lease: {path: /var/lib/sf2loki/state.json}}"), "(state.file.path, from a default)")
	// What is not selected is not compared.
	load(t, "coordinate: {type: noop, file_lease: {path: /m/x}}\nstate: {file: {path: /m/x}}\n")
}

func TestObjectsAreNamedForLogs(t *testing.T) {
	for text, want := range map[string][2]string{
		"": {"none", "file:/var/lib/sf2loki/state.json"},
		"coordinate: {type: file_lease}\nstate: {store: none}\n":                 {"file:/var/lib/sf2loki/leader.lease", "none"},
		s3Pair([3]string{"l", "k", "https://m:1/"}, [3]string{"s", "k", ""}):     {"s3://l/k at https://m:1", "s3://s/k"},
		"state: {store: gcs, gcs: {bucket: b, endpoint_url: 'http://e:2/base'}}": {"none", "gs://b/sf2loki/state.json at http://e:2/base"},
	} {
		c := load(t, text)
		if got := [2]string{c.LeaseObject(), c.StateObject()}; got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
	// Even a Config that Load would have refused shows no credential.
	c := &Config{Coordinate: Coordinate{Type: TypeS3Lease, S3Lease: S3Lease{Bucket: "b", Key: "k", EndpointURL: "https://user:sekrit@h:1/?token=sekrit"}}}
	if got := c.LeaseObject(); got != "s3://b/k at https://h:1" {
		t.Errorf("%q", got)
	}
	c.Coordinate.S3Lease.EndpointURL = "https://user:se%krit@h"
	if got := c.LeaseObject(); got != "s3://b/k at a custom endpoint" {
		t.Errorf("%q", got)
	}
	c = &Config{Coordinate: Coordinate{Type: TypeK8sLease, K8sLease: K8sLease{Namespace: "n", Name: "m"}}}
	if got := c.LeaseObject(); got != "k8s://n/m" {
		t.Errorf("%q", got)
	}
}

// What the checkpoint document stores must not depend on the way to the store: a
// replica with another identity may not seal it.
func TestLeaseIdentitySurvivesAnotherSpellingOfTheEndpoint(t *testing.T) {
	for _, endpoint := range []string{"", "https://s3.eu-central-1.amazonaws.com", "http://127.0.0.1:7070", "http://localhost:7070/", "https://minio:443/base"} {
		if got := load(t, s3Pair([3]string{"l", "k", endpoint}, [3]string{"s", "k", ""})).LeaseIdentity(); got != "s3://l/k" {
			t.Errorf("s3 at %q: %q", endpoint, got)
		}
		if got := load(t, gcs("endpoint_url: '"+endpoint+"'")).LeaseIdentity(); got != "gs://b/sf2loki/leader.lease" {
			t.Errorf("gcs at %q: %q", endpoint, got)
		}
	}
	for _, path := range []string{"/m/lease", "/m/./lease", "/m//x/../lease"} {
		if got := load(t, "coordinate: {type: file_lease, file_lease: {path: "+path+"}}").LeaseIdentity(); got != "/m/lease" {
			t.Errorf("%s: %q", path, got)
		}
	}
	c := &Config{Coordinate: Coordinate{Type: TypeK8sLease, K8sLease: K8sLease{Namespace: "n", Name: "m"}}}
	if got := c.LeaseIdentity(); got != "k8s://n/m" {
		t.Errorf("k8s: %q", got)
	}
	if got := load(t, "").LeaseIdentity(); got != "" {
		t.Errorf("noop: %q", got)
	}
}
