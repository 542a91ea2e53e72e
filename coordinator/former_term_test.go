package coordinator

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

// What somebody says of the work of a former term is not about the work that runs.
func TestWhatIsSaidOfAFormerTermDoesNotCountForTheNextOne(t *testing.T) {
	for name, say := range map[string]func(*Term){"failed": (*Term).Failed, "settled": (*Term).Settled} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				a := w.replica("a", fast)
				terms := make(chan *Term, 4)
				ctx, cancel := context.WithCancel(context.Background())
				done := make(chan error, 1)
				go func() {
					done <- a.elector.Run(ctx, func(ctx context.Context, t *Term) error {
						terms <- t
						<-ctx.Done()
						return nil
					})
				}()
				sleep(10 * time.Second)
				first := <-terms
				a.elector.StepDown("test")
				sleep(20 * time.Second)
				second := <-terms
				second.Failed()
				sleep(5 * time.Second)
				was := w.record().Work
				say(first)
				sleep(5 * time.Second)
				if now := w.record().Work; now.Failures != was.Failures || was.Failures != 1 || !slices.Equal(now.Incarnations, was.Incarnations) {
					t.Errorf("the record of the second term says %+v, it said %+v", now, was)
				}
				cancel()
				if err := <-done; err != nil {
					t.Error(err)
				}
				// After Run has returned nothing hangs.
				say(first)
				say(second)
			})
		})
	}
}
