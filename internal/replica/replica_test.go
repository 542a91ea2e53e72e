package replica

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sf2loki/sf2loki-ha/internal/config"
)

// options is a replica on an S3 endpoint where nobody listens.
func options(t *testing.T, yaml string, command ...string) Options {
	t.Helper()
	t.Setenv("AWS_ACCESS_KEY_ID", "a")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "b")
	file := filepath.Join(t.TempDir(), "config.yaml")
	if err := os.WriteFile(file, []byte(yaml), 0o600); err != nil {
		t.Fatal(err)
	}
	cfg, err := config.Load(file, nil)
	if err != nil {
		t.Fatal(err)
	}
	return Options{Config: cfg, ConfigFile: file, Command: command, Version: "test", Log: slog.New(slog.NewTextHandler(io.Discard, nil))}
}

const onS3 = `
coordinate: {type: s3_lease, s3_lease: {bucket: b-1, region: us-east-1, endpoint_url: "http://127.0.0.1:1"}}
state: {store: s3, s3: {bucket: b-1, region: us-east-1, endpoint_url: "http://127.0.0.1:1"}}
service: {health_addr: "ADDR"}
`

// counted notices its Close.
type counted struct{ closed int }

func (c *counted) Close() error { c.closed++; return nil }

func TestClientsAreClosedOnEveryWayOut(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()

	t.Run("after a requested stop", func(t *testing.T) {
		r, err := New(t.Context(), options(t, strings.ReplaceAll(onS3, "ADDR", "127.0.0.1:0")))
		if err != nil {
			t.Fatal(err)
		}
		if len(r.clients.open) != 2 {
			t.Fatalf("%d clients, want one for the lease and one for the document", len(r.clients.open))
		}
		c := &counted{}
		r.clients.open = append(r.clients.open, c)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := r.Run(ctx); err != nil {
			t.Fatal(err)
		}
		if c.closed != 1 || len(r.clients.open) != 0 {
			t.Errorf("closed %d times, %d left open", c.closed, len(r.clients.open))
		}
	})
	t.Run("after an error at the start", func(t *testing.T) {
		r, err := New(t.Context(), options(t, strings.ReplaceAll(onS3, "ADDR", taken.Addr().String())))
		if err != nil {
			t.Fatal(err)
		}
		c := &counted{}
		r.clients.open = append(r.clients.open, c)
		var setup *SetupError
		if err := r.Run(t.Context()); !errors.As(err, &setup) || !strings.Contains(err.Error(), taken.Addr().String()) {
			t.Errorf("%v; want a setup error that names the address", err)
		}
		if c.closed != 1 || len(r.clients.open) != 0 {
			t.Errorf("closed %d times, %d left open", c.closed, len(r.clients.open))
		}
	})
}

func TestACommandThatDoesNotExistIsFoundBeforeCandidacy(t *testing.T) {
	_, err := New(t.Context(), options(t, strings.ReplaceAll(onS3, "ADDR", "127.0.0.1:0"), "no-such-command-anywhere"))
	var setup *SetupError
	if !errors.As(err, &setup) || !strings.Contains(err.Error(), "no-such-command-anywhere") {
		t.Errorf("%v", err)
	}
}

// Cloud SDKs stay behind their packages, test servers out of the binary.
func TestImportsKeepTheirPlaces(t *testing.T) {
	for dir, banned := range map[string][]string{
		"../../coordinator": {"gopkg.in/yaml", "go.yaml.in", "spf13/cobra", "prometheus", "pulumi", "aws-sdk-go", "cloud.google.com"},
		"../../checkpoint":  {"go.yaml.in", "spf13/cobra", "prometheus", "aws-sdk-go", "cloud.google.com", "sf2loki-ha/coordinator\""},
		"../../cmd":         {"gofakes3", "aws-sdk-go", "cloud.google.com"},
		"../../internal":    {"\"github.com/johannesboyne", "\"github.com/aws/aws-sdk-go", "\"cloud.google.com"},
	} {
		err := filepath.WalkDir(dir, func(path string, _ os.DirEntry, err error) error {
			if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			data, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			for _, line := range strings.Split(string(data), "\n") {
				for _, b := range banned {
					if strings.HasPrefix(strings.TrimSpace(line), "\"") && strings.Contains(line, b) {
						t.Errorf("%s imports %s", path, strings.TrimSpace(line))
					}
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}
