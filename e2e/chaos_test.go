//go:build linux

package e2e

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"

	"github.com/sf2loki/sf2loki-ha/coordinator"
	"github.com/sf2loki/sf2loki-ha/e2e/cluster"
	"github.com/sf2loki/sf2loki-ha/e2e/faultproxy"
	"github.com/sf2loki/sf2loki-ha/e2e/history"
	"github.com/sf2loki/sf2loki-ha/internal/boottime"
	"github.com/sf2loki/sf2loki-ha/internal/testservers"
)

// How long chaos lasts, and from which seed; the environment may say otherwise.
const (
	chaosFor     = 20 * time.Second
	chaosForEnv  = "CHAOS"
	chaosSeedEnv = "CHAOS_SEED"
)

// The objects of a pair, by default.
const (
	leaseKey      = "sf2loki/leader.lease"
	checkpointKey = "sf2loki/state.json"
)

// stage is a store that can be put behind a proxy.
type stage struct {
	run    history.Run
	config string // YAML
	env    []string
	proxy  faultproxy.Config
	budget coordinator.Budget
	// doorEnv names the variables that lead a replica to its door.
	doorEnv []string
}

func s3Stage(t *testing.T) stage {
	srv := testservers.StartS3(t)
	const ttl, renew, poll = 3 * time.Second, 700 * time.Millisecond, 400 * time.Millisecond
	at := fmt.Sprintf("bucket: %s, region: %s, endpoint_url: %q", srv.Bucket, srv.Region, srv.Endpoint)
	return stage{
		run:     history.Run{Backend: "versitygw", Lease: leaseKey, Checkpoints: checkpointKey, TTL: ttl, Torn: true},
		env:     []string{"AWS_ACCESS_KEY_ID=" + srv.AccessKey, "AWS_SECRET_ACCESS_KEY=" + srv.SecretKey},
		config:  fmt.Sprintf("coordinate: {type: s3_lease, s3_lease: {%s, ttl: %v, renew_interval: %v, poll_interval: %v}}\nstate: {store: s3, s3: {%s}}\n", at, ttl, renew, poll, at),
		proxy:   faultproxy.Config{Store: srv.Endpoint, Service: faultproxy.S3},
		budget:  coordinator.Config{TTL: ttl, RenewInterval: renew, PollInterval: poll}.Budget(),
		doorEnv: []string{s3Section + "ENDPOINT_URL", "SF2LOKI_STATE__S3__ENDPOINT_URL"},
	}
}

func gcsStage(t *testing.T) stage {
	srv := testservers.StartGCS(t)
	const ttl, renew, poll = 6 * time.Second, 1200 * time.Millisecond, 500 * time.Millisecond
	at := fmt.Sprintf("bucket: %s, endpoint_url: %q", srv.Bucket, srv.Endpoint)
	return stage{
		run:     history.Run{Backend: "fake-gcs-server", Lease: leaseKey, Checkpoints: checkpointKey, TTL: ttl},
		config:  fmt.Sprintf("coordinate: {type: gcs_lease, gcs_lease: {%s, ttl: %v, renew_interval: %v, poll_interval: %v}}\nstate: {store: gcs, gcs: {%s}}\n", at, ttl, renew, poll, at),
		proxy:   faultproxy.Config{Store: srv.Endpoint, Service: faultproxy.GCS, WritesPerSecond: 1},
		budget:  coordinator.Config{TTL: ttl, RenewInterval: renew, PollInterval: poll}.Budget(),
		doorEnv: []string{"SF2LOKI_COORDINATE__GCS_LEASE__ENDPOINT_URL", "SF2LOKI_STATE__GCS__ENDPOINT_URL"},
	}
}

// chaosSpan is how long chaos lasts.
func chaosSpan(t *testing.T) time.Duration {
	t.Helper()
	text := os.Getenv(chaosForEnv)
	if text == "" {
		return chaosFor
	}
	span, err := time.ParseDuration(text)
	if err != nil {
		t.Fatalf("%s: %v", chaosForEnv, err)
	}
	return span
}

func chaosSeed(t *testing.T) uint64 {
	t.Helper()
	text := os.Getenv(chaosSeedEnv)
	if text == "" {
		return rand.Uint64N(1e9)
	}
	seed, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		t.Fatalf("%s: %v", chaosSeedEnv, err)
	}
	return seed
}

// Two replicas behind a network that loses, delays, reorders and replays, killed
// and frozen at random: no record is missing, nobody acts beside another, and lease
// and document are judged by what the store accepted.
func TestAPairBehindAFaultyNetworkLosesNothingAndNeverActsTwice(t *testing.T) {
	seed, span := chaosSeed(t), chaosSpan(t)
	cases := map[string]func(*testing.T){}
	for name, open := range map[string]func(*testing.T) stage{"versitygw": s3Stage, "fake-gcs-server": gcsStage} {
		cases[name] = func(t *testing.T) {
			c := newChaos(t, open(t), seed)
			defer func() { // also after a fatal end
				if t.Failed() || span != chaosFor {
					c.keep(c.history())
				}
			}()
			// What chance alone might leave out of a short run.
			for _, key := range []string{leaseKey, checkpointKey} {
				c.proxy.Add(faultproxy.Rule{Op: faultproxy.Replace, Key: key, Skip: 4, Times: 2, Fault: faultproxy.Fault{LoseAnswer: faultproxy.Silence}})
			}
			c.rage(span)
			c.recover()
			h := c.history()
			report := h.Judge(2 * time.Minute)
			t.Logf("seed %d: %v", seed, report.Figures)
			for _, p := range report.Problems[:min(len(report.Problems), 5)] {
				t.Errorf("%v\n%s", p, h.Timeline(p.At, 4*time.Second, time.Second))
			}
			if f := report.Figures; f.Terms < 3 || f.Faults < 15 || f.Kills == 0 || f.Freezes == 0 || f.Unanswered == 0 {
				t.Error("too little happened to show anything")
			}
		}
	}
	together(t, cases)
}

// The judge of the test above, on a store whose conditions are dropped on the way
// and whose probe was skipped.
func TestAStoreThatIgnoresConditionsIsJudgedBroken(t *testing.T) {
	st := s3Stage(t)
	st.config = strings.Replace(st.config, "coordinate: {", "coordinate: {unsafe_skip_store_probe: true, ", 1)
	creds := aws.Credentials{AccessKeyID: "test-access", SecretAccessKey: "test-secret-of-a-test-server"}
	st.proxy.Change = func(r *http.Request) error {
		if r.Header.Get("If-Match")+r.Header.Get("If-None-Match") == "" {
			return nil
		}
		for _, name := range []string{"If-Match", "If-None-Match", "Authorization", "X-Amz-Date"} {
			r.Header.Del(name)
		}
		return v4.NewSigner().SignHTTP(r.Context(), creds, r, r.Header.Get("X-Amz-Content-Sha256"), "s3", "us-east-1", time.Now(),
			func(o *v4.SignerOptions) { o.DisableURIPathEscaping = true })
	}
	c := newChaos(t, st, chaosSeed(t))
	// Chance would need longer than the test has.
	c.proxy.Add(faultproxy.Rule{Op: faultproxy.Replace, Key: leaseKey, Times: 3, Fault: faultproxy.Fault{Replay: 50 * time.Millisecond}})
	c.rage(5 * time.Second)
	h := c.history()
	report := h.Judge(2 * time.Minute)
	t.Logf("seed %d: %v", c.h.Run.Seed, report.Figures)
	for _, p := range report.Problems {
		if p.Rule == "order" {
			t.Logf("judged broken, with %d problems: %v", len(report.Problems), p)
			return
		}
	}
	c.keep(h)
	t.Errorf("judged sound, or for another reason: %v", report.Problems)
}

// chaos is a pair and what is done to it.
type chaos struct {
	t     *testing.T
	stage stage
	proxy *faultproxy.Proxy
	c     *cluster.Cluster
	rng   *rand.Rand
	h     history.History

	replicas map[string]*cluster.Replica
	began    time.Time
}

func newChaos(t *testing.T, st stage, seed uint64) *chaos {
	t.Helper()
	st.run.Seed = seed
	// Some requests meet more than one fault. The probe needs forty answers in a
	// row: one fault in six requests would keep every replica a standby.
	st.proxy.Random = &faultproxy.Random{
		Seed: seed, LoseRequest: 0.02, LoseAnswer: 0.02, LateRequest: 0.03, LateAnswer: 0.03, HoldBack: 0.02, Replay: 0.03, Refuse: 0.01,
		MaxDelay: st.run.TTL / 2, Refusal: http.StatusServiceUnavailable,
		Only: func(q faultproxy.Request) bool { return !strings.HasPrefix(q.Key, probeKeys) },
	}
	proxy, err := faultproxy.New(st.proxy)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := proxy.Close(); err != nil {
			t.Error(err)
		}
	})
	c := &chaos{
		t: t, stage: st, proxy: proxy, rng: rand.New(rand.NewPCG(seed, 0)), h: history.History{Run: st.run},
		replicas: map[string]*cluster.Replica{}, began: time.Now(),
		c: newCluster(t, backend{config: st.config, env: st.env}),
	}
	for _, name := range []string{"A", "B"} {
		c.start(name)
	}
	return c
}

// event notes what is done to a replica.
func (c *chaos) event(name, what, detail string) *history.Event {
	c.h.Events = append(c.h.Events, history.Event{At: boottime.Now(), Replica: name, What: what, Detail: detail})
	return &c.h.Events[len(c.h.Events)-1]
}

func (c *chaos) start(name string) {
	c.t.Helper()
	door, err := c.proxy.Door(name)
	if err != nil {
		c.t.Fatal(err)
	}
	var env []string
	for _, v := range c.stage.doorEnv {
		env = append(env, v+"="+door)
	}
	r, err := c.c.StartAs(name, cluster.Launch{Env: env})
	if err != nil {
		c.t.Fatal(err)
	}
	c.replicas[name] = r
	c.event(name, history.Start, "")
}

// history is everything so far.
func (c *chaos) history() *history.History {
	h := c.h
	h.Exchanges, h.Acts = c.proxy.Exchanges(), c.c.History().Acts()
	return &h
}

// keep writes the history to a file that can be judged again.
func (c *chaos) keep(h *history.History) {
	path, err := filepath.Abs(fmt.Sprintf("../.cache/chaos-%s-%d.jsonl", h.Run.Backend, h.Run.Seed))
	if err == nil {
		err = os.MkdirAll(filepath.Dir(path), 0o755)
	}
	if err != nil {
		c.t.Error(err)
		return
	}
	f, err := os.Create(path)
	if err != nil {
		c.t.Error(err)
		return
	}
	defer f.Close()
	if err := h.Write(f); err != nil {
		c.t.Error(err)
	}
	c.t.Logf("seed %d; the history is kept: go test ./e2e/history -run OnDisk -v -history %s", h.Run.Seed, path)
}
