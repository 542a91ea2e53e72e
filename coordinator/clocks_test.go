package coordinator

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sf2loki/sf2loki-ha/cas"
)

// life plays one life of a replica against a script: it takes a stale lease
// over, renews it three times, and then no write is answered any more. It
// returns every decision with its instant; wall is the wall clock.
func life(t *testing.T, wall func(n int) time.Time) []string {
	t.Helper()
	b := newBench(t, fast, false)
	var trace []string
	n, writes := 0, 0
	step := func(in input) {
		n++
		in.at, in.wall = b.now, wall(n)
		actions, wake := b.m.step(in)
		for _, a := range actions {
			trace = append(trace, fmt.Sprintf("%d: action %d, condition %+v, timeout %v, term %+v, kill %d, event %s, wake %d",
				b.now, a.kind, a.cond, a.timeout, a.term, a.killAt, a.event.Kind, wake))
		}
	}
	for end := b.now.Add(30 * time.Second); b.now < end; b.now = b.now.Add(50 * time.Millisecond) {
		step(input{kind: inTick})
		op := b.m.op
		if op == nil {
			continue
		}
		in := input{kind: inResult, op: op.id}
		switch {
		case op.kind == opRead && b.m.phase == standby:
			in.lease = Lease{Version: "v1", Record: held(3, "x")}
		case op.kind == opRead:
			in.lease = Lease{Version: b.m.ver, Record: b.m.mine}
		default:
			if writes++; writes <= 4 {
				in.version = cas.Version(fmt.Sprint("own-", writes))
			} else {
				in.err = cas.Ambiguous
			}
		}
		step(in)
	}
	return trace
}

// Every decision is taken on the boot-time clock: the wall clock is for people,
// and stepping it, also while all renewals fail, moves no instant.
func TestAWallClockThatIsSteppedChangesNothing(t *testing.T) {
	begin := time.Date(2026, 3, 29, 0, 59, 59, 0, time.UTC)
	want := life(t, func(n int) time.Time { return begin.Add(time.Duration(n) * 25 * time.Millisecond) })
	joined := strings.Join(want, "\n")
	for _, part := range []string{string(Acquired), string(Renewed), string(Expired)} {
		if !strings.Contains(joined, "event "+part) {
			t.Fatalf("the life has no %s: the test proves nothing\n%s", part, joined)
		}
	}
	for name, wall := range map[string]func(n int) time.Time{
		"an hour ahead":           func(int) time.Time { return begin.Add(time.Hour) },
		"an hour behind":          func(int) time.Time { return begin.Add(-time.Hour) },
		"back to the epoch":       func(int) time.Time { return time.Unix(0, 0) },
		"steps back in the term":  func(n int) time.Time { return begin.Add(-time.Duration(n/300) * time.Hour) },
		"steps ahead in the term": func(n int) time.Time { return begin.Add(time.Duration(n/300) * time.Hour) },
		"never the same twice":    func(n int) time.Time { return begin.Add(time.Duration((n*7919)%1000-500) * time.Minute) },
	} {
		if got := life(t, wall); !slices.Equal(got, want) {
			for i := range min(len(got), len(want)) {
				if got[i] != want[i] {
					t.Errorf("%s: decided\n%s\nwant\n%s", name, got[i], want[i])
					break
				}
			}
			if len(got) != len(want) {
				t.Errorf("%s: %d decisions, want %d", name, len(got), len(want))
			}
		}
	}
}

// suspended is a boot-time clock that went on while the machine slept; Go's
// timers stood still meanwhile.
type suspended struct {
	fakeClock
	slept *atomic.Int64
}

func (c suspended) Now() Instant { return c.fakeClock.Now().Add(time.Duration(c.slept.Load())) }

// After a suspend the term is over for whoever asks, with no help of a timer,
// and the work is told within 100 ms.
func TestATermEndsWithASuspendThoughTimersStoodStill(t *testing.T) {
	for _, slept := range []time.Duration{6 * time.Second, 2 * time.Minute, 10 * time.Hour} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t)
			clock := suspended{fakeClock{w.start}, &atomic.Int64{}}
			a := w.replica("a", fast, WithClock(clock))
			terms, ended := make(chan *Term, 1), make(chan error, 1)
			ctx, cancel := context.WithCancel(context.Background())
			go func() {
				a.done <- a.elector.Run(ctx, func(ctx context.Context, own *Term) error {
					if len(ended) == 0 {
						terms <- own
					}
					<-ctx.Done()
					ended <- context.Cause(ctx)
					return nil
				})
			}()
			own := <-terms
			sleep(500 * time.Millisecond)
			if a.role() != RoleLeader || own.CheckFence() != nil {
				t.Fatal("does not lead")
			}
			clock.slept.Store(int64(slept))
			if err := own.CheckFence(); !errors.Is(err, ErrExpired) || a.role() == RoleLeader || own.Remaining() > 0 {
				t.Errorf("after %v of sleep: %v, %s, %v remain", slept, err, a.role(), own.Remaining())
			}
			sleep(100 * time.Millisecond)
			select {
			case cause := <-ended:
				if !errors.Is(cause, ErrExpired) {
					t.Errorf("the work ended with %v", cause)
				}
			default:
				t.Errorf("the work was not told within 100 ms")
			}
			cancel()
			if err := <-a.done; err != nil {
				t.Error(err)
			}
		})
	}
}

// The times in a record of our own are for people as well: after a cold start of
// every replica the old record, however old it says it is, stands one window; a
// tombstone that the checkpoint document confirms costs nothing.
func TestAColdStartWaitsOneWindowWhateverTheRecordSays(t *testing.T) {
	for name, offset := range map[string]time.Duration{"last year": -365 * 24 * time.Hour, "now": 0, "next year": 365 * 24 * time.Hour} {
		for state, c := range map[State]struct{ from, to time.Duration }{Held: {6 * time.Second, 6200 * time.Millisecond}, Released: {0, 200 * time.Millisecond}} {
			t.Run(fmt.Sprintf("%s, %s", state, name), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					w := newWorld(t)
					old := held(7, "gone")
					old.State, old.AcquiredAt, old.RenewedAt = state, w.start.Add(offset), w.start.Add(offset)
					old.ExpiresAt = w.start.Add(offset + 6*time.Second)
					w.put(text(t, old))
					fence := WithFence(&fences{fence: Fence{Epoch: 7, Found: true}})
					a, b := w.replica("a", fast, fence).run(), w.replica("b", fast, fence).run()
					defer a.stop()
					defer b.stop()
					sleep(30 * time.Second)
					starts := w.starts()
					if len(starts) != 1 || starts[0].epoch != 8 {
						t.Fatalf("%+v, want one term at epoch 8", starts)
					}
					if after := starts[0].at.Sub(w.start); after < c.from || after > c.to {
						t.Errorf("led after %v, want %v to %v", after, c.from, c.to)
					}
				})
			})
		}
	}
}

// What is observed says how long its window is, so that a delay at a first start
// is explained: also over what a removed deployment left behind.
func TestWhatIsObservedSaysWhenItCanBeClaimed(t *testing.T) {
	long := held(3, "x")
	long.TTL = 45 * time.Second
	for name, c := range map[string]struct {
		lease Lease
		err   error
		want  time.Duration
	}{
		"absent":                        {Lease{}, cas.NotFound, 6 * time.Second},
		"left behind by our own kind":   {Lease{Version: "v", Record: long}, nil, 45 * time.Second},
		"left behind by another":        {Lease{Version: "v", Record: Record{Holder: "u", Epoch: 4}}, nil, time.Minute},
		"left behind and not a record":  {Lease{Version: "v", Corrupt: errors.New("junk")}, nil, time.Minute},
		"with a ttl shorter than ours":  {Lease{Version: "v", Record: Record{Holder: "u", Incarnation: "i", Epoch: 4, TTL: time.Second}}, nil, 6 * time.Second},
		"with a state of another world": {Lease{Version: "v", Record: Record{Holder: "u", Incarnation: "i", Epoch: 4, State: "?"}}, nil, 6 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, fast, false)
			b.tick(0)
			for _, a := range b.answer(input{lease: c.lease, err: c.err}) {
				if a.kind == doEmit && a.event.Kind == Observed {
					if a.event.Left != c.want {
						t.Errorf("claimable in %v, want %v", a.event.Left, c.want)
					}
					return
				}
			}
			t.Error("nothing was said")
		})
	}
}
