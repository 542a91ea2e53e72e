package e2e

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/sf2loki/sf2loki-ha/cas"
	"github.com/sf2loki/sf2loki-ha/cas/gcs"
	"github.com/sf2loki/sf2loki-ha/cas/linkfile"
	"github.com/sf2loki/sf2loki-ha/cas/s3"
	"github.com/sf2loki/sf2loki-ha/coordinator"
	"github.com/sf2loki/sf2loki-ha/e2e/cluster"
	"github.com/sf2loki/sf2loki-ha/internal/testservers"
)

// binary is the sf2loki-ha that "make build" made.
func binary(t *testing.T) string {
	t.Helper()
	path, err := filepath.Abs("../bin/sf2loki-ha")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(path); err != nil {
		t.Fatalf("%v; build it: make build", err)
	}
	return path
}

// backend is one kind of store under test.
type backend struct {
	name   string
	config string // YAML
	env    []string
	budget coordinator.Budget
	lease  cas.Register
	store  coordinator.LeaseStore // instead of lease, where it is no register
	asking cas.Register           // the request object
}

// timing is short, and as long as the store allows.
func timing(ttl, renew time.Duration) string {
	return fmt.Sprintf("ttl: %v, renew_interval: %v, poll_interval: 1s", ttl, renew)
}

func budget(ttl, renew time.Duration) coordinator.Budget {
	return coordinator.Config{TTL: ttl, RenewInterval: renew, PollInterval: time.Second}.Budget()
}

// s3Backend starts versitygw.
func s3Backend(t *testing.T) backend {
	srv := testservers.StartS3(t)
	env := []string{"AWS_ACCESS_KEY_ID=" + srv.AccessKey, "AWS_SECRET_ACCESS_KEY=" + srv.SecretKey}
	t.Setenv("AWS_ACCESS_KEY_ID", srv.AccessKey)
	t.Setenv("AWS_SECRET_ACCESS_KEY", srv.SecretKey)
	b, err := s3.Open(t.Context(), s3.Config{Bucket: srv.Bucket, Region: srv.Region, EndpointURL: srv.Endpoint})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = b.Close() })
	at := fmt.Sprintf("bucket: %s, region: %s, endpoint_url: %q", srv.Bucket, srv.Region, srv.Endpoint)
	return backend{
		name: "versitygw", env: env, asking: b.Register("sf2loki/leader.lease.request"), budget: budget(6*time.Second, 2*time.Second), lease: b.Register("sf2loki/leader.lease"),
		config: fmt.Sprintf("coordinate: {type: s3_lease, s3_lease: {%s, %s}}\nstate: {store: s3, s3: {%s}}\n", at, timing(6*time.Second, 2*time.Second), at),
	}
}

// gcsBackend starts fake-gcs-server.
func gcsBackend(t *testing.T) backend {
	srv := testservers.StartGCS(t)
	b, err := gcs.Open(t.Context(), gcs.Config{Bucket: srv.Bucket, EndpointURL: srv.Endpoint})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = b.Close() })
	at := fmt.Sprintf("bucket: %s, endpoint_url: %q", srv.Bucket, srv.Endpoint)
	return backend{
		name: "fake-gcs-server", asking: b.Register("sf2loki/leader.lease.request"), budget: budget(8*time.Second, 2*time.Second), lease: b.Register("sf2loki/leader.lease"),
		config: fmt.Sprintf("coordinate: {type: gcs_lease, gcs_lease: {%s, %s}}\nstate: {store: gcs, gcs: {%s}}\n", at, timing(8*time.Second, 2*time.Second), at),
	}
}

// fileBackend is a directory.
func fileBackend(t *testing.T) backend {
	dir := t.TempDir()
	return backend{
		name: "file", asking: linkfile.New(filepath.Join(dir, "leader.lease.request"), linkfile.Options{}), budget: budget(6*time.Second, 2*time.Second), lease: linkfile.New(filepath.Join(dir, "leader.lease"), linkfile.Options{}),
		config: fmt.Sprintf("coordinate: {type: file_lease, file_lease: {path: %s/leader.lease, %s}}\nstate: {store: file, file: {path: %s/state.json, shared: true}}\n",
			dir, timing(6*time.Second, 2*time.Second), dir),
	}
}

// record reads the lease.
func (b backend) record(t *testing.T) coordinator.Record {
	t.Helper()
	store := b.store
	if store == nil {
		store = coordinator.FromRegister(b.lease)
	}
	l, err := store.Read(context.WithoutCancel(t.Context()))
	if err != nil {
		t.Fatal(err)
	}
	if l.Corrupt != nil {
		t.Fatal(l.Corrupt)
	}
	return l.Record
}

// pair is two replicas, one of which leads.
type pair struct {
	*cluster.Cluster
	leader, standby *cluster.Replica
	epoch           int64
}

// newCluster returns a cluster without replicas on that store.
func newCluster(t *testing.T, b backend, work ...string) *cluster.Cluster {
	t.Helper()
	dir := t.TempDir()
	config := filepath.Join(dir, "config.yaml")
	if err := os.WriteFile(config, []byte(b.config), 0o600); err != nil {
		t.Fatal(err)
	}
	c := cluster.New(cluster.Config{Binary: binary(t), Dir: dir, ConfigFile: config, Env: b.env, Work: work})
	t.Cleanup(func() {
		c.Close()
		if t.Failed() {
			showLogs(t, dir)
		}
	})
	return c
}

// newPair starts two replicas and waits until one leads.
func newPair(t *testing.T, b backend, work ...string) *pair {
	t.Helper()
	p := &pair{Cluster: newCluster(t, b, work...)}
	p.leader, p.standby = start(t, p.Cluster, "A"), start(t, p.Cluster, "B")
	first, ok := p.History().Await(30*time.Second, func(cluster.Act) bool { return true })
	if !ok {
		t.Fatal("no leader within 30 s")
	}
	if first.Replica == "B" {
		p.leader, p.standby = p.standby, p.leader
	}
	p.epoch = first.Epoch
	if !p.leader.AwaitReady("ready", 5*time.Second) || !p.standby.AwaitReady("standby", 5*time.Second) {
		t.Fatal("the pair does not report one ready leader and one standby")
	}
	return p
}

func start(t *testing.T, c *cluster.Cluster, name string) *cluster.Replica {
	t.Helper()
	r, err := c.Start(name)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// successor waits for the first act of a later term.
func (p *pair) successor(t *testing.T, within time.Duration) cluster.Act {
	t.Helper()
	next, ok := p.History().Await(within, func(a cluster.Act) bool { return a.Epoch > p.epoch })
	if !ok {
		t.Fatalf("nobody took over within %v", within)
	}
	return next
}

// sound fails if two canaries acted at once or a record is missing.
func (p *pair) sound(t *testing.T) {
	t.Helper()
	acts := p.History().Acts()
	if overlap := cluster.Overlap(acts); overlap > 0 {
		t.Errorf("two canaries acted at once for %v", overlap)
	}
	if missing := cluster.Missing(acts); len(missing) > 0 {
		t.Errorf("%d records are missing, the first is %d", len(missing), missing[0])
	}
}

func showLogs(t *testing.T, dir string) {
	logs, _ := filepath.Glob(filepath.Join(dir, "*.log"))
	for _, path := range logs {
		data, _ := os.ReadFile(path)
		t.Logf("%s:\n%s", filepath.Base(path), data)
	}
}
