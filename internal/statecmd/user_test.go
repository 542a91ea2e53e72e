package statecmd

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/sf2loki/sf2loki-ha/cas"
	"github.com/sf2loki/sf2loki-ha/cas/linkfile"
	"github.com/sf2loki/sf2loki-ha/coordinator"
	"github.com/sf2loki/sf2loki-ha/internal/config"
)

// user runs verbs on one configuration.
type user struct {
	cfg   *config.Config
	path  string // of the checkpoint file
	lease string // of the lease file
}

// alone has a checkpoint file and no election.
func alone(t *testing.T) user {
	path := filepath.Join(t.TempDir(), "state.json")
	return user{cfg: load(t, fmt.Sprintf("state: {file: {path: %q}}\n", path)), path: path}
}

// paired has a checkpoint file and a file lease.
func paired(t *testing.T) user {
	dir := t.TempDir()
	u := user{path: filepath.Join(dir, "state.json"), lease: filepath.Join(dir, "leader.lease")}
	u.cfg = load(t, fmt.Sprintf("coordinate: {type: file_lease, file_lease: {path: %q, ttl: 3s, renew_interval: 1s, poll_interval: 100ms}}\nstate: {file: {path: %q}}\n", u.lease, u.path))
	return u
}

// do runs one verb and returns what it printed.
func (u user) do(t *testing.T, flags Flags, asJSON bool, verb func(context.Context, *Command) error) (out, errs string, err error) {
	t.Helper()
	var o, e bytes.Buffer
	c := &Command{Config: u.cfg, Flags: flags, JSON: asJSON, Out: &o, Err: &e}
	err = verb(t.Context(), c)
	return o.String(), e.String(), err
}

// must is do for a verb that succeeds.
func (u user) must(t *testing.T, verb func(context.Context, *Command) error) string {
	t.Helper()
	out, errs, err := u.do(t, Flags{}, false, verb)
	if err != nil {
		t.Fatalf("%v\n%s", err, errs)
	}
	return out
}

func (u user) write(t *testing.T, text string) {
	t.Helper()
	if err := os.WriteFile(u.path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func (u user) content(t *testing.T) string {
	t.Helper()
	data, err := os.ReadFile(u.path)
	if errors.Is(err, os.ErrNotExist) {
		return ""
	}
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// holds writes a lease record.
func (u user) holds(t *testing.T, state coordinator.State, epoch int64) {
	t.Helper()
	r := coordinator.Record{
		Holder: "A", Epoch: epoch, Incarnation: "i", Term: "t", WriteID: fmt.Sprint(time.Now().UnixNano()), TTL: 3 * time.Second, State: state, Version: 1,
		RenewedAt: time.Now(), ExpiresAt: time.Now().Add(3 * time.Second), Lease: u.lease,
	}
	data, err := r.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	reg := linkfile.New(u.lease, linkfile.Options{})
	v, err := reg.Load(t.Context())
	if errors.Is(err, cas.NotFound) {
		_, err = reg.Create(t.Context(), data)
	} else if err == nil {
		_, err = reg.Replace(t.Context(), data, v.Version)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func set(key, value string) func(context.Context, *Command) error {
	return func(ctx context.Context, c *Command) error { return c.Set(ctx, key, value) }
}
func del(key string) func(context.Context, *Command) error {
	return func(ctx context.Context, c *Command) error { return c.Delete(ctx, key) }
}
func show(key string) func(context.Context, *Command) error {
	return func(ctx context.Context, c *Command) error { return c.Show(ctx, key) }
}
func export(ctx context.Context, c *Command) error { return c.Export(ctx) }
func adopt(ctx context.Context, c *Command) error  { return c.Adopt(ctx) }
func imported(text string, replace, ifEmpty bool) func(context.Context, *Command) error {
	return func(ctx context.Context, c *Command) error {
		return c.Import(ctx, "in.json", strings.NewReader(text), replace, ifEmpty)
	}
}
func repair(epoch int64) func(context.Context, *Command) error {
	return func(ctx context.Context, c *Command) error { return c.RepairFence(ctx, epoch) }
}
func copied(t *testing.T, from, to string, replace bool) func(context.Context, *Command) error {
	t.Helper()
	source, err := ParsePlace(from)
	if err != nil {
		t.Fatal(err)
	}
	target, err := ParsePlace(to)
	if err != nil {
		t.Fatal(err)
	}
	return func(ctx context.Context, c *Command) error {
		return c.Copy(ctx, source, target, Access{}, Access{}, replace)
	}
}
