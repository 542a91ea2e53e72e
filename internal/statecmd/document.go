package statecmd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/sf2loki/sf2loki-ha/cas"
	"github.com/sf2loki/sf2loki-ha/cas/linkfile"
	"github.com/sf2loki/sf2loki-ha/checkpoint"
	"github.com/sf2loki/sf2loki-ha/coordinator"
	"github.com/sf2loki/sf2loki-ha/coordinator/k8slease"
	"github.com/sf2loki/sf2loki-ha/internal/config"
	"github.com/sf2loki/sf2loki-ha/internal/replica"
)

// attempts bounds the tries of one request to the document.
const attempts = 4

// document is an opened checkpoint document and what guards it.
type document struct {
	store  *checkpoint.Store
	object string
	// path is that of a file, or "". locked: no lease guards it, but the lock of
	// the process that uses it does.
	path   string
	locked bool
	// stranger: not the document of the configuration.
	stranger bool
	// lease is the identity of the configured lease, "" without an election.
	lease  string
	leases []*lease
	// poll is the time between two looks at a lease.
	poll time.Duration

	cfg   *config.Config
	close []io.Closer
}

// Close releases clients and locks.
func (d *document) Close() error {
	var errs []error
	for _, c := range d.close {
		errs = append(errs, c.Close())
	}
	return errors.Join(errs...)
}

// openConfigured opens the document of the configuration and its lease.
func openConfigured(ctx context.Context, cfg *config.Config) (*document, error) {
	reg, closer, err := replica.OpenState(ctx, cfg.State)
	if err != nil {
		return nil, &UsageError{err}
	}
	d := &document{cfg: cfg, lease: cfg.LeaseIdentity(), close: []io.Closer{closer}}
	if reg == nil {
		return nil, errors.Join(&UsageError{errNoDocument}, d.Close())
	}
	d.object = reg.Describe()
	if cfg.State.Store == config.StoreFile {
		d.path, d.locked = cfg.State.File.Path, cfg.Coordinate.Type == config.TypeNoop
	}
	election := cfg.Election("").WithDefaults()
	d.poll = election.PollInterval
	ttl := election.TTL
	if cfg.Coordinate.Type == config.TypeNoop {
		ttl = 0
	}
	d.store = openStore(reg, d.lease, ttl, replica.StateWriteInterval(cfg.State))
	store, requests, closer, err := replica.OpenLease(ctx, cfg.Coordinate)
	if err != nil {
		return nil, errors.Join(&UsageError{err}, closer.Close(), d.Close())
	}
	d.close = append(d.close, closer)
	if store != nil {
		d.leases = []*lease{{name: store.Describe(), identity: d.lease, store: store, requests: requests, ttl: ttl}}
	}
	return d, nil
}

// openPlace opens a document that is named on the command line.
func openPlace(ctx context.Context, cfg *config.Config, p Place, given Access) (*document, error) {
	if own, ok := configured(cfg); ok && same(p, p.access(cfg, given), own, own.access(cfg, Access{})) {
		return openConfigured(ctx, cfg)
	}
	reg, closer, err := p.open(ctx, p.access(cfg, given))
	if err != nil {
		return nil, err
	}
	d := &document{cfg: cfg, object: reg.Describe(), stranger: true, poll: coordinator.DefaultPollInterval, close: []io.Closer{closer}}
	var interval time.Duration
	switch p.Scheme {
	case schemeFile:
		d.path, d.locked = p.Name, true
	case schemeGCS:
		interval = time.Second
	}
	d.store = openStore(reg, "", 0, interval)
	return d, nil
}

func openStore(reg cas.Register, lease string, ttl, interval time.Duration) *checkpoint.Store {
	return checkpoint.Open(reg, checkpoint.WithLease(lease, ttl), checkpoint.WithMaxAttempts(attempts), checkpoint.WithMinWriteInterval(interval))
}

// watchSealer adds the lease that sealed the document to those that are watched,
// if it is another one than the configured.
func (d *document) watchSealer(ctx context.Context, identity string) {
	if identity == "" || identity == d.lease {
		return
	}
	l := &lease{name: identity, identity: identity}
	var closer io.Closer
	if l.store, closer, l.err = openIdentity(ctx, d.cfg, identity); l.err == nil {
		d.close = append(d.close, closer)
	}
	d.leases = append(d.leases, l)
}

// openIdentity opens the lease of another pair by the identity in a fence. The
// request object of another pair is not ours to go by.
func openIdentity(ctx context.Context, cfg *config.Config, identity string) (coordinator.LeaseStore, io.Closer, error) {
	if rest, ok := strings.CutPrefix(identity, "k8s://"); ok {
		namespace, name, _ := strings.Cut(rest, "/")
		s, err := k8slease.Open(ctx, k8slease.Config{Namespace: namespace, Name: name, Kubeconfig: cfg.Coordinate.K8sLease.Kubeconfig})
		if err != nil {
			return nil, nil, err
		}
		return s, s, nil
	}
	if filepath.IsAbs(identity) {
		if _, err := os.Stat(filepath.Dir(identity)); err != nil {
			return nil, nil, fmt.Errorf("its directory is not here: %w", err)
		}
		return coordinator.FromRegister(linkfile.New(identity, linkfile.Options{})), nothing{}, nil
	}
	p, err := ParsePlace(identity)
	if err != nil || p.Scheme == schemeFile {
		return nil, nil, errors.New("nothing that can be opened from here has this name")
	}
	reg, closer, err := p.open(ctx, p.access(cfg, Access{}))
	if err != nil {
		return nil, nil, err
	}
	return coordinator.FromRegister(reg), closer, nil
}

// lock keeps other processes off a file that no lease guards, and tells who uses
// it now. The lock is released with the document.
func (d *document) lock(ctx context.Context, flags Flags) (busy error, blocked bool, err error) {
	if !d.locked {
		return nil, false, nil
	}
	var used *replica.InUseError
	if err := replica.StateInUse(ctx, d.path); errors.As(err, &used) {
		return err, used.Lock == used.Path+".lock", nil
	} else if err != nil {
		return nil, false, err
	}
	if flags.DryRun {
		return nil, false, nil
	}
	held, err := replica.LockState(d.path)
	if errors.As(err, &used) {
		return err, false, nil
	}
	if err != nil {
		return nil, false, err
	}
	d.close = append(d.close, held)
	return nil, false, nil
}

// owner says why a file that is written now could not be read by the work, or "".
func (d *document) owner() string {
	if d.path == "" {
		return ""
	}
	return ownerProblem(d.path, ownerOf(d.path), ownerOf(filepath.Dir(d.path)), os.Geteuid())
}

const noOwner = -1

// ownerOf is the uid that owns a path, or noOwner.
func ownerOf(path string) int {
	info, err := os.Stat(path)
	if err != nil {
		return noOwner
	}
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		return int(st.Uid)
	}
	return noOwner
}

// ownerProblem: a write makes a new file with mode 0600, which belongs to who
// writes it. A directory of root's own, such as /tmp, says nothing.
func ownerProblem(path string, file, dir, self int) string {
	what, uid := "the file", file
	if file == noOwner {
		what, uid = "its directory", dir
		if self != 0 {
			return ""
		}
	}
	if uid == noOwner || uid == self {
		return ""
	}
	return fmt.Sprintf("%s: %s belongs to uid %d and this command runs as uid %d: what it writes has mode 0600, and uid %d could not read it any more; run it as uid %d (docker exec --user, sudo -u), or --force and chown it afterwards", path, what, uid, self, uid, uid)
}

// readable reports why a file that others use must not even be read, as sf2loki
// does: the process that holds it keeps values that are not in the file yet.
func (d *document) readable(ctx context.Context, flags Flags) error {
	if !d.locked || flags.Force {
		return nil
	}
	if err := replica.StateInUse(ctx, d.path); err != nil {
		return fmt.Errorf("%w; --force reads it nevertheless", err)
	}
	return nil
}
