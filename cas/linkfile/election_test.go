package linkfile_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sf2loki/sf2loki-ha/cas/linkfile"
	"github.com/sf2loki/sf2loki-ha/coordinator"
)

// Elections on real files and fake time.

var timing = coordinator.Config{TTL: 30 * time.Second, RenewInterval: 10 * time.Second, PollInterval: time.Second}

// isForeign is how a replica tells a record of sf2loki from ours.
func isForeign(data []byte) bool {
	r, err := coordinator.ParseRecord(data)
	return err == nil && r.Foreign() && r.Holder != ""
}

// fakeClock follows the fake time of a bubble.
type fakeClock struct{ start time.Time }

func (c fakeClock) Now() coordinator.Instant {
	return coordinator.Instant(time.Hour + time.Since(c.start))
}

// pass lets fake time go by.
func pass(d time.Duration) { <-time.After(d) }

// candidate is one elector on the path.
type candidate struct {
	stop func()

	mu     sync.Mutex
	epochs []int64
	ends   int
}

func (c *candidate) terms() (epochs []int64, ended int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.epochs, c.ends
}

func compete(t *testing.T, path, name string) *candidate {
	t.Helper()
	cfg := timing
	cfg.Identity = name
	reg := linkfile.New(path, linkfile.Options{MaxReadAge: cfg.TTL / 2, Foreign: isForeign})
	e, err := coordinator.New(coordinator.FromRegister(reg), cfg, coordinator.WithClock(fakeClock{time.Now()}))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	c := &candidate{}
	go func() {
		done <- e.Run(ctx, func(ctx context.Context, term *coordinator.Term) error {
			c.mu.Lock()
			c.epochs = append(c.epochs, term.Epoch())
			c.mu.Unlock()
			<-ctx.Done()
			c.mu.Lock()
			c.ends++
			c.mu.Unlock()
			return nil
		})
	}()
	c.stop = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("%s: %v", name, err)
		}
	})
	return c
}

// upstream writes the lease as sf2loki does.
func upstream(t *testing.T, path string, epoch int) {
	t.Helper()
	text := fmt.Sprintf(`{"holder": "sf2loki-7", "expires_at": %q, "epoch": %d}`, time.Now().UTC().Add(30*time.Second).Format("2006-01-02T15:04:05.000000-07:00"), epoch)
	if err := os.WriteFile(path+".up", []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(path+".up", path); err != nil {
		t.Fatal(err)
	}
}

func TestTheCopyHasUpstreamsShape(t *testing.T) {
	path := filepath.Join(t.TempDir(), "leader.lease")
	synctest.Test(t, func(t *testing.T) {
		a := compete(t, path, "A")
		defer a.stop()
		pass(timing.TTL + 15*time.Second)
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		var doc struct {
			Holder    any `json:"holder"`
			ExpiresAt any `json:"expires_at"`
			Epoch     any `json:"epoch"`
		}
		if err := json.Unmarshal(data, &doc); err != nil {
			t.Fatal(err)
		}
		text, _ := doc.ExpiresAt.(string)
		expires, err := time.Parse(time.RFC3339Nano, text)
		if doc.Holder != "A" || doc.Epoch != 1.0 || err != nil {
			t.Fatalf("%s", data)
		}
		// What upstream decides by: it is live, by its own clock.
		if left := time.Until(expires); left < 20*time.Second || left > 30*time.Second {
			t.Errorf("it expires in %v, want within the ttl of the last renewal", left)
		}
	})
}

func TestNobodyClaimsWhileAnUpstreamReplicaKeepsRewritingTheFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "leader.lease")
	synctest.Test(t, func(t *testing.T) {
		upstream(t, path, 7)
		a := compete(t, path, "A")
		defer a.stop()
		for range 30 {
			pass(10 * time.Second) // upstream renews
			if epochs, _ := a.terms(); len(epochs) > 0 {
				t.Fatalf("it leads, epochs %v", epochs)
			}
			upstream(t, path, 7)
		}
		// It stops renewing. The lease is contested after 60 s, not after our ttl,
		// and with a higher epoch.
		pass(59 * time.Second)
		if epochs, _ := a.terms(); len(epochs) > 0 {
			t.Fatalf("it leads before 60 s have passed, epochs %v", epochs)
		}
		pass(5 * time.Second)
		if epochs, _ := a.terms(); len(epochs) != 1 || epochs[0] != 8 {
			t.Errorf("epochs %v, want one term of epoch 8", epochs)
		}
	})
}

func TestALeaderWhoseFileUpstreamRewritesEndsItsTermAndComesBackAfterIt(t *testing.T) {
	path := filepath.Join(t.TempDir(), "leader.lease")
	synctest.Test(t, func(t *testing.T) {
		a := compete(t, path, "A")
		defer a.stop()
		pass(time.Minute)
		if epochs, ended := a.terms(); len(epochs) != 1 || ended != 0 {
			t.Fatalf("epochs %v, %d ended", epochs, ended)
		}
		upstream(t, path, 2)
		pass(timing.RenewInterval + time.Second)
		if _, ended := a.terms(); ended != 1 {
			t.Fatal("it still leads after a renewal was due")
		}
		pass(2 * time.Minute)
		if epochs, _ := a.terms(); len(epochs) != 2 || epochs[1] != 3 {
			t.Errorf("epochs %v, want a second term of epoch 3", epochs)
		}
	})
}

func TestTwoCandidatesOnOnePathHaveOneLeaderAndAHandOver(t *testing.T) {
	path := filepath.Join(t.TempDir(), "leader.lease")
	synctest.Test(t, func(t *testing.T) {
		a, b := compete(t, path, "A"), compete(t, path, "B")
		defer a.stop()
		defer b.stop()
		pass(20 * time.Minute) // more renewals than versions are kept
		first, second := a, b
		if epochs, _ := b.terms(); len(epochs) > 0 {
			first, second = b, a
		}
		if epochs, ended := first.terms(); len(epochs) != 1 || ended != 0 {
			t.Fatalf("the leader: epochs %v, %d ended", epochs, ended)
		}
		if epochs, _ := second.terms(); len(epochs) != 0 {
			t.Fatalf("the standby led, epochs %v", epochs)
		}
		first.stop()
		pass(5 * time.Second)
		if epochs, _ := second.terms(); len(epochs) != 1 || epochs[0] != 2 {
			t.Errorf("the standby: epochs %v, want one term of epoch 2", epochs)
		}
	})
}
