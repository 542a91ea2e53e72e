package e2e

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"
)

// get asks a health server.
func get(t *testing.T, addr, path string) (int, string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+addr+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, strings.TrimSpace(string(body))
}

// invoke runs the binary to its end.
func invoke(t *testing.T, env []string, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, binary(t), args...)
	cmd.Env = append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir()}, env...)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	var exit *exec.ExitError
	switch {
	case errors.As(err, &exit):
		code = exit.ExitCode()
	case err != nil:
		t.Fatal(err)
	}
	return code, out.String(), errs.String()
}

func TestVersionPrintsVersionCommitAndGoVersion(t *testing.T) {
	code, out, _ := invoke(t, nil, "--version")
	if code != 0 || !regexp.MustCompile(`^sf2loki-ha \S+ \(commit \S+, go1\.\d+\S*\)\n$`).MatchString(out) {
		t.Errorf("code %d, %q", code, out)
	}
}

func TestBadInputEndsWithTwoAndSaysWhatToDo(t *testing.T) {
	good := "coordinate: {type: s3_lease, s3_lease: {bucket: b-1, endpoint_url: \"http://127.0.0.1:9\"}}\nstate: {store: none}\nservice: {health_addr: \"127.0.0.1:0\"}\n"
	for name, c := range map[string]struct {
		config string
		args   []string
		want   []string
	}{
		"misspelt section": {"coordiante: {type: noop}\n", nil, []string{"coordiante", "unknown", "coordinate"}},
		"misspelt key":     {strings.Replace(good, "bucket", "buket", 1), nil, []string{"coordinate.s3_lease.buket", "bucket"}},
		"wrong type":       {"service: {health_addr: [1]}\n", nil, []string{"service.health_addr"}},
		"YAML error":       {"service: {\n", nil, []string{"config.yaml:"}},
		"empty bucket":     {"coordinate: {type: s3_lease}\nstate: {store: none}\n", nil, []string{"coordinate.s3_lease.bucket"}},
		"renew too slow":   {strings.Replace(good, "bucket: b-1", "bucket: b-1, ttl: 6s, renew_interval: 3s", 1), nil, []string{"coordinate.s3_lease.renew_interval", "6s", "less than half"}},
		"state not chosen": {strings.Replace(good, "state: {store: none}\n", "", 1), nil, []string{"state.store"}},
		"one object for two": {"coordinate: {type: s3_lease, s3_lease: {bucket: b-1, key: x}}\nstate: {store: s3, s3: {bucket: b-1, key: x}}\n", nil,
			[]string{"coordinate.s3_lease.key", "state.s3"}},
		"command not found":  {good, []string{"--", "no-such-command-anywhere"}, []string{"no-such-command-anywhere"}},
		"command without --": {good, []string{"sleep", "1"}, []string{"--"}},
		"unknown flag":       {good, []string{"--colour"}, []string{"--colour"}},
	} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "config.yaml")
			if err := os.WriteFile(file, []byte(c.config), 0o600); err != nil {
				t.Fatal(err)
			}
			code, out, errs := invoke(t, nil, append([]string{"run", "--config", file}, c.args...)...)
			if code != 2 || out != "" {
				t.Errorf("code %d, stdout %q, stderr %q; want 2 and nothing on stdout", code, out, errs)
			}
			for _, want := range c.want {
				if !strings.Contains(errs, want) {
					t.Errorf("stderr does not contain %q:\n%s", want, errs)
				}
			}
			if strings.Contains(errs, "goroutine ") {
				t.Errorf("a stack trace:\n%s", errs)
			}
		})
	}
}

func TestAMissingFileEndsWithTwo(t *testing.T) {
	code, _, errs := invoke(t, nil, "run", "--config", "/does/not/exist.yaml")
	if code != 2 || !strings.Contains(errs, "/does/not/exist.yaml") {
		t.Errorf("code %d, %q", code, errs)
	}
}

// A store that cannot be used is no reason to exit: the replica waits, says the
// fix in one line, and recovers alone.
func TestAStoreThatCannotBeUsedKeepsTheReplicaStandbyWithOneLine(t *testing.T) {
	b := s3Backend(t)
	for name, c := range map[string]struct {
		change func(*backend)
		want   []string
	}{
		"bucket missing": {func(b *backend) { b.config = strings.ReplaceAll(b.config, "bucket: ", "bucket: not-") }, []string{"no_bucket"}},
		"access denied":  {func(b *backend) { b.env = append([]string{}, b.env[0], "AWS_SECRET_ACCESS_KEY=wrong") }, []string{"denied"}},
		"endpoint down": {func(b *backend) {
			b.config = regexp.MustCompile(`http://127\.0\.0\.1:\d+`).ReplaceAllString(b.config, "http://127.0.0.1:9")
		}, []string{"ambiguous"}},
	} {
		t.Run(name, func(t *testing.T) {
			bad := b
			c.change(&bad)
			cl := newCluster(t, bad)
			r := start(t, cl, "A")
			if !r.AwaitReady("not ready", 5*time.Second) {
				t.Fatal("does not say not ready")
			}
			time.Sleep(4 * time.Second)
			if r.Wait(0) {
				t.Fatal("the replica ended")
			}
			log, err := os.ReadFile(r.LogFile)
			if err != nil {
				t.Fatal(err)
			}
			lines := 0
			for _, line := range strings.Split(string(log), "\n") {
				if strings.Contains(line, `"level":"warning"`) || strings.Contains(line, `"level":"error"`) {
					lines++
					for _, want := range c.want {
						if !strings.Contains(line, want) {
							t.Errorf("the line does not say %q: %s", want, line)
						}
					}
				}
			}
			if lines != 1 {
				t.Errorf("%d lines about the store, want exactly one:\n%s", lines, log)
			}
		})
	}
}

// A log pipe whose reader has gone, as behind "2>&1 | head -1", is lost output and
// no reason to die: the replica still leads and its stop is still a release.
func TestALogThatNobodyReadsEndsNobody(t *testing.T) {
	reader, writer, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer writer.Close()
	reader.Close()
	addr := freeAddr(t)
	config := filepath.Join(t.TempDir(), "config.yaml")
	text := "coordinate: {type: noop}\nstate: {store: none}\nservice: {health_addr: \"" + addr + "\"}\n"
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(binary(t), "run", "--config", config, "--", "sleep", "60")
	cmd.Stderr = writer
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = cmd.Process.Kill() }()
	ready := func() bool {
		resp, err := http.Get("http://" + addr + "/readyz")
		if err != nil {
			return false
		}
		defer resp.Body.Close()
		return resp.StatusCode == http.StatusOK
	}
	end := time.Now().Add(10 * time.Second)
	for !ready() && time.Now().Before(end) {
		time.Sleep(20 * time.Millisecond)
	}
	if !ready() {
		t.Error("not ready within 10 s")
	}
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Error(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("the replica ended with %v, want 0", err)
	}
}

func freeAddr(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}
