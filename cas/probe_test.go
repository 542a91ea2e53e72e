package cas_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sf2loki/sf2loki-ha/cas"
	"github.com/sf2loki/sf2loki-ha/cas/mem"
	"github.com/sf2loki/sf2loki-ha/internal/faultcas"
)

const lease = "sf2loki/leader.lease"

// calls is how many calls one probe makes of registers. One of them, the replace
// without a version, no backend sends.
const calls = 35

// storeUnderProbe is a store in memory behind a fault plan that counts the
// requests of all clients and objects in the order in which they are made.
type storeUnderProbe struct {
	store  *mem.Store
	mutate func(cas.Register) cas.Register
	plan   func(op faultcas.Op, n int) faultcas.Fault

	mu     sync.Mutex
	n      int
	opened int
	closed int
	names  map[string]bool
}

func (s *storeUnderProbe) open(context.Context) (cas.Bucket, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.opened++
	return &probedBucket{Bucket: s.store.Open(), s: s}, nil
}

func (s *storeUnderProbe) next(op faultcas.Op, _ int) faultcas.Fault {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.n++
	if s.plan == nil {
		return faultcas.Fault{}
	}
	return s.plan(op, s.n)
}

type probedBucket struct {
	*mem.Bucket
	s *storeUnderProbe
}

func (b *probedBucket) Register(name string) cas.Register {
	b.s.mu.Lock()
	defer b.s.mu.Unlock()
	if b.s.names == nil {
		b.s.names = map[string]bool{}
	}
	b.s.names[name] = true
	r := b.Bucket.Register(name)
	if b.s.mutate != nil {
		r = b.s.mutate(r)
	}
	return faultcas.Wrap(r, b.s.next)
}

func (b *probedBucket) Scratch(object string) cas.Scratch {
	inner := b.Bucket.Scratch(object)
	return scratch{Scratch: inner, b: b, prefix: cas.ScratchPrefix(object)}
}

func (b *probedBucket) Close() error {
	b.s.mu.Lock()
	defer b.s.mu.Unlock()
	b.s.closed++
	return b.Bucket.Close()
}

type scratch struct {
	cas.Scratch
	b      *probedBucket
	prefix string
}

func (s scratch) Register(name string) cas.Register { return s.b.Register(s.prefix + name) }

func (s *storeUnderProbe) probe(ctx context.Context) cas.ProbeReport {
	if s.store == nil {
		s.store = mem.New()
	}
	return cas.Probe(ctx, cas.ProbeConfig{Open: s.open, Object: lease, Incarnation: "0f0f", CallTimeout: time.Second})
}

// left are the probe's objects that still exist.
func (s *storeUnderProbe) left(t *testing.T) (left []string) {
	t.Helper()
	b := s.store.Open()
	for name := range s.names {
		if _, err := b.Register(name).Load(t.Context()); cas.ClassOf(err) != cas.NotFound {
			left = append(left, name)
		}
	}
	return left
}

func TestASoundStorePassesWithFortyRequestsAndNothingStays(t *testing.T) {
	s := &storeUnderProbe{}
	r := s.probe(t.Context())
	if r.Verdict != cas.ProbeOK || r.Err() != nil || r.CleanUp != nil || len(r.Left) != 0 {
		t.Fatalf("%s%v, %v", r, r.Err(), r.CleanUp)
	}
	if want := calls - 1 + 6; s.n != calls || r.Requests != want { // six names are removed
		t.Errorf("%d calls and %d requests in the report, want %d and %d", s.n, r.Requests, calls, want)
	}
	if r.Version != cas.ProbeVersion || len(r.Checks) != 10 {
		t.Errorf("version %d, %d checks", r.Version, len(r.Checks))
	}
	for _, c := range r.Checks {
		if c.Verdict != cas.ProbeOK || c.Err != nil {
			t.Errorf("%s: %s, %v", c.Name, c.Verdict, c.Err)
		}
	}
	if left := s.left(t); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
	if s.opened != s.closed || s.opened < 2 {
		t.Errorf("%d clients opened, %d closed; want several, and all of them", s.opened, s.closed)
	}
	for name := range s.names {
		if !strings.HasPrefix(name, lease+".probe/") || name != cas.ScratchPrefix(lease) && !strings.HasPrefix(name, lease+".probe/0f0f-") {
			t.Errorf("touches %q", name)
		}
		if len(name)-len(lease) > cas.MaxScratchName {
			t.Errorf("%q is %d longer than the lease's name, the configuration reserves %d", name, len(name)-len(lease), cas.MaxScratchName)
		}
	}
}

// faults that hide an answer, with or without the write having been applied.
func hidden() map[string]faultcas.Fault {
	return map[string]faultcas.Fault{
		"applied, answer lost":      {Lose: cas.Ambiguous},
		"applied, answered 409":     {Lose: cas.Contended},
		"not applied, answer lost":  {Refuse: cas.Ambiguous},
		"not applied, answered 429": {Refuse: cas.Contended},
		"applied later":             {LandLater: 10 * time.Millisecond},
		"applied, no version":       {NoVersion: true},
		"denied":                    {Refuse: cas.Denied},
		"no bucket":                 {Refuse: cas.NoBucket},
		"late":                      {Late: 2 * time.Second},
		"refused though true":       {Refuse: cas.Conflict},
		"applied, answered 412":     {Lose: cas.Conflict},
	}
}

func TestAHiddenAnswerAnywhereIsNeverAFaultOfTheStore(t *testing.T) {
	for name, fault := range hidden() {
		t.Run(name, func(t *testing.T) {
			for at := 1; at <= calls; at++ {
				synctest.Test(t, func(t *testing.T) {
					s := &storeUnderProbe{plan: func(_ faultcas.Op, n int) (f faultcas.Fault) {
						if n == at {
							f = fault
						}
						return f
					}}
					r := s.probe(t.Context())
					if r.Verdict == cas.ProbeUnsupported {
						t.Errorf("at request %d: %v", at, r.Err())
					}
					if r.Verdict == cas.ProbeUnknown && (r.Err() == nil || cas.ClassOf(r.Err()) == cas.Unsupported) {
						t.Errorf("at request %d: unknown without a reason: %v", at, r.Err())
					}
				})
			}
		})
	}
}

// A store that loses every answer of a kind for good is no store that ignores
// conditions.
func TestAStoreWhoseAnswersAreAllLostIsUnknown(t *testing.T) {
	for name, fault := range hidden() {
		for _, op := range []faultcas.Op{faultcas.Load, faultcas.Create, faultcas.Replace} {
			synctest.Test(t, func(t *testing.T) {
				s := &storeUnderProbe{plan: func(o faultcas.Op, _ int) (f faultcas.Fault) {
					if o == op {
						f = fault
					}
					return f
				}}
				r := s.probe(t.Context())
				never := name == "refused though true" && op == faultcas.Replace
				switch {
				case never && r.Fault != cas.FaultNeverMatches:
					t.Errorf("every %s %s: %v; want %s", op, name, r.Err(), cas.FaultNeverMatches)
				case !never && r.Verdict != cas.ProbeUnknown:
					t.Errorf("every %s %s: %s %v", op, name, r.Verdict, r.Err())
				}
			})
		}
	}
}

func TestWhatStandsInTheWayIsSaidInSentencesOfItsOwn(t *testing.T) {
	seen := map[string]string{}
	for _, tt := range []struct {
		class cas.Class
		want  string
	}{
		{cas.Denied, "the probe was denied"},
		{cas.NoBucket, "there is no such bucket"},
		{cas.Contended, "fewer requests"},
		{cas.Ambiguous, "did not answer"},
	} {
		s := &storeUnderProbe{plan: func(faultcas.Op, int) faultcas.Fault { return faultcas.Fault{Refuse: tt.class} }}
		r := s.probe(t.Context())
		var e *cas.Error
		if !errors.As(r.Err(), &e) || e.Class != tt.class || r.Verdict != cas.ProbeUnknown || !strings.Contains(e.Hint, tt.want) {
			t.Errorf("%s: %s, %v", tt.class, r.Verdict, r.Err())
			continue
		}
		if other, ok := seen[e.Hint]; ok {
			t.Errorf("%s and %s have one text", tt.class, other)
		}
		seen[e.Hint] = string(tt.class)
		if s.n != 1 {
			t.Errorf("%s: %d requests; a store that cannot be used is asked once", tt.class, s.n)
		}
	}
	s := &storeUnderProbe{plan: func(faultcas.Op, int) faultcas.Fault { return faultcas.Fault{Refuse: cas.Unsupported} }}
	if r := s.probe(t.Context()); r.Fault != cas.FaultNotSupported || cas.ClassOf(r.Err()) != cas.Unsupported || !strings.Contains(r.Err().Error(), "conditional writes are not supported") {
		t.Errorf("not implemented: %v", r.Err())
	}
}

func TestTwoProbesAtOnceDoNotDisturbEachOther(t *testing.T) {
	store := mem.New()
	var wg sync.WaitGroup
	for range 8 { // one incarnation: the worst case
		wg.Go(func() {
			s := &storeUnderProbe{store: store}
			if r := s.probe(t.Context()); r.Verdict != cas.ProbeOK || len(r.Left) > 0 {
				t.Error(r)
			}
		})
	}
	wg.Wait()
}

func TestTheLeaseIsNeitherReadNorWrittenNorRemoved(t *testing.T) {
	s := &storeUnderProbe{store: mem.New()}
	r := s.store.Open().Register(lease)
	v, err := r.Create(t.Context(), []byte("held"))
	if err != nil {
		t.Fatal(err)
	}
	s.probe(t.Context())
	if got, err := r.Load(t.Context()); err != nil || got.Version != v {
		t.Errorf("lease: %v, %v", got, err)
	}
	if s.names[lease] {
		t.Error("the probe opened the lease")
	}
}

func TestAScratchAreaCannotBeLeft(t *testing.T) {
	b := mem.New().Open()
	for _, name := range []string{lease, lease + ".probe", "sf2loki/leader.lease.probe/../../x"} {
		if _, err := b.Register(name).Create(t.Context(), []byte("x")); err != nil {
			t.Fatal(err)
		}
	}
	area := b.Scratch(lease)
	for _, name := range []string{"", ".", "..", "../leader.lease", "../../x", "/", "a/b", "A", "a.b", strings.Repeat("a", 58)} {
		if err := area.Remove(t.Context(), name); cas.ClassOf(err) != cas.Denied {
			t.Errorf("Remove(%q) = %v", name, err)
		}
	}
	if _, err := area.Register("x").Create(t.Context(), []byte("x")); err != nil {
		t.Fatal(err)
	}
	for range 2 { // what is gone is removed already
		if err := area.Remove(t.Context(), "x"); err != nil {
			t.Error(err)
		}
	}
	if _, err := area.Register("x").Load(t.Context()); cas.ClassOf(err) != cas.NotFound {
		t.Errorf("removed, and still there: %v", err)
	}
	if _, err := b.Register(lease).Load(t.Context()); err != nil {
		t.Errorf("the lease is gone: %v", err)
	}
}

// keepsAll hides that objects can be removed.
type keepsAll struct{ cas.Bucket }

func TestAnObjectThatCannotBeRemovedIsNamedAndNoReasonToFail(t *testing.T) {
	store := mem.New()
	r := cas.Probe(t.Context(), cas.ProbeConfig{Object: lease, Open: func(context.Context) (cas.Bucket, error) {
		return keepsAll{store.Open()}, nil
	}})
	if r.Verdict != cas.ProbeOK || r.CleanUp == nil || len(r.Left) != 6 || !strings.Contains(r.String(), "may be left: mem://"+lease+".probe/") {
		t.Errorf("%s%v", r, r.CleanUp)
	}
}

func TestAProbeEndsWithItsContext(t *testing.T) {
	for at := 1; at <= calls; at++ {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			s := &storeUnderProbe{plan: func(_ faultcas.Op, n int) (f faultcas.Fault) {
				if n == at {
					time.AfterFunc(0, cancel)
				}
				return faultcas.Fault{Delay: time.Second / 2}
			}}
			begun := time.Now()
			r := s.probe(ctx)
			if r.Verdict == cas.ProbeUnsupported {
				t.Errorf("at request %d: %v", at, r.Err())
			}
			if ctx.Err() == nil {
				t.Fatal("the context did not end")
			}
			if took := time.Since(begun); took > 5*time.Second {
				t.Errorf("at request %d: %v", at, took)
			}
			synctest.Wait()
		})
	}
}

func TestAClientThatCannotBeOpenedIsUnknown(t *testing.T) {
	r := cas.Probe(t.Context(), cas.ProbeConfig{Object: lease, Open: func(context.Context) (cas.Bucket, error) {
		return nil, errors.New("no region is configured")
	}})
	if r.Verdict != cas.ProbeUnknown || r.Err() == nil || !strings.Contains(r.Err().Error(), "no region") {
		t.Errorf("%s: %v", r.Verdict, r.Err())
	}
}

// Cloud Storage takes one write of an object in a second.
func TestWritesOfOneObjectAreSpacedAndTheRestRunsBesideThem(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		last := map[string]time.Time{}
		store := mem.New()
		r := cas.Probe(t.Context(), cas.ProbeConfig{Object: lease, WriteInterval: time.Second, Open: func(context.Context) (cas.Bucket, error) {
			return watched{store.Open(), func(name string) {
				mu.Lock()
				defer mu.Unlock()
				now := time.Now()
				if gap := now.Sub(last[name]); gap > 0 && gap < time.Second && !last[name].IsZero() {
					t.Errorf("%s written again after %v", name, gap)
				}
				last[name] = now
			}}, nil
		}})
		if r.Verdict != cas.ProbeOK {
			t.Error(r)
		}
		if r.Took != 2*time.Second {
			t.Errorf("took %v, want two pauses of a second", r.Took)
		}
	})
}

type watched struct {
	cas.Bucket
	wrote func(name string)
}

func (w watched) Register(name string) cas.Register {
	return watchedRegister{w.Bucket.Register(name), name, w.wrote}
}

type watchedRegister struct {
	cas.Register
	name  string
	wrote func(string)
}

func (r watchedRegister) Create(ctx context.Context, data []byte) (cas.Version, error) {
	r.wrote(r.name)
	return r.Register.Create(ctx, data)
}

func (r watchedRegister) Replace(ctx context.Context, data []byte, old cas.Version) (cas.Version, error) {
	if old != "" { // never sent
		r.wrote(r.name)
	}
	return r.Register.Replace(ctx, data, old)
}
