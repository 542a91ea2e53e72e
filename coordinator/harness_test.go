package coordinator

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sf2loki/sf2loki-ha/cas"
	"github.com/sf2loki/sf2loki-ha/cas/mem"
	"github.com/sf2loki/sf2loki-ha/internal/faultcas"
)

// fakeClock follows the fake time of a synctest bubble.
type fakeClock struct{ start time.Time }

func (c fakeClock) Now() Instant { return Instant(time.Hour + time.Since(c.start)) }

// act is something the work of a replica did.
type act struct {
	replica string
	kind    string // start, end
	at      time.Time
	epoch   int64
	cause   error
}

// world is one lease object and the replicas that compete for it.
type world struct {
	t     *testing.T
	store *mem.Store
	reg   cas.Register
	start time.Time

	mu   sync.Mutex
	acts []act
}

const leaseName = "leader.lease"

func newWorld(t *testing.T) *world {
	store := mem.New()
	return &world{t: t, store: store, reg: store.Open().Register(leaseName), start: time.Now()}
}

// replica is one elector in a world.
type replica struct {
	w       *world
	name    string
	reg     *faultcas.Register
	elector *Elector
	cancel  context.CancelFunc
	done    chan error

	mu     sync.Mutex
	events []Event
	drain  time.Duration // how long the work takes to end
	fail   error         // the work returns it at once
	broken bool          // the work crashes three times and gives up
}

// fast is the configuration of the tests: ttl 6 s, renew 2 s, poll 1 s.
var fast = Config{TTL: 6 * time.Second, RenewInterval: 2 * time.Second, PollInterval: time.Second}

func (w *world) replica(name string, cfg Config, opts ...Option) *replica {
	w.t.Helper()
	r := &replica{w: w, name: name, reg: faultcas.Wrap(w.reg, nil), done: make(chan error, 1)}
	if cfg.Identity == "" {
		cfg.Identity = name
	}
	opts = append([]Option{WithClock(fakeClock{w.start}), WithObserver(r.observe)}, opts...)
	e, err := New(FromRegister(r.reg), cfg, opts...)
	if err != nil {
		w.t.Fatal(err)
	}
	r.elector = e
	return r
}

func (r *replica) observe(e Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	e.At = time.Now()
	r.events = append(r.events, e)
}

// run starts the replica; its work lasts until its context ends, plus drain.
func (r *replica) run() *replica {
	ctx, cancel := context.WithCancel(context.Background())
	r.cancel = cancel
	go func() { r.done <- r.elector.Run(ctx, r.lead) }()
	return r
}

func (r *replica) lead(ctx context.Context, t *Term) error {
	r.w.act(r.name, "start", t.Epoch(), nil)
	r.mu.Lock()
	fail, drain, broken := r.fail, r.drain, r.broken
	r.mu.Unlock()
	if broken {
		fail = r.crash(ctx, t)
	}
	if fail != nil {
		r.w.act(r.name, "end", t.Epoch(), fail)
		return fail
	}
	<-ctx.Done()
	if !errors.Is(context.Cause(ctx), ErrLost) {
		deadline := time.After(drain)
		for waiting := true; waiting; {
			changed := t.Changed()
			select {
			case <-deadline:
				waiting = false
			case <-changed:
				waiting = t.KillAt().Sub(t.clock.Now()) > 0
			case <-time.After(max(0, t.KillAt().Sub(t.clock.Now()))):
				waiting = false
			}
		}
	}
	r.w.act(r.name, "end", t.Epoch(), context.Cause(ctx))
	return nil
}

// crash is work that crashes three times, as package supervise keeps it.
func (r *replica) crash(ctx context.Context, t *Term) error {
	for n := 0; ; n++ {
		r.w.act(r.name, "crash", t.Epoch(), nil)
		pause := min(30*time.Second, time.Second<<min(t.Failures(), 5))
		if t.Failed(); n == 2 {
			return fmt.Errorf("crashed: %w", ErrCrashLoop)
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return nil
		}
	}
}

func (w *world) act(replica, kind string, epoch int64, cause error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.acts = append(w.acts, act{replica, kind, time.Now(), epoch, cause})
}

// stop asks for a clean stop and waits for it.
func (r *replica) stop() {
	r.cancel()
	if err := <-r.done; err != nil {
		r.w.t.Errorf("%s: Run: %v", r.name, err)
	}
}

func (r *replica) count(kind EventKind) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	n := 0
	for _, e := range r.events {
		if e.Kind == kind {
			n++
		}
	}
	return n
}

func (r *replica) role() Role { return r.elector.Status().Role }

// record reads the lease from the store, past every fault.
func (w *world) record() Record {
	w.t.Helper()
	v, err := w.reg.Load(context.Background())
	if err != nil {
		w.t.Fatal(err)
	}
	rec, err := ParseRecord(v.Data)
	if err != nil {
		w.t.Fatal(err)
	}
	return rec
}

// put writes bytes over the lease, as an operator with another tool would.
func (w *world) put(data string) {
	w.t.Helper()
	ctx := context.Background()
	v, err := w.reg.Load(ctx)
	if errors.Is(err, cas.NotFound) {
		_, err = w.reg.Create(ctx, []byte(data))
	} else if err == nil {
		_, err = w.reg.Replace(ctx, []byte(data), v.Version)
	}
	if err != nil {
		w.t.Fatal(err)
	}
}

// sleep lets fake time pass and everything settle.
func sleep(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

// noOverlap fails if work of two terms ran at one instant.
func (w *world) noOverlap() {
	w.t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	running := ""
	for _, a := range w.acts {
		who := fmt.Sprintf("%s/%d", a.replica, a.epoch)
		switch {
		case a.kind == "start" && running != "":
			w.t.Errorf("%v: %s starts while %s runs", a.at.Sub(w.start), who, running)
		case a.kind == "start":
			running = who
		case who == running:
			running = ""
		}
	}
}

// starts lists the epochs whose work started, in order.
func (w *world) starts() []act {
	w.mu.Lock()
	defer w.mu.Unlock()
	var out []act
	for _, a := range w.acts {
		if a.kind == "start" {
			out = append(out, a)
		}
	}
	return out
}

func (w *world) ends() []act {
	w.mu.Lock()
	defer w.mu.Unlock()
	var out []act
	for _, a := range w.acts {
		if a.kind == "end" {
			out = append(out, a)
		}
	}
	return out
}
