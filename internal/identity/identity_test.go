package identity_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/sf2loki/sf2loki-ha/internal/identity"
)

// machine is a machine with these variables, called host.
func machine(env map[string]string) identity.Seams {
	return identity.Seams{
		Getenv:   func(k string) string { return env[k] },
		Hostname: func() (string, error) { return "host", nil },
		ReadFile: func(string) ([]byte, error) { return nil, errors.New("no such file") },
	}
}

func serve(t *testing.T, h http.HandlerFunc) string {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return s.URL
}

const task = `{"Cluster":"arn:aws:ecs:eu-central-1:123456789012:cluster/pair","TaskARN":"arn:aws:ecs:eu-central-1:123456789012:task/pair/0f6c2c9d8b0e4a7f",
 "Family":"sf2loki","Revision":"7","AvailabilityZone":"eu-central-1b","LaunchType":"FARGATE","Limits":{"CPU":0.25},"Containers":[{"DockerId":"x"}]}`

func TestATaskOfECSIsNamedByItsARN(t *testing.T) {
	url := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/v4/abc/task" {
			t.Errorf("asked for %s", r.URL.Path)
		}
		_, _ = w.Write([]byte(task))
	})
	id := identity.Detect(t.Context(), machine(map[string]string{"ECS_CONTAINER_METADATA_URI_V4": url + "/v4/abc"}))
	if id.Problem != nil || id.Platform != identity.ECS || id.Holder != "0f6c2c9d8b0e4a7f" || id.StopWindow != 30*time.Second {
		t.Errorf("%+v", id)
	}
	for key, want := range map[string]string{
		"task_arn": "arn:aws:ecs:eu-central-1:123456789012:task/pair/0f6c2c9d8b0e4a7f", "zone": "eu-central-1b", "cluster": "pair",
		"task_definition": "sf2loki:7", "launch_type": "FARGATE",
	} {
		if id.Details[key] != want {
			t.Errorf("%s is %q, want %q", key, id.Details[key], want)
		}
	}
}

func cloudRun(url string) identity.Seams {
	s := machine(map[string]string{"K_SERVICE": "sf2loki", "K_REVISION": "sf2loki-00007-abc"})
	s.Hostname = func() (string, error) { return "localhost", nil }
	s.GoogleMetadata = url
	return s
}

func TestTwoInstancesOfCloudRunHaveTwoNamesAlthoughBothAreLocalhost(t *testing.T) {
	holders := map[string]bool{}
	for _, instance := range []string{"00f46b9277aaaaaaaaaaaaaaaaaaaaaaaaaa01", "00f46b9277aaaaaaaaaaaaaaaaaaaaaaaaaa02"} {
		url := serve(t, func(w http.ResponseWriter, r *http.Request) {
			if r.Header.Get("Metadata-Flavor") != "Google" {
				t.Error("asked without the header")
			}
			w.Header().Set("Metadata-Flavor", "Google")
			switch r.URL.Path {
			case "/computeMetadata/v1/instance/id":
				_, _ = w.Write([]byte(instance))
			case "/computeMetadata/v1/instance/region":
				_, _ = w.Write([]byte("projects/1/regions/europe-west3"))
			}
		})
		id := identity.Detect(t.Context(), cloudRun(url))
		if id.Problem != nil || id.Platform != identity.CloudRun || id.StopWindow != 10*time.Second ||
			id.Details["instance"] != instance || id.Details["region"] != "europe-west3" || id.Details["revision"] != "sf2loki-00007-abc" {
			t.Errorf("%+v", id)
		}
		holders[id.Holder] = true
	}
	if len(holders) != 2 || holders["localhost"] {
		t.Errorf("holders %v", holders)
	}
}

func TestAPodIsNamedByItsName(t *testing.T) {
	for name, c := range map[string]struct {
		env  map[string]string
		file string
		pod  string
		ns   string
	}{
		"by its host name":            {map[string]string{"KUBERNETES_SERVICE_HOST": "10.0.0.1"}, "logs\n", "host", "logs"},
		"by the downward API":         {map[string]string{"KUBERNETES_SERVICE_HOST": "10.0.0.1", "POD_NAME": "sf-0", "POD_NAMESPACE": "x", "NODE_NAME": "n"}, "logs", "sf-0", "x"},
		"Knative looks like the rest": {map[string]string{"KUBERNETES_SERVICE_HOST": "10.0.0.1", "K_SERVICE": "a", "K_REVISION": "b"}, "logs", "host", "logs"},
	} {
		t.Run(name, func(t *testing.T) {
			s := machine(c.env)
			s.ReadFile = func(string) ([]byte, error) { return []byte(c.file), nil }
			id := identity.Detect(t.Context(), s)
			if id.Platform != identity.Kubernetes || id.Holder != c.pod || id.Details["pod"] != c.pod || id.Details["namespace"] != c.ns || id.Details["node"] != c.env["NODE_NAME"] {
				t.Errorf("%+v", id)
			}
		})
	}
}

func TestElsewhereTheHostIsTheName(t *testing.T) {
	for name, c := range map[string]struct {
		host string
		err  error
		want string
	}{
		"a host":                 {"box", nil, "box"},
		"no name":                {"", nil, "unknown-host"},
		"no name for a reason":   {"x", errors.New("no"), "unknown-host"},
		"a name with a new line": {"a\nb", nil, "ab"},
		"not to be printed":      {"a\u202eb\u0085\u2028c", nil, "abc"},
		"blank":                  {"\u200b ", nil, "unknown-host"},
		"a very long name":       {strings.Repeat("é", 300), nil, strings.Repeat("é", 128)},
	} {
		t.Run(name, func(t *testing.T) {
			s := machine(nil)
			s.Hostname = func() (string, error) { return c.host, c.err }
			id := identity.Detect(t.Context(), s)
			if id.Platform != "" || id.Holder != c.want || id.StopWindow != 0 || id.Problem != nil || len(id.Details) != 0 {
				t.Errorf("%+v", id)
			}
		})
	}
}

// Whatever a metadata service does, the replica starts, soon and with a name, and
// says why it has no better one.
func TestAMetadataServiceThatFailsCostsAtMostTheBudgetAndTheName(t *testing.T) {
	for name, answer := range map[string]http.HandlerFunc{
		"500":      func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(500) },
		"not JSON": func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("hello")) },
		"empty":    func(http.ResponseWriter, *http.Request) {},
		"an array": func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("[]")) },
		"no ARN":   func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(`{"TaskARN":""}`)) },
		"redirect": func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "http://192.0.2.1/", http.StatusFound)
		},
		"endless": func(w http.ResponseWriter, _ *http.Request) {
			_, _ = w.Write([]byte(strings.Repeat("[", 1<<20)))
		},
		"silence":           func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() },
		"no flavour at all": func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("<html>")) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url := serve(t, answer)
			for _, s := range []identity.Seams{machine(map[string]string{"ECS_CONTAINER_METADATA_URI_V4": url}), cloudRun(url)} {
				begin := time.Now()
				id := identity.Detect(context.Background(), s)
				if took := time.Since(begin); took > 3*identity.Budget {
					t.Errorf("%s took %v", id.Platform, took)
				}
				if id.Problem == nil || id.Holder == "" || id.Holder == "localhost" || id.StopWindow == 0 || strings.Contains(id.Problem.Error(), url) {
					t.Errorf("%+v", id)
				}
			}
		})
	}
}

func TestAnAddressThatIsNoneIsAProblemAndNothingElse(t *testing.T) {
	for _, address := range []string{"x", "file:///etc/passwd", "https://", "http://\x00", "http://127.0.0.1:1"} {
		id := identity.Detect(t.Context(), machine(map[string]string{"ECS_CONTAINER_METADATA_URI_V4": address}))
		if id.Problem == nil || id.Holder != "host" || id.Platform != identity.ECS {
			t.Errorf("%q: %+v", address, id)
		}
	}
}
