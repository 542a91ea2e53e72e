package statecmd

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sf2loki/sf2loki-ha/coordinator"
)

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
