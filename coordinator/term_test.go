package coordinator

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

func TestTheFenceOfATermFailsByTheClockAndAfterALoss(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		clock := fakeClock{time.Now()}
		now := clock.Now()
		term := newTerm(3, "t", now.Add(5*time.Second), now.Add(4*time.Second), clock)
		if err := term.CheckFence(); err != nil || term.Remaining() != 5*time.Second {
			t.Fatalf("%v, %v remaining", err, term.Remaining())
		}
		changed := term.Changed()
		term.move(now.Add(9*time.Second), now.Add(8*time.Second))
		<-changed // a renewal wakes whoever watches the instant
		sleep(7999 * time.Millisecond)
		if err := term.CheckFence(); err != nil {
			t.Errorf("before its kill instant: %v", err)
		}
		sleep(time.Millisecond)
		if err := term.CheckFence(); !errors.Is(err, ErrExpired) {
			t.Errorf("at its kill instant: %v, want ErrExpired with no help from any goroutine", err)
		}
		// Time given back after a loss changes nothing.
		term.end(ErrLost)
		term.move(now.Add(time.Hour), now.Add(time.Hour))
		if err := term.CheckFence(); !errors.Is(err, ErrLost) {
			t.Errorf("after a loss: %v", err)
		}
	})
}

func TestWorkFindsItsTermInItsContext(t *testing.T) {
	term := newTerm(1, "t", 2, 1, SystemClock{})
	if FromContext(withTerm(t.Context(), term)) != term || FromContext(t.Context()) != nil {
		t.Error("FromContext does not return the term of the context")
	}
}
