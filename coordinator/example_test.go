package coordinator_test

import (
	"context"
	"fmt"
	"time"

	"github.com/sf2loki/sf2loki-ha/cas/mem"
	"github.com/sf2loki/sf2loki-ha/checkpoint"
	"github.com/sf2loki/sf2loki-ha/coordinator"
)

// A program that works only while it leads, and keeps its position in a
// document that a stale leader cannot move. In production the bucket is
// s3.Open or gcs.Open.
func Example() {
	bucket := mem.New().Open()
	defer bucket.Close()
	config := coordinator.Config{Identity: "task-1", TTL: time.Second, RenewInterval: 300 * time.Millisecond, PollInterval: 100 * time.Millisecond,
		CallTimeout: 100 * time.Millisecond, StopGrace: 100 * time.Millisecond}

	lease := coordinator.FromRegister(bucket.Register("leader.lease"))
	// The seal carries the lease's name and ttl, and the election reads the
	// fence before each claim: the epoch never goes back, even if somebody
	// deletes the lease.
	state := checkpoint.Open(bucket.Register("state.json"), checkpoint.WithLease(lease.Describe(), config.TTL))
	elector, err := coordinator.New(lease, config, coordinator.WithFence(state))
	if err != nil {
		fmt.Println(err) // names every field that is wrong, with the numbers and the fix
		return
	}

	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	err = elector.Run(ctx, func(ctx context.Context, t *coordinator.Term) error {
		session, err := state.Seal(ctx, t) // seal first, work second
		if err != nil {
			return err
		}
		defer session.Close(context.WithoutCancel(ctx))
		fmt.Println("leading at epoch", t.Epoch())
		if err := session.Commit(ctx, map[string]string{"position": "42"}); err != nil {
			return err
		}
		stop() // a real program works until ctx ends, and returns by t.KillAt()
		<-ctx.Done()
		return nil
	})
	fmt.Println("stopped:", err)
	// Output:
	// leading at epoch 1
	// stopped: <nil>
}
