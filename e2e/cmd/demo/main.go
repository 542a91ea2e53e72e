// Command demo shows the main job on one machine: two replicas of
// "sf2loki-ha run -- sf2loki-ha canary" share one in-memory S3 bucket; the
// leader is killed, then stopped, several times, and the time until the other
// one works is measured from what the canaries say they did.
//
// The last two lines are figures and nothing else. The exit status is 1 if a
// bound was exceeded, two canaries acted at once, or a record is missing.
package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/johannesboyne/gofakes3"
	"github.com/johannesboyne/gofakes3/backend/s3mem"

	"github.com/sf2loki/sf2loki-ha/coordinator"
	"github.com/sf2loki/sf2loki-ha/e2e/cluster"
)

const (
	bucket = "demo"
	ttl    = 6 * time.Second
	renew  = 2 * time.Second
	poll   = time.Second
)

func main() {
	binary := flag.String("binary", "bin/sf2loki-ha", "the sf2loki-ha to run")
	rounds := flag.Int("rounds", 3, "how often the leader is killed, and how often it is stopped")
	logs := flag.String("logs", "", "directory for the replicas' logs (default: a temporary one, removed if all went well)")
	flag.Parse()

	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer cancel()
	if *rounds < 1 {
		fmt.Fprintln(os.Stderr, "demo: -rounds must be at least 1")
		os.Exit(2)
	}
	if err := run(ctx, *binary, *rounds, *logs); err != nil {
		fmt.Fprintln(os.Stderr, "demo:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, binary string, rounds int, logs string) error {
	binary, err := filepath.Abs(binary)
	if err != nil {
		return fmt.Errorf("find the binary: %w", err)
	}
	keep := logs != ""
	if !keep {
		if logs, err = os.MkdirTemp("", "sf2loki-ha-demo-"); err != nil {
			return fmt.Errorf("make a directory for logs: %w", err)
		}
	} else if err := os.MkdirAll(logs, 0o755); err != nil {
		return fmt.Errorf("make a directory for logs: %w", err)
	}

	show := newTimeline(os.Stdout)
	endpoint, stop, err := serveS3()
	if err != nil {
		return err
	}
	defer stop()
	show.say("s3", "in-memory S3 server on %s, bucket %q", endpoint, bucket)

	config := filepath.Join(logs, "config.yaml")
	if err := os.WriteFile(config, []byte(configFor(endpoint)), 0o600); err != nil {
		return fmt.Errorf("write the configuration: %w", err)
	}
	c := cluster.New(cluster.Config{
		Binary: binary, Dir: logs, ConfigFile: config,
		Env: []string{"AWS_ACCESS_KEY_ID=demo", "AWS_SECRET_ACCESS_KEY=demo-secret"},
	})
	defer c.Close()

	d := &demo{cluster: c, show: show, budget: coordinator.Config{TTL: ttl, RenewInterval: renew, PollInterval: poll}.Budget()}
	show.say("", "each canary stamps its records: overlap is time in which two of them acted; after a crash the last second is written twice, never lost")
	if err := d.play(ctx, rounds); err != nil {
		if errors.Is(err, errInterrupted) && !keep {
			c.Close()
			os.RemoveAll(logs)
			return err
		}
		return fmt.Errorf("%w; the replicas' logs are in %s", err, logs)
	}
	c.Close()
	verdict := d.figures()
	if verdict != nil {
		return fmt.Errorf("%w; the replicas' logs are in %s", verdict, logs)
	}
	if !keep {
		os.RemoveAll(logs)
	}
	return nil
}

// serveS3 starts the S3 server of this process on a free loopback port.
func serveS3() (endpoint string, stop func(), err error) {
	backend := s3mem.New()
	if err := backend.CreateBucket(bucket); err != nil {
		return "", nil, fmt.Errorf("create the bucket: %w", err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", nil, fmt.Errorf("listen for S3: %w", err)
	}
	server := &http.Server{Handler: gofakes3.New(backend, gofakes3.WithLogger(gofakes3.DiscardLog())).Server(), ReadHeaderTimeout: 5 * time.Second}
	go func() { _ = server.Serve(l) }()
	return "http://" + l.Addr().String(), func() { _ = server.Close() }, nil
}

func configFor(endpoint string) string {
	var b bytes.Buffer
	fmt.Fprintf(&b, "coordinate:\n  type: s3_lease\n  s3_lease: {bucket: %s, region: us-east-1, endpoint_url: %q, ttl: %v, renew_interval: %v, poll_interval: %v}\n",
		bucket, endpoint, ttl, renew, poll)
	fmt.Fprintf(&b, "state:\n  store: s3\n  s3: {bucket: %s, region: us-east-1, endpoint_url: %q}\n", bucket, endpoint)
	return b.String()
}
