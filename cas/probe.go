package cas

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"sync"
	"time"
)

// ProbeVersion numbers the set of checks. It grows with the set: a store that
// passed an older one has not passed this one, so a recorded result without
// this number, or for another endpoint, is worth nothing.
const ProbeVersion = 1

const (
	probeClients = 4 // separately opened, so that requests come over separate connections
	probeWriters = 8 // that race for one condition, spread over the clients

	defaultProbeTimeout = 5 * time.Second
)

// ProbeConfig says what to probe.
type ProbeConfig struct {
	// Open opens the bucket once more, with connections of its own. Required. It
	// is called probeClients times; Probe closes what it returns.
	Open func(context.Context) (Bucket, error)
	// Object is the name of the lease. The probe never touches it: its objects
	// have names that begin with ScratchPrefix(Object). Required.
	Object string
	// Incarnation is the random id of the process, part of every name, so that
	// people can tell whose an object was. Probes of one incarnation do not meet
	// either. Default: random.
	Incarnation string
	// CallTimeout bounds one request. Default 5 s.
	CallTimeout time.Duration
	// WriteInterval is the least time between two writes of one object: 1 s on
	// Cloud Storage. The probe spreads its writes over several objects, so that
	// it waits twice at most. Default 0.
	WriteInterval time.Duration
}

// Probe finds out whether a store honours conditions, by making requests whose
// conditions are true, and requests whose conditions are false, on objects of
// its own, some of them at once and from several connections. It sends
// 41 small requests, 35 and 6 removals, and takes about six round trips.
//
// What it guarantees: the verdict [ProbeUnsupported] rests on a definite answer
// that no sound store gives, never on an answer that is missing; [ProbeOK] means
// that every check had a definite and right answer. Everything else is
// [ProbeUnknown]: try again.
//
// What it does not: it cannot prove a negative. A store that races rarely, or
// only between two of its nodes, passes most of the time.
//
// Objects that it wrote are removed again where the bucket is a [ScratchBucket].
// What may have stayed is named in the report and is no reason for a verdict.
func Probe(ctx context.Context, cfg ProbeConfig) ProbeReport {
	begun := time.Now()
	p := &prober{cfg: cfg, area: ScratchPrefix(cfg.Object), written: map[string]bool{}}
	p.results = make([]ProbeCheck, len(probeChecks))
	for i, name := range probeChecks {
		p.results[i] = ProbeCheck{Name: name, Verdict: ProbeUnknown}
	}
	if p.cfg.CallTimeout <= 0 {
		p.cfg.CallTimeout = defaultProbeTimeout
	}
	if p.cfg.Incarnation == "" {
		p.cfg.Incarnation = probeToken(16)
	}
	p.run = p.cfg.Incarnation + "-" + probeToken(4)

	closing := p.open(ctx)
	if closing == nil {
		p.checks(ctx)
		p.cleanUp(ctx)
	}
	for _, b := range p.buckets {
		closing = errors.Join(closing, b.Close())
	}
	return p.report(time.Since(begun), closing)
}

// prober is one run of the probe.
type prober struct {
	cfg     ProbeConfig
	run     string // what the names of this run begin with
	area    string // for people
	buckets []Bucket
	clients []Scratch

	mu       sync.Mutex
	requests int
	written  map[string]bool // names that may exist
	results  []ProbeCheck
	left     []string
	cleaning error
}

func (p *prober) open(ctx context.Context) error {
	for range probeClients {
		b, err := p.cfg.Open(ctx)
		if err != nil {
			return fmt.Errorf("open the bucket: %w", err)
		}
		p.buckets = append(p.buckets, b)
		s, ok := b.(ScratchBucket)
		if !ok {
			s = keeper{b}
		}
		p.clients = append(p.clients, s.Scratch(p.cfg.Object))
	}
	p.area = p.clients[0].Describe()
	return nil
}

// keeper is a bucket in which nothing can be removed.
type keeper struct{ Bucket }

func (k keeper) Scratch(object string) Scratch {
	return NewScratch(k, object, func(context.Context, string) error {
		return errors.New("this bucket removes nothing")
	})
}

// checks runs them: first whether the store can be used at all, with one object
// and few requests, so that a store that is down or denied is asked only once;
// then everything else side by side, each on an object of its own.
func (p *prober) checks(ctx context.Context) {
	first := p.object("a", 0)
	v, err := p.createAbsent(ctx, first)
	p.result(checkCreate, err)
	if err != nil {
		return
	}
	if err = p.readByOthers(ctx, first, v); err != nil {
		p.result(checkRead, err)
		return
	}
	p.result(checkRead, nil)

	var wg sync.WaitGroup
	wg.Go(func() { p.replaceTwice(ctx, first, v) })
	wg.Go(func() { p.result(checkCreateExisting, p.createExisting(ctx, p.object("b", 1))) })
	wg.Go(func() { p.result(checkReplaceMadeUp, p.replaceMadeUp(ctx, p.object("c", 2))) })
	wg.Go(func() { p.result(checkReplaceAbsent, p.replaceAbsent(ctx, p.object("d", 3), v.Version)) })
	wg.Go(func() { p.result(checkCreateRace, p.raceCreators(ctx, p.object("e", 0))) })
	wg.Go(func() { p.result(checkReplaceRace, p.raceReplacers(ctx, p.object("f", 1))) })
	wg.Wait()
}

// result records how a check ended.
func (p *prober) result(check int, err error) {
	r := ProbeCheck{Name: probeChecks[check], Verdict: ProbeOK, Err: err}
	var fault *storeFault
	switch {
	case errors.As(err, &fault):
		r.Verdict = ProbeUnsupported
	case err != nil:
		r.Verdict = ProbeUnknown
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.results[check] = r
}

// cleanUp removes what was written, all at once. After the end of ctx nobody
// waits for it.
func (p *prober) cleanUp(ctx context.Context) {
	var wg sync.WaitGroup
	for name := range p.written {
		wg.Go(func() {
			err := ctx.Err()
			if err == nil {
				call, cancel := context.WithTimeout(ctx, p.cfg.CallTimeout)
				defer cancel()
				p.count()
				err = p.clients[0].Remove(call, name)
			}
			if err != nil {
				p.mu.Lock()
				defer p.mu.Unlock()
				p.left = append(p.left, p.clients[0].Register(name).Describe())
				p.cleaning = err
			}
		})
	}
	wg.Wait()
}

func (p *prober) count() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.requests++
}

// probeToken is n random bytes. A process that was cloned from a snapshot
// together with another still gets its own.
func probeToken(n int) string {
	b := make([]byte, n)
	_, _ = rand.Read(b) // does not fail: it would end the process
	return hex.EncodeToString(b)
}
