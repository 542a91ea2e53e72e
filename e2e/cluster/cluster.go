package cluster

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"
)

// Config says how replicas are started.
type Config struct {
	// Binary is the path of sf2loki-ha.
	Binary string
	// Dir takes the logs: one file a process.
	Dir string
	// ConfigFile is given to every replica with --config.
	ConfigFile string
	// Work is the command behind "run --"; empty means the canary.
	Work []string
	// Env is added to a small, fixed environment.
	Env []string
	// Interval is the canary's time between two records. Default 20 ms.
	Interval time.Duration
}

// Cluster is a set of replicas on one lease.
type Cluster struct {
	cfg     Config
	history *History

	mu       sync.Mutex
	replicas []*Replica
	started  int
}

// New returns an empty cluster.
func New(cfg Config) *Cluster {
	if cfg.Interval == 0 {
		cfg.Interval = 20 * time.Millisecond
	}
	return &Cluster{cfg: cfg, history: newHistory()}
}

// History is what the canaries did.
func (c *Cluster) History() *History { return c.history }

// Replica is one process "sf2loki-ha run".
type Replica struct {
	Name string
	// Addr is its health and metrics address.
	Addr string
	// LogFile is where its standard error goes.
	LogFile string

	cmd  *exec.Cmd
	done chan struct{}
	err  error
}

// Launch is what one replica has of its own.
type Launch struct {
	// Env is added to the environment of the cluster, and wins.
	Env []string
	// Through is a command that ends by executing its arguments, so that the
	// process stays the replica; empty means none.
	Through []string
	// Change may alter how the process is started.
	Change func(*syscall.SysProcAttr)
}

// Start starts a replica. The name appears in its records.
func (c *Cluster) Start(name string) (*Replica, error) { return c.StartAs(name, Launch{}) }

// StartAs starts a replica with something of its own.
func (c *Cluster) StartAs(name string, l Launch) (*Replica, error) {
	addr, err := freeAddr()
	if err != nil {
		return nil, fmt.Errorf("start replica %s: %w", name, err)
	}
	c.mu.Lock()
	c.started++
	logFile := filepath.Join(c.cfg.Dir, fmt.Sprintf("%02d-%s.log", c.started, name))
	c.mu.Unlock()
	log, err := os.Create(logFile)
	if err != nil {
		return nil, fmt.Errorf("start replica %s: %w", name, err)
	}
	defer log.Close()

	work := c.cfg.Work
	if len(work) == 0 {
		work = []string{c.cfg.Binary, "canary", "--interval", c.cfg.Interval.String()}
	}
	argv := append([]string{}, l.Through...)
	argv = append(argv, c.cfg.Binary, "run", "--config", c.cfg.ConfigFile, "--")
	argv = append(argv, work...)
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Env = append([]string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + c.cfg.Dir, "AWS_EC2_METADATA_DISABLED=true",
		"SF2LOKI_SERVICE__HEALTH_ADDR=" + addr,
		"SF2LOKI_COORDINATE__S3_LEASE__HOLDER_ID=" + name,
		"SF2LOKI_COORDINATE__GCS_LEASE__HOLDER_ID=" + name,
		"SF2LOKI_COORDINATE__FILE_LEASE__HOLDER_ID=" + name,
		"SF2LOKI_COORDINATE__K8S_LEASE__IDENTITY=" + name,
	}, append(append([]string{}, c.cfg.Env...), l.Env...)...)
	cmd.Stderr = log
	// A group of its own: what the test sends to a replica reaches nobody else.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if l.Change != nil {
		l.Change(cmd.SysProcAttr)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, fmt.Errorf("start replica %s: %w", name, err)
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start replica %s: %w", name, err)
	}
	r := &Replica{Name: name, Addr: addr, LogFile: logFile, cmd: cmd, done: make(chan struct{})}
	read := make(chan struct{})
	go func() {
		defer close(read)
		c.read(name, out)
	}()
	go func() {
		<-read // the canary holds the pipe as long as it lives
		r.err = cmd.Wait()
		close(r.done)
	}()
	c.mu.Lock()
	c.replicas = append(c.replicas, r)
	c.mu.Unlock()
	return r, nil
}

func (c *Cluster) read(name string, out io.Reader) {
	lines := bufio.NewScanner(out)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		c.history.add(name, lines.Bytes())
	}
}

// PID is the process of the supervisor.
func (r *Replica) PID() int { return r.cmd.Process.Pid }

// Signal sends a signal to the supervisor alone.
func (r *Replica) Signal(s syscall.Signal) error {
	if err := r.cmd.Process.Signal(s); err != nil {
		return fmt.Errorf("signal replica %s: %w", r.Name, err)
	}
	return nil
}

// Wait waits until the supervisor and everything that holds its standard
// output have ended; false after the timeout.
func (r *Replica) Wait(timeout time.Duration) bool {
	select {
	case <-r.done:
		return true
	case <-time.After(timeout):
		return false
	}
}

// ExitCode is the supervisor's, or -1 if it was killed. Call it after Wait.
func (r *Replica) ExitCode() int {
	var exit *exec.ExitError
	if errors.As(r.err, &exit) {
		return exit.ExitCode()
	}
	return 0
}

// Ready asks /readyz. It returns the status and the body.
func (r *Replica) Ready() (int, string, error) { return r.get("/readyz") }

// Metric returns the value of an unlabelled metric, as text.
func (r *Replica) Metric(name string) (string, error) {
	_, body, err := r.get("/metrics")
	if err != nil {
		return "", err
	}
	for _, line := range strings.Split(body, "\n") {
		if value, ok := strings.CutPrefix(line, name+" "); ok {
			return value, nil
		}
	}
	return "", fmt.Errorf("metric %s of replica %s: not found", name, r.Name)
}

func (r *Replica) get(path string) (int, string, error) {
	client := http.Client{Timeout: 2 * time.Second}
	resp, err := client.Get("http://" + r.Addr + path)
	if err != nil {
		return 0, "", fmt.Errorf("ask replica %s: %w", r.Name, err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, 1<<20))
	if err != nil {
		return 0, "", fmt.Errorf("ask replica %s: %w", r.Name, err)
	}
	return resp.StatusCode, strings.TrimSpace(string(body)), nil
}

// AwaitReady polls /readyz until its body is want; false after the timeout.
func (r *Replica) AwaitReady(want string, timeout time.Duration) bool {
	for end := time.Now().Add(timeout); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		if _, body, err := r.Ready(); err == nil && body == want {
			return true
		}
	}
	return false
}

// Close ends every replica: TERM, then KILL; frozen ones are thawed first.
func (c *Cluster) Close() {
	c.mu.Lock()
	all := append([]*Replica(nil), c.replicas...)
	c.mu.Unlock()
	for _, r := range all {
		_ = r.cmd.Process.Signal(syscall.SIGCONT)
		_ = r.cmd.Process.Signal(syscall.SIGTERM)
	}
	for _, r := range all {
		if !r.Wait(10 * time.Second) {
			_ = r.cmd.Process.Kill()
			r.Wait(5 * time.Second)
		}
	}
}

// freeAddr finds a port below those that the kernel gives away by itself, to
// clients and to servers of the tests: between now and the start of the replica
// nobody gets it by chance.
func freeAddr() (string, error) {
	const low, high, tries = 20000, 32000, 20
	var last error
	for range tries {
		l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", low+rand.IntN(high-low)))
		if err == nil {
			defer l.Close()
			return l.Addr().String(), nil
		}
		last = err
	}
	return "", fmt.Errorf("find a free port: %w", last)
}
