package faultproxy

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/sf2loki/sf2loki-ha/internal/boottime"
)

// storeTimeout bounds one request to the store, which is on this machine.
const storeTimeout = 30 * time.Second

// Config says which store is behind the proxy, and what it does by itself.
type Config struct {
	// Store is the base URL of the store.
	Store string
	// Service is the language that is spoken. Default Plain.
	Service Service
	// WritesPerSecond is how many writes of one object pass in any second, as
	// Google Cloud Storage limits them; 0 means no limit.
	WritesPerSecond int
	// Change alters each request that is sent to the store, as a proxy does that
	// drops conditions. The record shows the request as it came.
	Change func(*http.Request) error
	// Random faults, beside the rules; nil means none.
	Random *Random
}

// Proxy is a running proxy.
type Proxy struct {
	cfg    Config
	store  *url.URL
	client *http.Client
	ctx    context.Context // ends with Close
	cancel context.CancelFunc
	wg     sync.WaitGroup

	mu        sync.Mutex
	doors     map[string]*door
	rules     []*rule
	random    *Random
	counts    map[string]int // of requests of a kind at a door
	exchanges []*exchange
	writes    map[string][]boottime.Instant // the last ones of an object
	held      map[string][]*held            // by object
}

// door is the listener of one replica.
type door struct {
	replica string
	url     string
	server  *http.Server
	// Until these instants nothing passes in that direction.
	requestsCut, answersCut boottime.Instant
}

// New returns a proxy without doors. Close it.
func New(cfg Config) (*Proxy, error) {
	u, err := url.Parse(cfg.Store)
	if err != nil || u.Scheme != "http" || u.Host == "" || strings.Trim(u.Path, "/") != "" {
		return nil, fmt.Errorf("faultproxy: store %q: want http://host:port", cfg.Store)
	}
	if cfg.Service == nil {
		cfg.Service = Plain
	}
	p := &Proxy{
		cfg: cfg, store: u, random: cfg.Random, doors: map[string]*door{}, counts: map[string]int{},
		writes: map[string][]boottime.Instant{}, held: map[string][]*held{},
		// One connection a request: a kept one that turns out to be dead would be
		// a fault that nobody asked for.
		client: &http.Client{
			Transport:     &http.Transport{DisableKeepAlives: true, DisableCompression: true},
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
	}
	p.ctx, p.cancel = context.WithCancel(context.Background())
	return p, nil
}

// Door returns the base URL that a replica uses instead of the store's, and opens
// it at the first call.
func (p *Proxy) Door(replica string) (string, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if d := p.doors[replica]; d != nil {
		return d.url, nil
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", fmt.Errorf("faultproxy: door of %s: %w", replica, err)
	}
	d := &door{replica: replica, url: "http://" + l.Addr().String()}
	d.server = &http.Server{
		Handler:           http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { p.serve(d, w, r) }),
		ReadHeaderTimeout: storeTimeout,
	}
	p.doors[replica] = d
	p.wg.Go(func() { _ = d.server.Serve(l) })
	return d.url, nil
}

// Direction is one of the two of a door, or both.
type Direction int

// The directions.
const (
	Requests Direction = 1 << iota
	Answers
	Both = Requests | Answers
)

func (d Direction) String() string {
	return [...]string{"nothing", "requests", "answers", "requests and answers"}[d]
}

// Cut lets nothing pass at a door in that direction, for a while: requests get no
// answer and do not reach the store, answers do not reach the caller, those that
// are under way included. Zero ends it.
func (p *Proxy) Cut(replica string, dir Direction, span time.Duration) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	d := p.doors[replica]
	if d == nil {
		return fmt.Errorf("faultproxy: %s has no door", replica)
	}
	until := boottime.Now().Add(span)
	if dir&Requests != 0 {
		d.requestsCut = until
	}
	if dir&Answers != 0 {
		d.answersCut = until
	}
	return nil
}

// Add adds a rule. Of several rules that match, the first one added decides.
func (p *Proxy) Add(r Rule) {
	p.mu.Lock()
	defer p.mu.Unlock()
	added := &rule{Rule: r, until: boottime.Never}
	if r.For > 0 {
		added.until = boottime.Now().Add(r.For)
	}
	p.rules = append(p.rules, added)
}

// Calm ends all rules, cuts and random faults; what is under way goes on. The
// limit of writes stays.
func (p *Proxy) Calm() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.rules, p.random = nil, nil
	for _, d := range p.doors {
		d.requestsCut, d.answersCut = 0, 0
	}
}

// Close closes the doors and forgets what is under way.
func (p *Proxy) Close() error {
	p.mu.Lock()
	p.cancel()
	var errs []error
	for _, d := range p.doors {
		errs = append(errs, d.server.Close())
	}
	p.mu.Unlock()
	p.wg.Wait()
	return errors.Join(errs...)
}

// begin runs f, which Close waits for, or reports that Close was called.
func (p *Proxy) begin(f func()) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ctx.Err() != nil {
		return false
	}
	p.wg.Go(f)
	return true
}

// sleep reports whether the time passed before Close.
func (p *Proxy) sleep(d time.Duration) bool {
	if d <= 0 {
		return p.ctx.Err() == nil
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-p.ctx.Done():
		return false
	}
}
