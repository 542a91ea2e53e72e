package config

import (
	"strings"
	"testing"
)

func TestObjectLeasesNeedAnExplicitStore(t *testing.T) {
	const fix = "set s3, gcs, none (work that keeps no checkpoint document), or, if every replica mounts the directory of state.file.path, file with state.file.shared: true"
	for _, typ := range []string{TypeS3Lease, TypeGCSLease} {
		lease := "coordinate:\n  type: " + typ + "\n  " + typ + ": {bucket: b}\n"
		missing := "state.store: is not set, but coordinate.type is " + typ + " and the default file is on this replica's own disk, where a takeover would not find it; " + fix
		exactly(t, problems(t, lease), missing+" (FILE:2:9)")
		exactly(t, problems(t, lease+"state: {file: {shared: true}}"), missing+" (FILE:4:1)")
		exactly(t, problems(t, lease+"state: {store: file}"), "state.store: file is on this replica's own disk, where a takeover would not find it, but coordinate.type is "+typ+"; "+fix+" (FILE:4:16)")
		for _, state := range []string{"{store: none}", "{store: file, file: {shared: true}}", "{store: s3, s3: {bucket: b}}", "{store: gcs, gcs: {bucket: b}}"} {
			load(t, lease+"state: "+state)
		}
		for _, env := range []string{"SF2LOKI_STATE__STORE=none", `SF2LOKI_STATE={"store": "none"}`} {
			load(t, lease, env)
		}
		one(t, problems(t, lease, "SF2LOKI_STATE__STORE=file"), "state.store: file is on", "(SF2LOKI_STATE__STORE)")
	}
	c, err := Load("", []string{"SF2LOKI_COORDINATE__TYPE=s3_lease", "SF2LOKI_COORDINATE__S3_LEASE__BUCKET=b"})
	one(t, shorten(t, "no file", c, err), "state.store: is not set", "(SF2LOKI_COORDINATE__TYPE)")
	one(t, problems(t, "coordinate: {type: k8s_lease}\nstate: {store: file}"), "state.store: file is on this replica's own disk")
}

func TestPairsThatNeedNoExplicitStore(t *testing.T) {
	load(t, "coordinate: {type: file_lease}")
	load(t, "coordinate: {type: noop}")
	load(t, "coordinate: {type: file_lease}\nstate: {store: none}")
	load(t, "coordinate: {type: file_lease}\nstate: {store: s3, s3: {bucket: b}}")
}

func TestNoneIsNotForSf2loki(t *testing.T) {
	one(t, problems(t, "sink: {}\nsalesforce:\n"+s3("ttl: 15s")), "state.store: none is for work that keeps no checkpoint document, but sf2loki is configured here (salesforce, sink) and does; set s3, gcs or file", "(FILE:4:16)")
	one(t, problems(t, s3("ttl: 15s"), "SF2LOKI_SINK__LOKI__URL=http://loki"), "sf2loki is configured here (sink)")
	one(t, problems(t, s3("ttl: 15s")+"workload: {command: [/usr/bin/sf2loki, --config, x]}"), "state.store: none is for work that keeps no checkpoint document, but workload.command is sf2loki, which does")
	load(t, s3("ttl: 15s")+"workload: {command: [sf2loki-ha, canary]}")
}

func TestEmptyBucketOfWhatIsSelected(t *testing.T) {
	for text, want := range map[string]string{
		"coordinate: {type: s3_lease}\nstate: {store: none}":                               "coordinate.s3_lease.bucket: is empty, but coordinate.type is s3_lease; give the bucket's name, here or as SF2LOKI_COORDINATE__S3_LEASE__BUCKET (FILE:1:1)",
		"coordinate: {type: s3_lease, s3_lease: {bucket: ''}}\nstate: {store: none}":       "coordinate.s3_lease.bucket: is empty, but coordinate.type is s3_lease; give the bucket's name, here or as SF2LOKI_COORDINATE__S3_LEASE__BUCKET (FILE:1:49)",
		"coordinate: {type: gcs_lease, gcs_lease: {object_name: x}}\nstate: {store: none}": "coordinate.gcs_lease.bucket: is empty, but coordinate.type is gcs_lease; give the bucket's name, here or as SF2LOKI_COORDINATE__GCS_LEASE__BUCKET (FILE:1:31)",
		"state: {store: s3}":                      "state.s3.bucket: is empty, but state.store is s3; give the bucket's name, here or as SF2LOKI_STATE__S3__BUCKET (FILE:1:1)",
		"state: {store: gcs, gcs: {bucket: ' '}}": "state.gcs.bucket: is empty, but state.store is gcs; give the bucket's name, here or as SF2LOKI_STATE__GCS__BUCKET (FILE:1:35)",
	} {
		exactly(t, problems(t, text), want)
	}
	load(t, "coordinate: {type: noop, s3_lease: {key: x}, gcs_lease: {}}\nstate: {s3: {}, gcs: {object_name: y}}")
}

func TestBucketNames(t *testing.T) {
	for bucket, want := range map[string]string{
		"s3://logs/sf2loki":      `"s3://logs/sf2loki" is a URL; give the name alone: "logs"`,
		"gs://logs":              `"gs://logs" is a URL; give the name alone: "logs"`,
		"https://minio:9000/b":   "is a URL; give the bucket's name alone, and the server's address as endpoint_url",
		"logs/sf2loki":           `"logs/sf2loki" has a slash; the bucket would be "logs" and the object's key begins with "sf2loki"`,
		"arn:aws:s3:::logs":      `"arn:aws:s3:::logs" is an ARN; give the bucket's name alone`,
		"my bucket":              `"my bucket" has the character ' '; bucket names have letters, digits, '-', '_' and '.'`,
		"bücket":                 "has the character 'ü'",
		strings.Repeat("b", 223): "has 223 characters; no bucket name is longer than 222",
	} {
		one(t, problems(t, "state: {store: s3, s3: {bucket: '"+bucket+"'}}"), "state.s3.bucket: ", want, "(FILE:1:33)")
		one(t, problems(t, "coordinate: {type: gcs_lease, gcs_lease: {bucket: '"+bucket+"'}}\nstate: {store: none}"), "coordinate.gcs_lease.bucket: ", want, "(FILE:1:51)")
	}
	for _, bucket := range []string{"a", "logs.example.com", "Old_Bucket", "b-1-s3alias"} {
		load(t, "state: {store: s3, s3: {bucket: '"+bucket+"'}}")
	}
}

func TestObjectKeys(t *testing.T) {
	for key, want := range map[string]string{
		"":                        "is empty; give the object a name, or leave the key out for the default",
		"/sf2loki/leader.lease":   `"/sf2loki/leader.lease" begins with a slash; write "sf2loki/leader.lease"`,
		"sf2loki/":                `"sf2loki/" ends with a slash, which names a folder; add the object's name`,
		"a//b":                    `"a//b" has empty, '.' or '..' parts, which clients resolve in different ways; write "a/b"`,
		"a/../b":                  `write "b"`,
		"./b":                     `write "b"`,
		strings.Repeat("k", 1025): "has 1025 bytes; it can have at most ",
		`a\u0001b`:                "holds a control character; remove it",
	} {
		one(t, problems(t, s3(`key: "`+key+`"`)), "coordinate.s3_lease.key: ", want, "(FILE:1:57)")
		one(t, problems(t, gcs(`object_name: "`+key+`"`)), "coordinate.gcs_lease.object_name: ", want)
		one(t, problems(t, `state: {store: s3, s3: {bucket: b, key: "`+key+`"}}`), "state.s3.key: ", want)
		one(t, problems(t, `state: {store: gcs, gcs: {bucket: b, object_name: "`+key+`"}}`), "state.gcs.object_name: ", want)
	}
	// The store probe appends to the lease's key, and 1024 bytes hold for that too.
	load(t, s3("key: "+strings.Repeat("k", 960)))
	one(t, problems(t, s3("key: "+strings.Repeat("k", 961))), "has 961 bytes; it can have at most 960")
	load(t, "state: {store: s3, s3: {bucket: b, key: "+strings.Repeat("k", 1024)+"}}")
}

func TestFilePaths(t *testing.T) {
	for path, want := range map[string]string{"": "is empty; give the file a path", "/m/": `"/m/" names a directory; add the file's name`, "..": "names a directory", "/a/.": "names a directory"} {
		one(t, problems(t, "coordinate: {type: file_lease, file_lease: {path: '"+path+"'}}"), "coordinate.file_lease.path: ", want)
		one(t, problems(t, "state: {file: {path: '"+path+"'}}"), "state.file.path: ", want)
	}
	one(t, problems(t, `state: {file: {path: "a\0b"}}`), "state.file.path: holds a zero byte")
}

func TestEndpoints(t *testing.T) {
	for _, url := range []string{"http://127.0.0.1:9000", "https://minio.example/", "http://[::1]:9000", "HTTPS://h", "https://h/base/path", ""} {
		load(t, s3("endpoint_url: '"+url+"'"))
	}
	for url, want := range map[string]string{
		"minio:9000": "does not begin with http:// or https://; write it as https://host or http://host:port", "minio": "does not begin with http", "ftp://h": "does not begin with http", "//h": "does not begin with http",
		"http://": "has no host; write it as https://host", "http://:9000": "has no host", "http:///x": "has no host", "http://h:x": "is not a URL; write it as", "http://h:0": "has no port between 1 and 65535", "http://h:70000": "has no port between 1 and 65535",
		"http://h/?a=b": "has a query or a fragment", "http://h?": "has a query or a fragment", "http://h#x": "has a query or a fragment", "http://h /": "is not a URL", "http://%zz": "is not a URL",
	} {
		one(t, problems(t, s3("endpoint_url: '"+url+"'")), "coordinate.s3_lease.endpoint_url: ", want, "(FILE:1:66)")
		one(t, problems(t, gcs("endpoint_url: '"+url+"'")), "coordinate.gcs_lease.endpoint_url: ", want)
		one(t, problems(t, "state: {store: s3, s3: {bucket: b, endpoint_url: '"+url+"'}}"), "state.s3.endpoint_url: ", want)
		one(t, problems(t, "state: {store: gcs, gcs: {bucket: b, endpoint_url: '"+url+"'}}"), "state.gcs.endpoint_url: ", want)
	}
}
