package statecmd

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sf2loki/sf2loki-ha/cas"
	"github.com/sf2loki/sf2loki-ha/cas/mem"
	"github.com/sf2loki/sf2loki-ha/checkpoint"
	"github.com/sf2loki/sf2loki-ha/coordinator"
	"github.com/sf2loki/sf2loki-ha/internal/faultcas"
)

// world is a document, a lease and a request object in memory, whose requests are
// noted in one list.
type world struct {
	store *mem.Store

	mu    sync.Mutex
	asked []string
	// at is called before the nth request of that name is sent.
	at map[string]func()
}

func newWorld() *world { return &world{store: mem.New(), at: map[string]func(){}} }

const ttl = 15 * time.Second

// register notes every request as "name op".
func (w *world) register(name string) cas.Register {
	return faultcas.Wrap(w.store.Open().Register(name), func(op faultcas.Op, _ int) faultcas.Fault {
		w.mu.Lock()
		what := name + " " + string(op)
		w.asked = append(w.asked, what)
		n := 0
		for _, a := range w.asked {
			if a == what {
				n++
			}
		}
		f := w.at[fmt.Sprintf("%s %d", what, n)]
		w.mu.Unlock()
		if f != nil {
			f()
		}
		return faultcas.Fault{}
	})
}

func (w *world) order() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return strings.Join(w.asked, ", ")
}

func (w *world) document() *document {
	return &document{
		store:  checkpoint.Open(w.register("doc"), checkpoint.WithLease(ours, ttl), checkpoint.WithMaxAttempts(attempts)),
		object: object, lease: ours, poll: time.Second,
		leases: []*lease{{name: ours, identity: ours, store: coordinator.FromRegister(w.register("lease")), requests: coordinator.RequestsFrom(w.register("request")), ttl: ttl}},
	}
}

// put writes an object behind everybody's back.
func (w *world) put(name, text string) {
	reg := w.store.Open().Register(name)
	v, err := reg.Load(context.Background())
	if errors.Is(err, cas.NotFound) {
		_, err = reg.Create(context.Background(), []byte(text))
	} else if err == nil {
		_, err = reg.Replace(context.Background(), []byte(text), v.Version)
	}
	if err != nil {
		panic(err)
	}
}

func (w *world) content(name string) string {
	v, err := w.store.Open().Register(name).Load(context.Background())
	if err != nil {
		return ""
	}
	return string(v.Data)
}

// renew writes the record of a leader, each time with other bytes.
func (w *world) renew(state coordinator.State, epoch int64) {
	r := record(state, epoch)
	r.WriteID = fmt.Sprint(time.Now().UnixNano())
	data, err := r.Marshal()
	if err != nil {
		panic(err)
	}
	w.put("lease", string(data))
}

func (w *world) hold(d time.Duration) {
	w.put("request", string(coordinator.Request{}.WithHold(&coordinator.Hold{ID: "h", Reason: "repair", By: "anna", For: d}).Marshal()))
}

// seal is what a replica that takes over does; commit what its work does.
func (w *world) seal(t *testing.T, epoch int64) *checkpoint.Session {
	s, err := checkpoint.Open(w.store.Open().Register("doc"), checkpoint.WithLease(ours, ttl)).Seal(context.Background(), pair{epoch})
	if err != nil {
		t.Error(err)
	}
	return s
}

func commit(t *testing.T, s *checkpoint.Session, key, value string) {
	if err := s.Commit(context.Background(), map[string]string{key: value}); err != nil {
		t.Error(err)
	}
}

func (w *world) value(t *testing.T, key string) string {
	t.Helper()
	d, err := checkpoint.ParseDocument([]byte(w.content("doc")))
	if err != nil {
		t.Fatal(err)
	}
	v, _ := d.Get(key)
	return v
}

type pair struct{ epoch int64 }

func (p pair) Epoch() int64      { return p.epoch }
func (p pair) ID() string        { return "t" }
func (p pair) CheckFence() error { return nil }

// command is one that sets k to v.
type command struct {
	Command
	out, err bytes.Buffer
}

func newCommand(flags Flags) *command {
	c := &command{}
	c.Command = Command{Flags: flags, Out: &c.out, Err: &c.err}
	return c
}

func (c *command) set(ctx context.Context, d *document) error {
	return c.editIn(ctx, d, Result{Action: "set", Object: d.object, what: "k = v"}, func(doc *checkpoint.Document) error {
		doc.Set("k", "v")
		return nil
	})
}
