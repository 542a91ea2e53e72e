package replica

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/sf2loki/sf2loki-ha/checkpoint"
	"github.com/sf2loki/sf2loki-ha/coordinator"
	"github.com/sf2loki/sf2loki-ha/internal/config"
	"github.com/sf2loki/sf2loki-ha/internal/probe"
	"github.com/sf2loki/sf2loki-ha/internal/server"
	"github.com/sf2loki/sf2loki-ha/internal/supervise"
	"github.com/sf2loki/sf2loki-ha/internal/telemetry"
)

// shutdownServer bounds the end of the health server.
const shutdownServer = 2 * time.Second

// SetupError is something that is wrong before the election begins, or with the
// store for good (it does not honour conditional writes), and that trying again
// does not repair: the caller exits with 2.
type SetupError struct{ Err error }

func (e *SetupError) Error() string { return e.Err.Error() }

// Unwrap returns the cause.
func (e *SetupError) Unwrap() error { return e.Err }

// Options says what to assemble.
type Options struct {
	// Config is the validated configuration.
	Config *config.Config
	// ConfigFile is its path, handed to the command; "" if there is none.
	ConfigFile string
	// Command is the work; empty means the reference coordinator, which holds
	// terms and shows them.
	Command []string
	// Version labels the build metric and the record.
	Version string
	// Log gets one line per transition.
	Log *slog.Logger
}

// Replica is one assembled process. Create it with New, Run it once.
type Replica struct {
	opts    Options
	log     *slog.Logger
	clients clients
	coord   coordinator.Coordinator
	metrics *telemetry.Metrics
	server  *server.Server
	work    *work
	probe   *probe.Runner // nil: no store to probe, or skipped
	place   place
	signals chan syscall.Signal
}

// New assembles a replica. It sends no request but to the metadata service of the
// platform it runs on. After an error everything that was opened is closed again.
func New(ctx context.Context, opts Options) (_ *Replica, err error) {
	r := &Replica{opts: opts, log: opts.Log, signals: make(chan syscall.Signal, 8)}
	defer func() {
		if err != nil {
			err = errors.Join(err, r.clients.Close())
		}
	}()
	cfg := opts.Config
	if err := cfg.CheckWork(opts.Command); err != nil {
		return nil, &SetupError{err}
	}
	r.metrics = telemetry.New(opts.Version, r.state)
	r.place = findPlace(ctx, cfg)
	election := cfg.Election(r.place.holder)
	election.Platform, election.PlatformStopWindow = r.place.facts, r.place.window
	election.Revision = cfg.Revision(opts.Version, opts.Command)

	if err := r.openWork(ctx, election); err != nil {
		return nil, err
	}
	if err := r.openCoordinator(ctx, election); err != nil {
		return nil, err
	}
	r.server = server.New(server.Config{
		Addr: cfg.Service.HealthAddr, Status: r.readiness, Stuck: r.stuck, Metrics: r.metrics.Handler(), Log: r.log,
	})
	return r, nil
}

// openWork prepares what a leader does.
func (r *Replica) openWork(ctx context.Context, election coordinator.Config) error {
	cfg := r.opts.Config
	reg, err := r.clients.state(ctx, cfg.State)
	if err != nil {
		return &SetupError{err}
	}
	effective := election.WithDefaults()
	r.work = &work{sealWithin: effective.TTL / 2}
	if reg != nil {
		lease, ttl := cfg.LeaseIdentity(), effective.TTL
		if cfg.Coordinate.Type == config.TypeNoop {
			lease, ttl = "", 0
		}
		r.work.state = checkpoint.Open(r.metrics.Instrument(reg),
			checkpoint.WithLease(lease, ttl), checkpoint.WithLogger(r.log),
			// The document may be a megabyte: longer than a call of the election,
			// short enough for three rounds of a seal.
			checkpoint.WithCallTimeout(max(effective.CallTimeout, r.work.sealWithin/3)),
			checkpoint.WithMinWriteInterval(StateWriteInterval(cfg.State)),
			checkpoint.WithObserver(checkpoint.Observer{Settled: r.metrics.Settled}))
		r.work.afterSeal = StateWriteInterval(cfg.State)
		if cfg.Workload.CheckpointAPI {
			// This process writes the document for the command, at the pace of the
			// store; the command itself never does.
			r.work.afterSeal = 0
		}
	}
	if len(r.opts.Command) == 0 {
		return nil
	}
	env := []string{}
	if r.opts.ConfigFile != "" {
		path, err := filepath.Abs(r.opts.ConfigFile)
		if err != nil {
			return &SetupError{fmt.Errorf("find the configuration file: %w", err)}
		}
		env = append(env, supervise.EnvConfig+"="+path)
	}
	sup := supervise.Config{
		Command: r.opts.Command, Env: env, StopGrace: effective.StopGrace, KillMargin: effective.KillMargin, Logger: r.log,
		Signals: r.signals,
		Started: func(int) {
			r.metrics.WorkStarted()
			r.work.running.Store(true)
		},
		Stopping: func(error) { r.work.running.Store(false) },
		Ended: func(o supervise.Outcome) {
			r.work.running.Store(false)
			r.metrics.WorkExited(o.Kind.String())
		},
	}
	if err := supervise.LookPath(sup); err != nil {
		return &SetupError{err}
	}
	if err := sup.Validate(); err != nil {
		return &SetupError{err}
	}
	r.work.command = &sup
	if err := r.openChild(election.Budget().Drain); err != nil {
		return err
	}
	if cfg.Workload.CheckpointAPI {
		return r.openSocketDir(cfg.Service.RuntimeDir)
	}
	return nil
}

// openSocketDir makes the directory for the sockets of this process, or takes the
// configured one.
func (r *Replica) openSocketDir(dir string) error {
	r.work.log = r.log
	if dir == "" {
		made, err := os.MkdirTemp("", "sf2loki-ha-")
		if err != nil {
			return &SetupError{fmt.Errorf("directory for the checkpoint socket: %w; set service.runtime_dir", err)}
		}
		r.clients.open = append(r.clients.open, removal(made))
		dir = made
	} else if info, err := os.Stat(dir); err != nil || !info.IsDir() {
		return &SetupError{fmt.Errorf("service.runtime_dir %s is not a directory: make it, or mount one there", dir)}
	}
	r.work.socketDir = dir
	return nil
}

// removal is a directory of ours that goes with the process.
type removal string

// Close removes it.
func (d removal) Close() error { return os.RemoveAll(string(d)) }

// openCoordinator prepares the election.
func (r *Replica) openCoordinator(ctx context.Context, election coordinator.Config) error {
	store, requests, err := r.clients.leaseStore(ctx, r.opts.Config.Coordinate, r.metrics, r.log)
	if err != nil {
		return &SetupError{err}
	}
	var fence coordinator.FenceReader
	if r.work.state != nil {
		fence = r.work.state
	}
	log := coordinator.LogTo(r.log)
	if store == nil {
		r.coord = coordinator.NewNoop(fence, r.observe, log)
		return nil
	}
	election.Lease = r.opts.Config.LeaseIdentity()
	opts := []coordinator.Option{coordinator.WithObserver(r.observe), coordinator.WithObserver(log), coordinator.WithRequests(requests)}
	if fence != nil {
		opts = append(opts, coordinator.WithFence(fence))
	}
	opts = append(opts, r.openProbe(election)...)
	e, err := coordinator.New(store, election, opts...)
	if err != nil {
		return &SetupError{err}
	}
	r.coord = e
	return nil
}

// Signal hands a signal to the command, if it runs; SIGTERM and SIGINT make a stop
// that is under way end sooner: see supervise.Config.Signals. It does not block,
// and what nobody takes is dropped.
func (r *Replica) Signal(sig syscall.Signal) {
	if !r.work.inTerm.Load() || r.work.command == nil {
		r.log.Debug("signal_ignored", "signal", sig.String(), "hint", "no command runs here")
		return
	}
	select {
	case r.signals <- sig:
	default: // so many are waiting already that one more says nothing new
	}
}

// observe counts what the election says.
func (r *Replica) observe(e coordinator.Event) {
	switch e.Kind {
	case coordinator.Requested:
		return // the instrumented register counts requests
	case coordinator.WriteSettled:
		r.metrics.Settled()
	}
	r.metrics.Transition(string(e.Kind))
}

// Run serves health and competes until ctx ends, then gives everything back.
// It returns nil after a requested stop.
func (r *Replica) Run(ctx context.Context) (err error) {
	defer func() { err = errors.Join(err, r.clients.Close()) }()
	if err := r.exclusive(ctx); err != nil {
		return err
	}
	if err := r.server.Start(); err != nil {
		return &SetupError{err}
	}
	defer func() {
		stop, cancel := context.WithTimeout(context.WithoutCancel(ctx), shutdownServer)
		defer cancel()
		err = errors.Join(err, r.server.Shutdown(stop))
	}()
	r.log.Info("started", "version", r.opts.Version, "lease", r.opts.Config.LeaseObject(), "checkpoints", r.opts.Config.StateObject(),
		"identity", r.place.holder, "health_addr", r.server.Addr(), "command", firstWord(r.opts.Command))

	r.place.log(r.log, r.opts.Config)
	if r.opts.Config.Coordinate.Type == config.TypeNoop {
		r.log.Warn("no_election", "hint", "coordinate.type is noop: nothing arbitrates between replicas; run exactly one, or choose s3_lease, gcs_lease, k8s_lease or file_lease")
	}

	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	go func() {
		select {
		case err := <-r.server.Failed():
			// Without health nothing could restart or route to this replica.
			cancel(fmt.Errorf("health server: %w", err))
		case <-ctx.Done():
		}
	}()
	defer r.startProbe(ctx, cancel)()
	if err := r.coord.Run(ctx, r.work.lead); err != nil {
		return err
	}
	if cause := context.Cause(ctx); !errors.Is(cause, context.Canceled) {
		return cause
	}
	return nil
}

// firstWord names the command in logs; its arguments may hold secrets.
func firstWord(command []string) string {
	if len(command) == 0 {
		return ""
	}
	return command[0]
}

// state is what the metrics show, computed when they are scraped.
func (r *Replica) state() telemetry.State {
	s := r.coord.Status()
	return telemetry.State{
		// Once the work has ended the lease is being released: another replica
		// may lead before we know that the tombstone has landed.
		Leader: s.Role == coordinator.RoleLeader || s.Role == coordinator.RoleStopping && r.work.inTerm.Load(),
		Epoch:  max(s.Epoch, s.Observed.Epoch), LeaseAge: s.Unchanged,
		Remaining: s.Remaining, WorkRunning: r.work.running.Load(), Hold: s.Hold,
	}
}

// readiness answers /readyz: leading, and the work runs.
func (r *Replica) readiness() server.Status {
	s := r.coord.Status()
	switch {
	case s.Role == coordinator.RoleLeader && r.work.running.Load():
		return server.Status{Ready: true}
	case s.Role == coordinator.RoleLeader || !s.Known || !r.admitted():
		return server.Status{Reason: server.NotReady}
	}
	return server.Status{Reason: server.Standby}
}

// stuck answers /healthz.
func (r *Replica) stuck() error {
	if e, ok := r.coord.(*coordinator.Elector); ok {
		return e.Stuck()
	}
	return nil
}
