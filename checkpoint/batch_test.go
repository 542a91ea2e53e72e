package checkpoint_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sf2loki/sf2loki-ha/cas"
	"github.com/sf2loki/sf2loki-ha/checkpoint"
	"github.com/sf2loki/sf2loki-ha/internal/faultcas"
)

func TestConcurrentCommitsShareAWrite(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := newObject(func(faultcas.Op, int) faultcas.Fault { return faultcas.Fault{Delay: 20 * time.Millisecond} })
		s := o.seal(t, &term{epoch: 1, id: "a"})
		var wg sync.WaitGroup
		for i := range 100 {
			wg.Go(func() { commit(t, s, fmt.Sprintf("k%02d", i), fmt.Sprint(i)) })
		}
		wg.Wait()
		for i := range 100 {
			if got := o.value(t, fmt.Sprintf("k%02d", i)); got != fmt.Sprint(i) {
				t.Errorf("k%02d = %q", i, got)
			}
		}
		if n := o.Calls(faultcas.Replace); n > 3 {
			t.Errorf("%d writes for 100 concurrent commits", n)
		}
	})
}

func TestWritesKeepTheirDistanceAndTheLastValueWins(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var sent []time.Time
		o := newObject(func(op faultcas.Op, _ int) faultcas.Fault {
			if op != faultcas.Load {
				mu.Lock()
				sent = append(sent, time.Now())
				n := len(sent)
				mu.Unlock()
				if n == 3 {
					return faultcas.Fault{Delay: 30 * time.Millisecond, Refuse: cas.Contended}
				}
			}
			return faultcas.Fault{Delay: 30 * time.Millisecond}
		})
		s := o.seal(t, &term{epoch: 1, id: "a"}, checkpoint.WithMinWriteInterval(time.Second))
		var wg sync.WaitGroup
		for i := range 30 {
			elapse(100 * time.Millisecond)
			wg.Go(func() { commit(t, s, "k", fmt.Sprintf("%02d", i)) })
		}
		wg.Wait()
		for i := 1; i < len(sent); i++ {
			if gap := sent[i].Sub(sent[i-1]); gap < time.Second+30*time.Millisecond {
				t.Errorf("write %d came %v after the one before", i, gap)
			}
		}
		if len(sent) < 4 || len(sent) > 6 || o.value(t, "k") != "29" {
			t.Errorf("%d writes in 3 s, k = %q", len(sent), o.value(t, "k"))
		}
	})
}

func TestACommitThatGivesUpDoesNotFailTheOthers(t *testing.T) {
	for _, interval := range []time.Duration{0, 500 * time.Millisecond} {
		// With an interval the two share a batch, without they wait in turn.
		testGivingUp(t, interval)
	}
}

func testGivingUp(t *testing.T, interval time.Duration) {
	synctest.Test(t, func(t *testing.T) {
		o := newObject(nil)
		s := o.seal(t, &term{epoch: 1, id: "a"}, checkpoint.WithMaxAttempts(1000), checkpoint.WithMinWriteInterval(interval))
		o.Plan(always(faultcas.Replace, faultcas.Fault{Refuse: cas.Ambiguous}))
		short, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		impatient := make(chan error, 1)
		patient := make(chan error, 1)
		go func() { impatient <- s.Commit(short, map[string]string{"a": "1"}) }()
		synctest.Wait()
		go func() { patient <- s.Commit(t.Context(), map[string]string{"b": "2"}) }()
		elapse(3 * time.Second)
		o.Plan(nil)
		if err := <-impatient; !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("impatient: %v", err)
		}
		if err := <-patient; err != nil || o.value(t, "b") != "2" {
			t.Errorf("patient: %v, %s", err, o.content(t))
		}
	})
}

func TestCloseFinishesWhatIsUnderWayAndRefusesTheRest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := newObject(func(faultcas.Op, int) faultcas.Fault { return faultcas.Fault{Delay: 100 * time.Millisecond} })
		s := o.seal(t, &term{epoch: 1, id: "a"}, checkpoint.WithMinWriteInterval(time.Second))
		var wg sync.WaitGroup
		for i := range 5 {
			wg.Go(func() { commit(t, s, fmt.Sprintf("k%d", i), "v") })
		}
		synctest.Wait()
		if err := s.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		defer wg.Wait()
		for i := range 5 {
			if o.value(t, fmt.Sprintf("k%d", i)) != "v" {
				t.Errorf("k%d was lost: %s", i, o.content(t))
			}
		}
		if err := s.Commit(t.Context(), map[string]string{"late": "1"}); !errors.Is(err, checkpoint.ErrClosed) {
			t.Errorf("after close: %v", err)
		}
		if f, err := o.open().Fence(t.Context()); err != nil || f.Epoch != 1 || f.Term != "a" {
			t.Errorf("close took the fence away: %+v, %v", f, err)
		}
		if err := s.Close(t.Context()); err != nil {
			t.Errorf("second close: %v", err)
		}
	})
}

func TestCloseWritesWhatACallLeftWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := newObject(nil)
		s := o.seal(t, &term{epoch: 1, id: "a"})
		o.Plan(nth(faultcas.Replace, 1, faultcas.Fault{Delay: 5 * time.Second}))
		first := make(chan error, 1)
		go func() { first <- s.Commit(t.Context(), map[string]string{"k": "1"}) }()
		synctest.Wait()
		short, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		err := s.Commit(short, map[string]string{"k": "2"})
		if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "may have been written") {
			t.Errorf("error %v", err)
		}
		if err := errors.Join(s.Close(t.Context()), <-first); err != nil {
			t.Fatal(err)
		}
		if o.value(t, "k") != "2" {
			t.Errorf("k = %q", o.value(t, "k"))
		}
	})
}

func TestCloseIsBoundedByItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := newObject(nil)
		s := o.seal(t, &term{epoch: 1, id: "a"})
		o.Plan(always(faultcas.Replace, faultcas.Fault{Delay: time.Hour}))
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		done := make(chan struct{})
		go func() {
			defer close(done)
			_ = s.Commit(ctx, map[string]string{"k": "1"})
		}()
		synctest.Wait()
		short, cancelShort := context.WithTimeout(t.Context(), time.Second)
		defer cancelShort()
		start := time.Now()
		if err := s.Close(short); !errors.Is(err, context.DeadlineExceeded) || time.Since(start) != time.Second {
			t.Errorf("close: %v after %v", err, time.Since(start))
		}
		cancel()
		<-done
	})
}
