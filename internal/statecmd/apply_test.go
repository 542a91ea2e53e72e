package statecmd

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
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

func TestTheDocumentIsReadBeforeTheLeaseAndWrittenOnThatVersion(t *testing.T) {
	w := newWorld()
	w.seal(t, 7)
	w.renew(coordinator.Released, 7)
	c := newCommand(Flags{})
	if err := c.set(t.Context(), w.document()); err != nil {
		t.Fatal(err)
	}
	if want := "doc load, lease load, doc replace"; w.order() != want {
		t.Errorf("%s, want %s", w.order(), want)
	}
	if w.value(t, "k") != "v" || c.out.String() != "sf2loki: set k = v\n" {
		t.Errorf("%s; %q", w.content("doc"), c.out.String())
	}
}

func TestATakeoverAtAnyPointMakesTheWriteAConflict(t *testing.T) {
	for _, when := range []string{"lease load 1", "doc replace 1"} {
		t.Run(when, func(t *testing.T) {
			w := newWorld()
			w.seal(t, 7)
			w.renew(coordinator.Released, 7)
			w.at[when] = func() { w.seal(t, 8) }
			err := newCommand(Flags{}).set(t.Context(), w.document())
			if cas.ClassOf(err) != cas.Conflict || !strings.Contains(err.Error(), "retry") || !strings.Contains(err.Error(), object) {
				t.Errorf("%v, want a conflict that says retry", err)
			}
			if w.value(t, "k") != "" {
				t.Errorf("written over the seal: %s", w.content("doc"))
			}
		})
	}
	t.Run("the lease as well", func(t *testing.T) {
		w := newWorld()
		w.seal(t, 7)
		w.renew(coordinator.Released, 7)
		w.at["lease load 1"] = func() { w.renew(coordinator.Held, 8); w.seal(t, 8) }
		err := newCommand(Flags{}).set(t.Context(), w.document())
		if err == nil || !strings.Contains(err.Error(), `held by "A", epoch 8`) || w.value(t, "k") != "" {
			t.Errorf("%v; %s", err, w.content("doc"))
		}
	})
}

func TestALivePairIsRefusedAndNothingIsWritten(t *testing.T) {
	for name, put := range map[string]func(*world){
		"held":    func(w *world) { w.renew(coordinator.Held, 7) },
		"expired": func(w *world) { w.renew(coordinator.Held, 7) }, // its stamps are of 2026-07-01
		"damaged": func(w *world) { w.put("lease", "junk") },
		"deleted": func(*world) {},
		"a hold that is over": func(w *world) {
			w.renew(coordinator.Held, 7)
			w.hold(time.Nanosecond)
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld()
			w.seal(t, 7)
			put(w)
			before := w.content("doc")
			for _, flags := range []Flags{{}, {DryRun: true}} {
				c := newCommand(flags)
				if err := c.set(t.Context(), w.document()); err == nil || !strings.Contains(err.Error(), "--force") || c.out.Len() > 0 {
					t.Errorf("%v, %q", err, c.out.String())
				}
			}
			if w.content("doc") != before || strings.Contains(w.order(), "replace") {
				t.Errorf("written: %s", w.order())
			}
			// Forced, it is said over what.
			c := newCommand(Flags{Force: true})
			if err := c.set(t.Context(), w.document()); err != nil || w.value(t, "k") != "v" {
				t.Errorf("forced: %v", err)
			}
			if !strings.Contains(c.err.String(), "--force: "+object+" is in use") {
				t.Errorf("%q", c.err.String())
			}
		})
	}
}

func TestUnderAHoldTheWriteComesAfterTheRelease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		session := w.seal(t, 7)
		w.renew(coordinator.Held, 7)
		w.hold(time.Hour)
		// The leader renews while its work drains, commits one last time, releases.
		go func() {
			for range 4 {
				<-time.After(2500 * time.Millisecond)
				w.renew(coordinator.Held, 7)
				commit(t, session, "mine", time.Now().String())
			}
			commit(t, session, "k", "the leader's last value")
			w.renew(coordinator.Released, 7)
		}()
		start := time.Now()
		c := newCommand(Flags{})
		if err := c.set(t.Context(), w.document()); err != nil {
			t.Fatal(err)
		}
		if waited := time.Since(start); waited < 10*time.Second || waited > 11*time.Second {
			t.Errorf("after %v, want with the first look after the release", waited)
		}
		if w.value(t, "k") != "v" || w.value(t, "mine") == "" {
			t.Error(w.content("doc"))
		}
		if !strings.Contains(c.err.String(), `waiting: the lease `+ours) || strings.Count(c.err.String(), "\n") != 1 {
			t.Errorf("%q", c.err.String())
		}
		// The version that was written on was read before the lease was seen released.
		all := strings.Split(w.order(), ", ")
		if tail := strings.Join(all[len(all)-3:], ", "); tail != "doc load, lease load, doc replace" {
			t.Errorf("the end was %s", tail)
		}
	})
}

func TestALastCommitUnderAHoldIsReadAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		session := w.seal(t, 7)
		w.renew(coordinator.Held, 7)
		w.hold(time.Hour)
		// Released and committed between our read of the document and of the lease.
		w.at["lease load 2"] = func() { w.renew(coordinator.Released, 7) }
		w.at["lease load 3"] = func() { commit(t, session, "mine", "last") }
		if err := newCommand(Flags{}).set(t.Context(), w.document()); err != nil {
			t.Fatal(err)
		}
		if w.value(t, "k") != "v" || w.value(t, "mine") != "last" {
			t.Errorf("%s; %s", w.content("doc"), w.order())
		}
	})
}

func TestAHoldThatEndsOrIsTakenBackEndsTheWait(t *testing.T) {
	for name, end := range map[string]func(*world){
		"taken back": func(w *world) {
			w.put("request", string(coordinator.Request{}.WithHold(nil).Marshal()))
		},
		"over": func(*world) {},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld()
				w.seal(t, 7)
				w.renew(coordinator.Held, 7)
				w.hold(10 * time.Second)
				ctx, stop := context.WithCancel(t.Context())
				defer stop()
				go func() { // a leader that does not obey
					for pause(ctx, 2*time.Second) == nil {
						w.renew(coordinator.Held, 7)
					}
				}()
				go func() {
					_ = pause(ctx, 5*time.Second)
					end(w)
				}()
				before := w.content("doc")
				err := newCommand(Flags{}).set(t.Context(), w.document())
				if err == nil || !strings.Contains(err.Error(), "renewed while this command watched") || w.content("doc") != before {
					t.Errorf("%v", err)
				}
			})
		})
	}
}

func TestALeaseThatStoodUnchangedForItsTTLIsStale(t *testing.T) {
	for name, c := range map[string]struct {
		flags  Flags
		hold   bool
		wanted time.Duration
	}{
		"waited for":      {Flags{Wait: true}, false, 15 * time.Second},
		"during the hold": {Flags{}, true, 15 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld()
				w.seal(t, 7)
				w.renew(coordinator.Held, 7)
				if c.hold {
					w.hold(time.Hour)
				}
				start := time.Now()
				if err := newCommand(c.flags).set(t.Context(), w.document()); err != nil {
					t.Fatal(err)
				}
				if waited := time.Since(start); waited < c.wanted || waited > c.wanted+2*time.Second {
					t.Errorf("after %v, want %v", waited, c.wanted)
				}
				if w.value(t, "k") != "v" {
					t.Error(w.content("doc"))
				}
			})
		})
	}
	t.Run("but not if it is renewed", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld()
			w.seal(t, 7)
			w.renew(coordinator.Held, 7)
			time.AfterFunc(5*time.Second, func() { w.renew(coordinator.Held, 7) })
			start := time.Now()
			err := newCommand(Flags{Wait: true}).set(t.Context(), w.document())
			if err == nil || !strings.Contains(err.Error(), "renewed while") || time.Since(start) > 7*time.Second || w.value(t, "k") != "" {
				t.Errorf("%v after %v", err, time.Since(start))
			}
		})
	})
	t.Run("and the renewal of a thawed leader makes it live again", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld()
			w.seal(t, 7)
			w.renew(coordinator.Held, 7)
			// It comes back after we judged the lease stale, before we looked again.
			w.at["doc load 2"] = func() { w.renew(coordinator.Held, 7) }
			err := newCommand(Flags{Wait: true}).set(t.Context(), w.document())
			if err == nil || w.value(t, "k") != "" {
				t.Errorf("%v; %s", err, w.content("doc"))
			}
		})
	})
}

func TestAnInterruptedWaitWritesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		w.seal(t, 7)
		w.renew(coordinator.Held, 7)
		w.hold(time.Hour)
		before := w.content("doc")
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		err := newCommand(Flags{}).set(ctx, w.document())
		if err == nil || !strings.Contains(err.Error(), "nothing was written") || w.content("doc") != before {
			t.Errorf("%v", err)
		}
	})
}

func TestADryRunSaysWhatItWouldDoAndWritesNothing(t *testing.T) {
	for name, c := range map[string]struct {
		put       func(*world)
		out, errs string
	}{
		"free":    {func(w *world) { w.renew(coordinator.Released, 7) }, "sf2loki: would set k = v\n", ""},
		"on hold": {func(w *world) { w.renew(coordinator.Held, 7); w.hold(time.Hour) }, "sf2loki: would set k = v\n", "would wait: "},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld()
			w.seal(t, 7)
			c.put(w)
			before := w.content("doc")
			cmd := newCommand(Flags{DryRun: true})
			if err := cmd.set(t.Context(), w.document()); err != nil {
				t.Fatal(err)
			}
			if cmd.out.String() != c.out || !strings.Contains(cmd.err.String(), c.errs) || w.content("doc") != before {
				t.Errorf("%q, %q", cmd.out.String(), cmd.err.String())
			}
		})
	}
}

func TestAStoreThatAnswersWithAnErrorIsNamedAndNothingIsWritten(t *testing.T) {
	for _, class := range []cas.Class{cas.Denied, cas.NoBucket, cas.Unsupported, cas.Ambiguous, cas.Contended} {
		for _, name := range []string{"doc", "lease"} {
			t.Run(name+" "+string(class), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					w := newWorld()
					w.seal(t, 7)
					w.renew(coordinator.Released, 7)
					d := w.document()
					bad := faultcas.Wrap(w.store.Open().Register(name), func(op faultcas.Op, _ int) faultcas.Fault {
						return faultcas.Fault{Refuse: class}
					})
					if name == "doc" {
						d.store = checkpoint.Open(bad, checkpoint.WithMaxAttempts(attempts))
					} else {
						d.leases[0].store = coordinator.FromRegister(bad)
					}
					before := w.content("doc")
					err := newCommand(Flags{}).set(t.Context(), d)
					if err == nil || !strings.Contains(err.Error(), class.Error()) || !strings.Contains(err.Error(), "mem://"+name) {
						t.Errorf("%v", err)
					}
					if w.content("doc") != before {
						t.Error("written")
					}
				})
			})
		}
	}
}

func TestALeaseThatAnswersTheSecondTimeIsRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		w.seal(t, 7)
		w.renew(coordinator.Released, 7)
		d := w.document()
		d.leases[0].store = coordinator.FromRegister(faultcas.Wrap(w.store.Open().Register("lease"), func(_ faultcas.Op, n int) faultcas.Fault {
			if n < leaseAttempts {
				return faultcas.Fault{Refuse: cas.Ambiguous}
			}
			return faultcas.Fault{}
		}))
		if err := newCommand(Flags{}).set(t.Context(), d); err != nil {
			t.Error(err)
		}
	})
}

func TestADamagedFenceStopsEveryVerbButTheRepair(t *testing.T) {
	w := newWorld()
	w.put("doc", `{"a": "1", "__fence_epoch__": "x"}`)
	w.renew(coordinator.Released, 7)
	err := newCommand(Flags{Force: true}).set(t.Context(), w.document())
	if cas.ClassOf(err) != cas.Corrupt || !strings.Contains(err.Error(), "repair-fence") || w.value(t, "k") != "" {
		t.Errorf("%v", err)
	}
	if !slices.Equal(strings.Split(w.order(), ", "), []string{"doc load"}) {
		t.Errorf("%s", w.order())
	}
}
