package sim

import (
	"math/rand/v2"
	"time"

	"github.com/sf2loki/sf2loki-ha/coordinator"
)

// settings is what a history is drawn with.
type settings struct {
	fenced  bool    // there is a checkpoint document
	socket  bool    // the work commits through its supervisor, else by itself
	people  bool    // there is a request object, and people write it
	rolling bool    // replicas start with different revisions
	limited bool    // the bucket takes one write of an object a second
	replays bool    // some proxy sends requests twice
	skewed  bool    // wall clocks step
	trouble float64 // probability that a request meets a fault
	end     int64   // of the faults
}

// profiles are the durations that replicas are drawn from.
var profiles = []coordinator.Config{
	{TTL: 6 * time.Second, RenewInterval: 2 * time.Second, PollInterval: time.Second},
	{TTL: 3 * time.Second, RenewInterval: time.Second, PollInterval: 500 * time.Millisecond},
	{TTL: 20 * time.Second, RenewInterval: 6 * time.Second, PollInterval: 2 * time.Second},
	{TTL: 8 * time.Second, RenewInterval: 2 * time.Second, PollInterval: time.Second, MinWriteInterval: time.Second},
}

// spacious is the profile that fits a bucket which limits writes.
const spacious = 3

const documentName = "state"

// group is the replicas of one lease.
type group struct {
	lease   string // the name of its object
	epochs  int64  // highest epoch that ever landed
	touched bool   // the operator has interfered in this history
	led     map[string]bool
}

func (g *group) requests() string { return g.lease + coordinator.RequestSuffix }

func newWorld(seed uint64, logging bool) *world {
	w := &world{rng: rand.New(rand.NewPCG(seed, 11)), logging: logging, terms: map[string]*lineage{}}
	w.bucket = bucket{registers: map[string]*register{}, digests: w.oneIn(2)}
	w.fenced, w.socket = !w.oneIn(4), w.oneIn(2)
	w.people, w.rolling = w.oneIn(2), w.oneIn(3)
	w.limited, w.skewed = w.oneIn(5), w.oneIn(3)
	w.trouble = []float64{0, 0.05, 0.2, 0.5}[w.rng.IntN(4)]
	w.replays = w.oneIn(4)
	w.end = int64(15*time.Second) + int64(w.upTo(40*time.Second))
	w.groups = []*group{{lease: "lease-1", led: map[string]bool{}}}
	count := 2 + w.rng.IntN(2)
	if w.fenced && w.oneIn(10) {
		// Somebody gave a replica another lease and the same document.
		w.groups = append(w.groups, &group{lease: "lease-2", led: map[string]bool{}})
		count = 3
	}
	profile, mixed := w.rng.IntN(len(profiles)), w.oneIn(3)
	for i := range count {
		if mixed {
			profile = w.rng.IntN(len(profiles))
		}
		if w.limited {
			profile = spacious
		}
		cfg := profiles[profile]
		if !w.limited {
			cfg.MinWriteInterval = 0 // it is a property of the bucket
		}
		g := w.groups[0]
		if i == 2 {
			g = w.groups[len(w.groups)-1]
		}
		// Holder names are for people, and may be equal by mistake.
		cfg.Identity, cfg.Lease = "same", "sim://"+g.lease
		cfg.ShutdownGrace = []time.Duration{time.Millisecond, 3 * time.Second, 25 * time.Second}[w.rng.IntN(3)]
		w.replicas = append(w.replicas, &replica{
			w: w, g: g, name: string(rune('a' + i)), cfg: cfg.WithDefaults(), rate: w.clockRate(i),
			offset: w.rng.Int64N(int64(1000 * time.Hour)), wall: w.rng.Int64N(int64(time.Hour)),
		})
	}
	return w
}

// clockRate is the rate of a machine's clock: any two differ by less than the 1 %
// that is promised, and often by nearly as much.
func (w *world) clockRate(i int) float64 {
	rate := 0.9951 + 0.0098*w.rng.Float64()
	if w.oneIn(2) {
		rate = []float64{0.9951, 1.0049}[i%2]
	}
	return rate
}
