package statecmd

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sf2loki/sf2loki-ha/cas"
	"github.com/sf2loki/sf2loki-ha/checkpoint"
	"github.com/sf2loki/sf2loki-ha/coordinator"
	"github.com/sf2loki/sf2loki-ha/internal/faultcas"
)

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
