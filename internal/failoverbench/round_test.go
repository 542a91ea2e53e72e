package failoverbench

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sf2loki/sf2loki-ha/cas"
	"github.com/sf2loki/sf2loki-ha/cas/mem"
)

// puppet is a contestant that does what the test says, at the times it says: the
// first replica writes every 3 s from its start, and the second acquires takeover
// after its own.
func puppet(place Place, takeover time.Duration) Contestant {
	c := Contestant{Place: place, About: About{Name: "puppet", Ours: true, TTL: 10 * time.Second}}
	c.start = func(ctx context.Context, site Site, id string, link *Link, tell func(Milestone)) (<-chan struct{}, error) {
		bucket, err := site.Place.Open(link)
		if err != nil {
			return nil, err
		}
		reg := linked{bucket, link}.Register(site.Lease)
		pause := func(d time.Duration) bool {
			select {
			case <-time.After(d):
				return true
			case <-ctx.Done():
				return false
			}
		}
		done := make(chan struct{})
		go func() {
			defer close(done)
			if id == "second" {
				for end := time.Now().Add(takeover); time.Now().Before(end) && pause(time.Second); {
					_, _ = reg.Load(ctx)
				}
				tell(Acquired)
				pause(200 * time.Millisecond)
				tell(Sealed)
				pause(300 * time.Millisecond)
				tell(Started)
				<-ctx.Done()
				return
			}
			tell(Started)
			var v cas.Version
			for n := 0; ; n++ {
				if begin := time.Now(); n == 0 {
					v, err = reg.Create(ctx, []byte("x"))
				} else {
					v, err = reg.Replace(ctx, []byte("x"), v)
					if !pause(3*time.Second - time.Since(begin)) {
						return
					}
				}
				if err != nil {
					return
				}
			}
		}()
		return done, nil
	}
	return c
}

func TestARoundIsMeasuredExactly(t *testing.T) {
	latency := Latency{Read: 60 * time.Millisecond, Write: 100 * time.Millisecond}
	const s, ms = time.Second, time.Millisecond
	for name, c := range map[string]struct {
		crash time.Duration
		age   time.Duration
	}{
		// It writes at 0 and 100 ms, then every 3 s; a write lands 50 ms later.
		"between two renewals":      {31 * s, 31*s - (30*s + 150*ms)},
		"just after a landing":      {30*s + 151*ms, 1 * ms},
		"with a renewal on its way": {30*s + 120*ms, -30 * ms},
		"just before a send":        {30*s + 99*ms, 30*s + 99*ms - (27*s + 150*ms)},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				// The second one starts at 8 s and acquires at 48 s.
				plan := Plan{Second: 8 * s, Quiet: 18 * s, Crash: c.crash}
				p, err := puppet(NewMemory(), 40*s).play(t.Context(), plan, "lease", latency, nil)
				if err != nil {
					t.Fatal(err)
				}
				r := Result{About: About{TTL: 10 * s}, Rounds: []Round{p.Round}}
				// A second and a read, until 40 s have passed: the last read ends at 40.28 s.
				acquired := 8*s + 38*1060*ms
				want := Round{Crash: c.crash, Age: c.age, Failover: acquired - c.crash, Seal: acquired + 200*ms - c.crash, Start: acquired + 500*ms - c.crash}
				if p.Round != want {
					t.Errorf("%+v\nwant %+v", p.Round, want)
				}
				if limit := r.Limit().Mean; limit != 10*s-c.age {
					t.Errorf("limit %v", limit)
				}
				if r.AfterRenewal().Max != want.Failover+c.age || r.Seal().Mean != 200*ms || r.Start().Mean != 500*ms {
					t.Errorf("%v after the renewal, seal %v, start %v", r.AfterRenewal().Max, r.Seal().Mean, r.Start().Mean)
				}
				leader, standby := p.leader.perHour(), p.standby.perHour()
				if leader.Writes != 1200 || leader.Reads != 0 || standby.Writes != 0 || standby.Reads < 3100 || standby.Reads > 3600 {
					t.Errorf("leader %+v, standby %+v", leader, standby)
				}
			})
		})
	}
}

func TestARoundThatIsNoFailoverIsAnError(t *testing.T) {
	for name, c := range map[string]struct {
		contestant func(*Memory) Contestant
		plan       Plan
		want       string
	}{
		"the second leads before the crash": {func(m *Memory) Contestant { return puppet(m, 10*time.Second) }, Plan{Second: time.Second, Quiet: 5 * time.Second, Crash: 20 * time.Second}, "before the first one crashed"},
		"nobody takes over":                 {func(m *Memory) Contestant { return puppet(m, time.Hour) }, Plan{Second: time.Second, Quiet: 5 * time.Second, Crash: 20 * time.Second}, "not reached within 1m0s"},
		"nobody leads at all": {func(m *Memory) Contestant {
			c := puppet(m, time.Hour)
			start := c.start
			c.start = func(ctx context.Context, site Site, id string, link *Link, _ func(Milestone)) (<-chan struct{}, error) {
				return start(ctx, site, id, link, func(Milestone) {})
			}
			return c
		}, Plan{Second: time.Second, Quiet: 5 * time.Second, Crash: 20 * time.Second}, "does not lead"},
		"a replica that cannot start": {func(m *Memory) Contestant {
			c := puppet(m, time.Hour)
			c.start = func(context.Context, Site, string, *Link, func(Milestone)) (<-chan struct{}, error) {
				return nil, errors.New("no door")
			}
			return c
		}, Plan{}, "no door"},
	} {
		synctest.Test(t, func(t *testing.T) {
			_, err := Run(t.Context(), []Contestant{c.contestant(NewMemory())}, []Plan{c.plan}, Latency{}, nil, func() {})
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%s: %v; want %q", name, err, c.want)
			}
		})
	}
}

func TestACutLinkHearsAndSendsNothingAndWhatWasSentArrives(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := mem.New()
		link := newLink(Latency{Write: 2 * time.Second})
		reg := linked{slow{store.Open(), link}, link}.Register("x")
		go func() {
			<-time.After(time.Second / 2)
			link.Cut()
		}()
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		begin := time.Now()
		for range 2 {
			if _, err := reg.Create(ctx, nil); cas.ClassOf(err) != cas.Ambiguous || time.Since(begin) != 5*time.Second {
				t.Errorf("%v after %v; want silence until the deadline", err, time.Since(begin))
			}
		}
		if v, err := store.Open().Register("x").Load(t.Context()); err != nil || v.Age != 4*time.Second {
			t.Errorf("the write that was on its way: %+v, %v", v, err)
		}
		if at := link.Landed().Sub(begin); at != time.Second || len(link.writes) != 1 {
			t.Errorf("landed at %v, %d writes arrived", at, len(link.writes))
		}
	})
}

func TestTheSameSeedCrashesAtTheSameInstants(t *testing.T) {
	a, b := Plans(7, 40, 15*time.Second, 5*time.Second, time.Minute), Plans(8, 40, 15*time.Second, 5*time.Second, time.Minute)
	same, crashes := 0, map[time.Duration]bool{}
	for i, p := range Plans(7, 40, 15*time.Second, 5*time.Second, time.Minute) {
		if p != a[i] {
			t.Errorf("plan %d differs", i)
		}
		if p == b[i] {
			same++
		}
		crashes[p.Crash] = true
		if p.Second < 20*time.Second || p.Quiet < p.Second+20*time.Second || p.Crash != p.Quiet+20*time.Second || p.Begin != time.Duration(i)*1500*time.Millisecond {
			t.Errorf("%+v", p)
		}
	}
	if same > 1 || len(crashes) < 39 {
		t.Errorf("%d plans of another seed are the same; %d different crashes", same, len(crashes))
	}
}
