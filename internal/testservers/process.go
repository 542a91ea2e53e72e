package testservers

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"net/http"
	"os/exec"
	"runtime"
	"strconv"
	"sync"
	"testing"
	"time"
)

const (
	startTimeout = 30 * time.Second
	startTries   = 3 // the free port may be taken before the server binds it
)

// start runs a server on a free port and waits until readyPath answers. argv gets
// the port.
func start(t testing.TB, readyPath string, env []string, argv func(port int) []string) (port int) {
	t.Helper()
	var last error
	for range startTries {
		port = freePort(t)
		p, err := run(argv(port), env)
		if err != nil {
			t.Fatalf("testservers: %v", err)
		}
		if last = p.ready(fmt.Sprintf("http://127.0.0.1:%d%s", port, readyPath)); last == nil {
			t.Cleanup(p.stop)
			return port
		}
		p.stop()
	}
	t.Fatalf("testservers: %v", last)
	return 0
}

func freePort(t testing.TB) int {
	t.Helper()
	port, err := pickPort()
	if err != nil {
		t.Fatalf("testservers: %v", err)
	}
	return port
}

func pickPort() (int, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port, nil
}

type process struct {
	cmd    *exec.Cmd
	exited chan struct{}
	out    lockedBuffer
}

// run starts the process from a thread that lives as long as the process: the
// kernel ties "die with your parent" to the thread, not to the process.
func run(argv, env []string) (*process, error) {
	p := &process{cmd: exec.Command(argv[0], argv[1:]...), exited: make(chan struct{})}
	p.cmd.Env = append(p.cmd.Environ(), env...)
	p.cmd.Stdout, p.cmd.Stderr = &p.out, &p.out
	ownGroup(p.cmd)
	started := make(chan error, 1)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := p.cmd.Start()
		started <- err
		if err == nil {
			_ = p.cmd.Wait()
		}
		close(p.exited)
	}()
	return p, <-started
}

// ready polls until the server answers anything at all below 500.
func (p *process) ready(url string) error {
	return p.readyWith(http.DefaultClient, url, func(code int) bool { return code < 500 }, startTimeout)
}

// readyWith polls until an answer's status is good.
func (p *process) readyWith(client *http.Client, url string, good func(code int) bool, timeout time.Duration) error {
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for answers := 0; ; {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
		if err != nil {
			return err
		}
		if resp, err := client.Do(req); err == nil {
			resp.Body.Close()
			// Somebody else may have got the port: ours ends then. It has to live
			// while it is seen to answer.
			if answers++; good(resp.StatusCode) && answers > 3 {
				select {
				case <-p.exited:
				default:
					return nil
				}
			}
		}
		select {
		case <-p.exited:
			return fmt.Errorf("%s ended: %s", p.cmd.Path, p.out.String())
		case <-ctx.Done():
			return fmt.Errorf("%s is not ready after %v: %s", p.cmd.Path, timeout, p.out.String())
		case <-tick.C:
		}
	}
}

func (p *process) stop() {
	killGroup(p.cmd.Process.Pid)
	<-p.exited
}

type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

func loopback(port int) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)) }
