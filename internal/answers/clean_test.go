package answers

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/sf2loki/sf2loki-ha/coordinator"
)

// atOnce is how fast the work must hear of a loss.
const atOnce = 100 * time.Millisecond

// noise measures how late this machine wakes a timer, until it is ended: what a
// duration may be longer by without anybody's fault.
func noise() (end func() time.Duration) {
	stop, worst := make(chan struct{}), make(chan time.Duration, 1)
	go func() {
		var most time.Duration
		for {
			begun := time.Now()
			select {
			case <-stop:
				worst <- most
				return
			case <-time.After(5 * time.Millisecond):
				most = max(most, time.Since(begun)-5*time.Millisecond)
			}
		}
	}()
	return func() time.Duration { close(stop); return <-worst }
}

// A clean conflict is the store's own word that somebody else holds the lease: no
// question, no read-back, no grace.
func TestACleanConflictIsALossAtOnceWithNoFurtherRequest(t *testing.T) {
	for _, s := range Services() {
		t.Run(string(s), func(t *testing.T) {
			w, r := leads(t, s)
			measured := noise()
			w.arm(step{before: taken})
			r.clock.jump(renew)
			r.await("the end of the work", func() bool { return len(r.worked()) == 1 })
			slack := measured()
			ended := r.worked()[0]
			if !errors.Is(ended.cause, coordinator.ErrLost) {
				t.Errorf("cause %v, want ErrLost", ended.cause)
			}

			// The work takes its time to die. Nothing is sent meanwhile.
			<-time.After(2 * atOnce)
			want := map[Service]string{S3: "replace @2", GCS: "replace @2", K8s: "replace @2, load"}[s] // a 409 is no word about the holder, the read is
			if got := w.arrivals(); got != want {
				t.Errorf("requests while the work ends: %s, want %s", got, want)
			}
			took := ended.at.Sub(w.answered())
			if took > atOnce+slack {
				t.Errorf("the work heard of it %v after the answer, want %v and at most the %v by which this machine was late", took, atOnce, slack)
			}
			t.Logf("heard after %v; timers were late by up to %v", took, slack)

			// Then it is a standby, and polls.
			r.letEnd()
			r.await("the next poll", func() bool {
				return strings.HasSuffix(w.arrivals(), "replace @2, load") && r.count(coordinator.BecameStandby) == 2
			})
			if r.count(coordinator.WriteInDoubt, coordinator.WriteSettled) != 0 {
				t.Errorf("a clean conflict was questioned;%s", r.story())
			}
		})
	}
}
