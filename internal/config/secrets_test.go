package config

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// sekrit stands for a credential in every test below.
const sekrit = "s3kr1t-t0ken"

// Wherever a credential was put by mistake, the error does not repeat it.
func TestCredentialsNeverAppearInErrors(t *testing.T) {
	urls := []string{
		"https://user:" + sekrit + "@minio:9000", "https://" + sekrit + "@minio", "http://user:" + sekrit + "@", "https://user:" + sekrit + "/x@h", "https://user:" + sekrit + "%zz@h",
		"user:" + sekrit + "@minio:9000", "https://u:" + sekrit + "@h:99999", "https://u:" + sekrit + "@h/?q=1", "https://u:" + sekrit + "@h@i",
	}
	pems := []string{`{"type": "service_account", "private_key": "` + sekrit + `"}`, "-----BEGIN PRIVATE KEY-----" + sekrit, "-----BEGIN\n" + sekrit}
	texts := []string{"coordinate.type", "coordinate.s3_lease.bucket", "coordinate.s3_lease.key", "coordinate.s3_lease.endpoint_url", "coordinate.gcs_lease.endpoint_url",
		"coordinate.gcs_lease.service_file", "coordinate.s3_lease.ttl", "state.store", "state.s3.bucket", "state.s3.endpoint_url", "state.gcs.endpoint_url", "state.gcs.service_file", "state.gcs.bucket",
		"state.file.shared", "service.health_addr", "service.log_level", "service.log_format", "service.shutdown_grace", "workload.command", "workload.stop_grace", "state", "coordinate.s3_lease", "service.nope"}
	bases := []string{
		"coordinate: {type: s3_lease, s3_lease: {bucket: b}}\nstate: {store: s3, s3: {bucket: b}}\n",
		"coordinate: {type: gcs_lease, gcs_lease: {bucket: b}}\nstate: {store: gcs, gcs: {bucket: b}}\n",
	}
	refused := 0
	for _, base := range bases {
		for _, key := range texts {
			for _, secret := range append(append([]string(nil), urls...), pems...) {
				_, err := Load(write(t, base), []string{envName(key) + "=" + secret})
				if err == nil {
					continue
				}
				refused++
				if strings.Contains(fmt.Sprintf("%v %+v", err, err), sekrit) {
					t.Errorf("%s=%s: %v", key, secret, err)
				}
			}
		}
	}
	if refused < 300 {
		t.Errorf("only %d cases were refused: the test has lost its bite", refused)
	}
}

func TestEndpointWithUserinfoNamesTheProperPlace(t *testing.T) {
	one(t, problems(t, s3("endpoint_url: 'https://user:"+sekrit+"@minio:9000'")),
		"coordinate.s3_lease.endpoint_url: has credentials in front of the @; remove them from the URL and give them as AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or as a role of the task (FILE:1:66)")
	one(t, problems(t, gcs("endpoint_url: 'https://user:"+sekrit+"@gcs'")),
		"coordinate.gcs_lease.endpoint_url: has credentials in front of the @; remove them from the URL and give them as service_file, or as application default credentials (FILE:1:68)")
}

func TestCredentialsInTheFileNeverAppearInErrors(t *testing.T) {
	for _, text := range []string{
		s3("endpoint_url: 'https://user:" + sekrit + "@minio:9000'"),
		gcs("service_file: '{\"private_key\": \"" + sekrit + "\"}'"),
		gcs("service_file: {private_key: " + sekrit + "}"),
		"coordinate: {type: noop, s3_lease: {bucket: [" + sekrit + "]}}",
		"coordinate: https://u:" + sekrit + "@h",
		"https://u:" + sekrit + "@h",
		"? https://u:" + sekrit + "@h\n: x",
		"state: {\"https://u:" + sekrit + "@h\": x}",
		"workload: {command: [a, b, {token: " + sekrit + "}]}",
		"workload: {command: run --token=" + sekrit + "}",
		"workload: {command: [a, \"" + sekrit + "\\0\"]}",
		"salesforce: {client_secret: " + sekrit + "}\nnope: 1",
		"service: {telemetry: {basic_auth_token: " + sekrit + "}, nope: 1}",
		"sink: {loki: {url: 'https://u:" + sekrit + "@h'}}\ncoordinate: {type: x}",
		"sink: {auth_token: " + sekrit + "\n",
		"sink: *" + sekrit + "@\n",
		s3("bucket2: x, key: ${URL}"), s3("endpoint_url: ${URL}"),
	} {
		_, err := Load(write(t, text), []string{"URL=https://user:" + sekrit + "@h/"})
		if err == nil {
			t.Errorf("accepted: %s", text)
		} else if strings.Contains(fmt.Sprintf("%v %+v", err, err), sekrit) {
			t.Errorf("%s:\n%v", text, err)
		}
	}
}

func TestServiceFileIsNeverOpened(t *testing.T) {
	path := filepath.Join(t.TempDir(), "key.json")
	if err := os.WriteFile(path, []byte(sekrit), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, p := range []string{path, "/does/not/exist.json"} {
		if c := load(t, gcs("service_file: "+p)); c.Coordinate.GCSLease.ServiceFile != p {
			t.Errorf("service file %q", c.Coordinate.GCSLease.ServiceFile)
		}
	}
	one(t, problems(t, gcs(`service_file: '{"type": "service_account"}'`)), "coordinate.gcs_lease.service_file: holds the content of a key and not the path of a file; write the key to a file that only this user can read, and give its path")
}
