package bounded

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

func TestCallReturnsWhenTheContextEndsThoughTheFunctionHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		told := make(chan struct{})
		release := make(chan struct{})
		start := time.Now()
		_, err := Call(ctx, func(ctx context.Context) (int, error) {
			<-ctx.Done()
			close(told)
			<-release // deaf from here on
			return 1, nil
		})
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("err = %v, want deadline exceeded", err)
		}
		if d := time.Since(start); d != time.Second {
			t.Errorf("returned after %v, want 1s", d)
		}
		<-told
		close(release) // synctest fails the test if the goroutine stays
	})
}

func TestCallTellsTheFunctionThatNobodyWaits(t *testing.T) {
	var inner context.Context
	v, err := Call(t.Context(), func(ctx context.Context) (int, error) { inner = ctx; return 7, nil })
	if v != 7 || err != nil {
		t.Fatalf("got %d, %v", v, err)
	}
	if inner.Err() == nil {
		t.Error("the context given to the function outlives Call")
	}
}

func TestCallDoesNotStartForAContextThatHasEnded(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := Call(ctx, func(context.Context) (int, error) { t.Error("started"); return 0, nil })
	if !errors.Is(err, context.Canceled) {
		t.Errorf("err = %v", err)
	}
}
