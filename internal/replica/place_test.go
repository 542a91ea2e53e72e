package replica

import (
	"bytes"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// onECS makes this process look like a task of ECS whose metadata service gives
// that answer.
func onECS(t *testing.T, answer string) {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(answer)) }))
	t.Cleanup(s.Close)
	t.Setenv("ECS_CONTAINER_METADATA_URI_V4", s.URL)
}

const taskOfECS = `{"TaskARN":"arn:aws:ecs:eu-central-1:1:task/pair/0f6c2c9d","AvailabilityZone":"eu-central-1b","LaunchType":"FARGATE"}`

func TestThePlatformNamesTheReplicaAndItsStopWindow(t *testing.T) {
	for name, c := range map[string]struct {
		answer, extra string
		holder        string
		window        time.Duration
		says          string
	}{
		"a task":                     {taskOfECS, "", "0f6c2c9d", 30 * time.Second, "stop_window_assumed"},
		"a name that was configured": {taskOfECS, "coordinate.s3_lease.holder_id", "mine", 30 * time.Second, ""},
		"a window that was":          {taskOfECS, "service.platform_stop_window", "0f6c2c9d", 2 * time.Minute, ""},
		"no answer to speak of":      {"?", "", "", 30 * time.Second, "platform_unclear"},
	} {
		t.Run(name, func(t *testing.T) {
			onECS(t, c.answer)
			opts := options(t, strings.ReplaceAll(onS3, "ADDR", "127.0.0.1:0"))
			switch c.extra {
			case "coordinate.s3_lease.holder_id":
				opts.Config.Coordinate.S3Lease.HolderID = "mine"
			case "service.platform_stop_window":
				opts.Config.Service.PlatformStopWindow = 2 * time.Minute
			}
			p := findPlace(t.Context(), opts.Config)
			if c.holder != "" && p.holder != c.holder || p.holder == "" || p.window != c.window || p.facts["platform"] != "ecs" {
				t.Errorf("%+v", p)
			}
			var said bytes.Buffer
			p.log(slog.New(slog.NewTextHandler(&said, nil)), opts.Config)
			if !strings.Contains(said.String(), c.says) || c.says == "" && strings.Contains(said.String(), "WARN") && c.window > time.Minute {
				t.Errorf("says %s", said.String())
			}
		})
	}
}

func TestElsewhereNothingIsAssumed(t *testing.T) {
	t.Setenv("ECS_CONTAINER_METADATA_URI_V4", "")
	t.Setenv("K_SERVICE", "")
	t.Setenv("KUBERNETES_SERVICE_HOST", "")
	p := findPlace(t.Context(), options(t, strings.ReplaceAll(onS3, "ADDR", "127.0.0.1:0")).Config)
	if p.platform != "" || p.window != 0 || p.facts != nil || p.holder == "" {
		t.Errorf("%+v", p)
	}
}
