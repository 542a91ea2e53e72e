package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/sf2loki/sf2loki-ha/cas"
	"github.com/sf2loki/sf2loki-ha/checkpoint"
	"github.com/sf2loki/sf2loki-ha/coordinator"
	"github.com/sf2loki/sf2loki-ha/e2e/cluster"
	"github.com/sf2loki/sf2loki-ha/internal/boottime"
	"github.com/sf2loki/sf2loki-ha/internal/canary"
	"github.com/sf2loki/sf2loki-ha/internal/config"
	"github.com/sf2loki/sf2loki-ha/internal/proctree"
	"github.com/sf2loki/sf2loki-ha/internal/replica"
	"github.com/sf2loki/sf2loki-ha/internal/supervise"
)

// upstreamLike is the first argument that turns this test binary into a child
// that treats its checkpoints as sf2loki's object stores do.
const upstreamLike = "e2e-upstream-like"

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == upstreamLike {
		if err := runUpstreamLike(); err != nil {
			fmt.Fprintln(os.Stderr, "upstream-like child:", err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// errLostCAS is what sf2loki says and dies of when its condition fails.
var errLostCAS = errors.New("another instance is writing")

// upstreamStore is a document as sf2loki keeps it: loaded once, the version of
// that load cached and moved on by its own writes, the whole document rewritten
// with each commit, no fence, no merge. A failed condition is the end.
type upstreamStore struct {
	reg     cas.Register
	doc     *checkpoint.Document
	version cas.Version
}

func loadUpstream(ctx context.Context, reg cas.Register) (*upstreamStore, error) {
	v, err := reg.Load(ctx)
	if errors.Is(err, cas.NotFound) {
		return &upstreamStore{reg: reg, doc: &checkpoint.Document{}}, nil
	}
	if err != nil {
		return nil, err
	}
	doc, err := checkpoint.ParseDocument(v.Data)
	return &upstreamStore{reg: reg, doc: doc, version: v.Version}, err
}

func (s *upstreamStore) commit(ctx context.Context, key, value string) error {
	s.doc.Set(key, value)
	var err error
	if s.version == "" {
		s.version, err = s.reg.Create(ctx, s.doc.Encode())
	} else {
		s.version, err = s.reg.Replace(ctx, s.doc.Encode(), s.version)
	}
	if errors.Is(err, cas.Conflict) {
		return fmt.Errorf("%w: %w", errLostCAS, err)
	}
	return err
}

const upstreamKey = "eventlogfile:Login"

// runUpstreamLike writes numbered records and commits each number, until SIGTERM.
// UPSTREAM_LIKE_EVERY is the time between two records.
func runUpstreamLike() (err error) {
	ctx, cancel := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer cancel()
	cfg, err := config.Load(os.Getenv(supervise.EnvConfig), os.Environ())
	if err != nil {
		return err
	}
	reg, closer, err := replica.OpenState(ctx, cfg.State)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, closer.Close()) }()
	every, err := time.ParseDuration(os.Getenv("UPSTREAM_LIKE_EVERY"))
	if err != nil {
		return err
	}
	store, err := loadUpstream(ctx, reg)
	if err != nil {
		return err
	}
	epoch, _ := strconv.ParseInt(os.Getenv(canary.EnvEpoch), 10, 64)
	last, _ := store.doc.Get(upstreamKey)
	n, _ := strconv.ParseInt(last, 10, 64)
	for ticker := time.NewTicker(every); ; {
		n++
		line, err := json.Marshal(cluster.Act{N: n, Boot: int64(boottime.Now()), Epoch: epoch, Term: os.Getenv(canary.EnvTerm), PID: os.Getpid(), Event: "record"})
		if err != nil {
			return err
		}
		fmt.Printf("%s\n", line)
		// What was written is committed, also when the end has been asked for.
		if err := store.commit(context.WithoutCancel(ctx), upstreamKey, strconv.FormatInt(n, 10)); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
	}
}

// takeovers is how many planned handovers the test makes: UPSTREAM_TAKEOVERS, or
// as many as fit into a test run.
func takeovers(t *testing.T, def int) int {
	if text := os.Getenv("UPSTREAM_TAKEOVERS"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil {
			t.Fatalf("UPSTREAM_TAKEOVERS=%q: %v", text, err)
		}
		return n
	}
	return def
}

// conflicts counts the deaths of children whose condition failed, by the logs.
func conflicts(t *testing.T, dir string) int {
	t.Helper()
	logs, err := filepath.Glob(filepath.Join(dir, "*.log"))
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, path := range logs {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		n += strings.Count(string(data), errLostCAS.Error())
	}
	return n
}

func TestAChildThatRewritesTheWholeDocumentNeverMeetsAConflictOverManyTakeovers(t *testing.T) {
	for name, open := range map[string]func(*testing.T) backend{"s3": s3Backend, "gcs": gcsBackend} {
		b := open(t)
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b.env = append(b.env, "UPSTREAM_LIKE_EVERY=50ms")
			p := newPair(t, b, os.Args[0], upstreamLike)
			crashes := 0
			for i := range takeovers(t, 6) {
				leader := p.leader
				if crash := i%3 == 2; crash {
					crashes++
					if err := leader.Signal(syscall.SIGKILL); err != nil {
						t.Fatal(err)
					}
				} else if err := leader.Signal(syscall.SIGTERM); err != nil {
					t.Fatal(err)
				}
				next := p.successor(t, 30*time.Second)
				leader.Wait(10 * time.Second)
				p.epoch = next.Epoch
				p.leader, p.standby = p.standby, start(t, p.Cluster, fmt.Sprint("R", i))
				if !p.standby.AwaitReady("standby", 10*time.Second) {
					t.Fatal("the new standby does not get ready")
				}
			}
			p.sound(t)
			if n := conflicts(t, filepath.Dir(p.leader.LogFile)); n != 0 {
				t.Errorf("%d legitimate children died of a conflict", n)
			}
			t.Logf("%d takeovers, %d of them crashes, no conflict", takeovers(t, 6), crashes)
		})
	}
}

// The whole of a replica is frozen and thawed after the takeover: the guard stops
// its child, and the token that the child has cached was killed by the seal.
func TestAStaleChildThatIsThawedAfterTheSealCommitsNothing(t *testing.T) {
	b := s3Backend(t)
	b.env = append(b.env, "UPSTREAM_LIKE_EVERY=50ms")
	p := newPair(t, b, os.Args[0], upstreamLike)
	all, err := proctree.List()
	if err != nil {
		t.Fatal(err)
	}
	tree := []int{p.leader.PID()}
	for _, child := range proctree.Descendants(all, p.leader.PID()) { // parents first
		tree = append(tree, child.PID)
	}
	if len(tree) < 3 {
		t.Fatalf("%d processes; want supervisor, guard and child", len(tree))
	}
	for _, pid := range tree {
		_ = syscall.Kill(pid, syscall.SIGSTOP)
	}
	next := p.successor(t, 30*time.Second)
	time.Sleep(time.Second)
	thawed := int64(boottime.Now())
	for i := len(tree) - 1; i >= 0; i-- { // the child first: the worst order
		_ = syscall.Kill(tree[i], syscall.SIGCONT)
	}
	time.Sleep(2 * time.Second)
	late := 0
	for _, a := range p.History().Acts() {
		if a.Epoch == p.epoch && a.Boot > thawed {
			late++
			if after := time.Duration(a.Boot - thawed); after > 200*time.Millisecond {
				t.Errorf("the stale child acts %v after it was thawed", after)
			}
		}
	}
	t.Logf("the thawed child acted %d times", late)
	// The document has only what the successor wrote: numbers in order.
	if missing := cluster.Missing(p.History().Acts()); len(missing) > 0 {
		t.Errorf("%d records are missing", len(missing))
	}
	if rec := b.record(t); rec.Epoch != next.Epoch || rec.State != coordinator.Held {
		t.Errorf("epoch %d, %s; the successor was disturbed", rec.Epoch, rec.State)
	}
}

func TestAFailoverWithCheckpointsThroughTheSocketLosesNothing(t *testing.T) {
	b := fileBackend(t)
	b.config += "workload: {checkpoint_api: true}\n"
	p := newPair(t, b)
	time.Sleep(2 * time.Second) // a few commits
	if err := p.leader.Signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	p.epoch = p.successor(t, 30*time.Second).Epoch
	time.Sleep(2 * time.Second)
	start(t, p.Cluster, "C")
	if err := p.standby.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	p.successor(t, 30*time.Second)
	p.sound(t)
	if log, err := os.ReadFile(p.standby.LogFile); err != nil || strings.Contains(string(log), "checkpoint socket") {
		t.Errorf("%v: %s", err, log)
	}
}
