package checkpoint_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/sf2loki/sf2loki-ha/cas"
	"github.com/sf2loki/sf2loki-ha/cas/mem"
	"github.com/sf2loki/sf2loki-ha/checkpoint"
	"github.com/sf2loki/sf2loki-ha/internal/faultcas"
)

const (
	objectName = "sf2loki/state.json"
	leaseName  = "s3://b/sf2loki/leader.lease"
)

// term is a checkpoint.Term that a test ends.
type term struct {
	epoch int64
	id    string

	mu     sync.Mutex
	over   error
	checks int
}

func (t *term) Epoch() int64 { return t.epoch }
func (t *term) ID() string   { return t.id }

func (t *term) CheckFence() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.checks++
	return t.over
}

func (t *term) end(err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.over = err
}

var errTermOver = errors.New("term over")

// object is one document in a store in memory, reached through faults.
type object struct {
	*faultcas.Register
	store *mem.Store
	plain cas.Register
}

func newObject(plan func(op faultcas.Op, n int) faultcas.Fault) *object {
	store := mem.New()
	return &object{
		Register: faultcas.Wrap(store.Open().Register(objectName), plan),
		store:    store,
		plain:    store.Open().Register(objectName),
	}
}

// content is what the store has now, "" if there is no object.
func (o *object) content(t testing.TB) string {
	t.Helper()
	v, err := o.plain.Load(context.Background())
	if errors.Is(err, cas.NotFound) {
		return ""
	}
	if err != nil {
		t.Fatal(err)
	}
	return string(v.Data)
}

// put replaces the document behind everybody's back.
func (o *object) put(t testing.TB, text string) {
	t.Helper()
	v, err := o.plain.Load(context.Background())
	if errors.Is(err, cas.NotFound) {
		_, err = o.plain.Create(context.Background(), []byte(text))
	} else if err == nil {
		_, err = o.plain.Replace(context.Background(), []byte(text), v.Version)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// value reads one key past every session.
func (o *object) value(t testing.TB, key string) string {
	t.Helper()
	d, err := checkpoint.ParseDocument([]byte(o.content(t)))
	if err != nil {
		t.Fatal(err)
	}
	v, _ := d.Get(key)
	return v
}

// edit changes keys as an operator's tool does that leaves the fence alone.
func (o *object) edit(t testing.TB, change func(*checkpoint.Document)) {
	t.Helper()
	d, err := checkpoint.ParseDocument([]byte(o.content(t)))
	if err != nil {
		t.Fatal(err)
	}
	change(d)
	o.put(t, string(d.Encode()))
}

func (o *object) open(opts ...checkpoint.Option) *checkpoint.Store {
	return checkpoint.Open(o, append([]checkpoint.Option{checkpoint.WithLease(leaseName, 15*time.Second)}, opts...)...)
}

func (o *object) seal(t testing.TB, tm checkpoint.Term, opts ...checkpoint.Option) *checkpoint.Session {
	t.Helper()
	s, err := o.open(opts...).Seal(t.Context(), tm)
	if err != nil {
		t.Fatalf("seal: %v", err)
	}
	return s
}

func commit(t testing.TB, s *checkpoint.Session, key, value string) {
	t.Helper()
	if err := s.Commit(t.Context(), map[string]string{key: value}); err != nil {
		t.Fatalf("commit %s=%s: %v", key, value, err)
	}
}

// nth is a plan with one fault, at the nth request of that kind counted from
// when the plan is set.
func nth(op faultcas.Op, n int, fault faultcas.Fault) func(faultcas.Op, int) faultcas.Fault {
	seen := 0
	return func(o faultcas.Op, _ int) faultcas.Fault {
		if o != op {
			return faultcas.Fault{}
		}
		if seen++; seen == n {
			return fault
		}
		return faultcas.Fault{}
	}
}

// always is a plan with one fault at every request of that kind.
func always(op faultcas.Op, fault faultcas.Fault) func(faultcas.Op, int) faultcas.Fault {
	return func(o faultcas.Op, _ int) faultcas.Fault {
		if o == op {
			return fault
		}
		return faultcas.Fault{}
	}
}

// counter is an Observer that a test reads.
type counter struct{ ambiguous, settled, merged int }

func (c *counter) observer() checkpoint.Option {
	return checkpoint.WithObserver(checkpoint.Observer{
		Ambiguous: func() { c.ambiguous++ },
		Settled:   func() { c.settled++ },
		Merged:    func() { c.merged++ },
	})
}

func wantFenced(t testing.TB, err error, epoch int64, id string) {
	t.Helper()
	var fenced *checkpoint.FencedError
	if !errors.As(err, &fenced) {
		t.Fatalf("error %v, want fenced", err)
	}
	if fenced.Epoch != epoch || fenced.FencedEpoch() != epoch || fenced.Term != id {
		t.Errorf("fenced by (%d, %s), want (%d, %s)", fenced.Epoch, fenced.Term, epoch, id)
	}
}

// elapse lets fake time pass; it is called in synctest bubbles only.
func elapse(d time.Duration) { <-time.After(d) }
