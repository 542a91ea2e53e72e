package e2e

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"

	"github.com/sf2loki/sf2loki-ha/cas"
	"github.com/sf2loki/sf2loki-ha/cas/s3"
	"github.com/sf2loki/sf2loki-ha/e2e/cluster"
	"github.com/sf2loki/sf2loki-ha/internal/testservers"
)

const probeKeys = "sf2loki/leader.lease.probe/"

// gateway is a store in front of versitygw: it may answer by itself, or change a
// request, which it then signs anew.
func gateway(t *testing.T, change func(http.ResponseWriter, *http.Request) (answered bool)) backend {
	t.Helper()
	srv := testservers.StartS3(t)
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if change(w, r) {
			return
		}
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		out, err := http.NewRequestWithContext(r.Context(), r.Method, srv.Endpoint+r.URL.RequestURI(), bytes.NewReader(body))
		if err != nil {
			t.Error(err)
			return
		}
		for name, values := range r.Header {
			if name != "Authorization" && name != "X-Amz-Date" {
				out.Header[name] = values
			}
		}
		err = v4.NewSigner().SignHTTP(r.Context(), aws.Credentials{AccessKeyID: srv.AccessKey, SecretAccessKey: srv.SecretKey}, out,
			r.Header.Get("X-Amz-Content-Sha256"), "s3", srv.Region, time.Now(), func(o *v4.SignerOptions) { o.DisableURIPathEscaping = true })
		if err != nil {
			t.Error(err)
			return
		}
		resp, err := http.DefaultTransport.RoundTrip(out)
		if err != nil {
			w.WriteHeader(http.StatusBadGateway)
			return
		}
		defer resp.Body.Close()
		for name, values := range resp.Header {
			w.Header()[name] = values
		}
		w.WriteHeader(resp.StatusCode)
		_, _ = io.Copy(w, resp.Body)
	}))
	t.Cleanup(front.Close)
	srv.Setenv(t)
	b, err := s3.Open(t.Context(), s3.Config{Bucket: srv.Bucket, Region: srv.Region, EndpointURL: srv.Endpoint})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = b.Close() })
	at := fmt.Sprintf("bucket: %s, region: %s, endpoint_url: %q", srv.Bucket, srv.Region, front.URL)
	return backend{
		env:    []string{"AWS_ACCESS_KEY_ID=" + srv.AccessKey, "AWS_SECRET_ACCESS_KEY=" + srv.SecretKey},
		budget: budget(6*time.Second, 2*time.Second), lease: b.Register("sf2loki/leader.lease"),
		config: fmt.Sprintf("coordinate: {type: s3_lease, s3_lease: {%s, %s}}\nstate: {store: none}\n", at, timing(6*time.Second, 2*time.Second)),
	}
}

// stripped forwards everything without its condition, as several gateways did.
func stripped(_ http.ResponseWriter, r *http.Request) bool {
	r.Header.Del("If-Match")
	r.Header.Del("If-None-Match")
	return false
}

func isProbe(r *http.Request) bool { return strings.Contains(r.URL.Path, probeKeys) }

func logOf(t *testing.T, r *cluster.Replica) string {
	t.Helper()
	data, err := os.ReadFile(r.LogFile)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func (b backend) noLease(t *testing.T) {
	t.Helper()
	if v, err := b.lease.Load(t.Context()); cas.ClassOf(err) != cas.NotFound {
		t.Errorf("a lease was written: %s, %v", v.Data, err)
	}
}

func TestAStoreThatIgnoresConditionsEndsTheReplicaWithTwoAndTheSentence(t *testing.T) {
	for name, tt := range map[string]struct {
		change func(http.ResponseWriter, *http.Request) bool
		want   string
	}{
		"ignored": {stripped, "conditional writes are not enforced"},
		"quoted etags never match": {func(_ http.ResponseWriter, r *http.Request) bool {
			if r.Header.Get("If-Match") != "" {
				r.Header.Set("If-Match", `"00000000000000000000000000000000"`)
			}
			return false
		}, "the current version never matches"},
		"not implemented": {func(w http.ResponseWriter, r *http.Request) bool {
			if r.Header.Get("If-None-Match") == "" {
				return false
			}
			w.WriteHeader(http.StatusNotImplemented)
			_, _ = io.WriteString(w, "<Error><Code>NotImplemented</Code><Message>A header you provided implies functionality that is not implemented.</Message></Error>")
			return true
		}, "conditional writes are not supported"},
	} {
		t.Run(name, func(t *testing.T) {
			b := gateway(t, tt.change)
			r := start(t, newCluster(t, b), "A")
			if !r.Wait(10 * time.Second) {
				t.Fatal("the replica does not end")
			}
			if r.ExitCode() != 2 || !strings.Contains(logOf(t, r), tt.want) {
				t.Errorf("status %d, want 2 and %q:\n%s", r.ExitCode(), tt.want, logOf(t, r))
			}
			b.noLease(t)
		})
	}
}

func TestTheProbeCanBeSkippedOnlyLoudly(t *testing.T) {
	b := gateway(t, stripped)
	b.config = strings.Replace(b.config, "coordinate: {", "coordinate: {unsafe_skip_store_probe: true, ", 1)
	r := start(t, newCluster(t, b), "A")
	if !r.AwaitReady("ready", 15*time.Second) {
		t.Fatal("does not lead")
	}
	if log := logOf(t, r); strings.Count(log, "store probe skipped") != 1 || !strings.Contains(log, "unsafe_skip_store_probe") {
		t.Errorf("no warning:\n%s", log)
	}
}

func TestADeniedProbeKeepsTheReplicaStandbyUntilItIsAllowed(t *testing.T) {
	var allowed atomic.Bool
	b := gateway(t, func(w http.ResponseWriter, r *http.Request) bool {
		if !isProbe(r) || allowed.Load() {
			return false
		}
		w.WriteHeader(http.StatusForbidden)
		_, _ = io.WriteString(w, "<Error><Code>AccessDenied</Code><Message>Access Denied</Message></Error>")
		return true
	})
	r := start(t, newCluster(t, b), "A")
	if !r.AwaitReady("not ready", 5*time.Second) {
		t.Fatal("does not say not ready")
	}
	time.Sleep(b.budget.Failover + time.Second) // it would lead by now
	if _, body, err := r.Ready(); err != nil || body != "not ready" || r.Wait(0) {
		t.Errorf("%q, %v; want a replica that waits", body, err)
	}
	b.noLease(t)
	log := logOf(t, r)
	if strings.Count(log, "store probe undecided") != 1 || !strings.Contains(log, "s3:PutObject") || !strings.Contains(log, probeKeys) {
		t.Errorf("want one line with the fix:\n%s", log)
	}
	for metric, want := range map[string]string{"unknown": "1", "ok": "0"} {
		if got, err := r.Metric(fmt.Sprintf("sf2loki_ha_store_probe_result{result=%q}", metric)); err != nil || got != want {
			t.Errorf("%s: %s, %v; want %s", metric, got, err, want)
		}
	}
	allowed.Store(true)
	if !r.AwaitReady("ready", 20*time.Second) {
		t.Error("does not recover")
	}
	if got, err := r.Metric(`sf2loki_ha_store_probe_result{result="ok"}`); err != nil || got != "1" {
		t.Errorf("result ok: %s, %v", got, err)
	}
}

func TestAStopDuringTheProbeEndsWithZeroAtOnce(t *testing.T) {
	var probing atomic.Bool
	b := gateway(t, func(_ http.ResponseWriter, r *http.Request) bool {
		if !isProbe(r) {
			return false
		}
		probing.Store(true)
		_, _ = io.Copy(io.Discard, r.Body) // or the server does not notice that the client goes
		<-r.Context().Done()
		return true
	})
	r := start(t, newCluster(t, b), "A")
	// Health is served while the probe is under way.
	if !r.AwaitReady("not ready", 5*time.Second) {
		t.Fatal("no health server")
	}
	for end := time.Now().Add(5 * time.Second); !probing.Load() && time.Now().Before(end); {
		time.Sleep(10 * time.Millisecond)
	}
	stopped := time.Now()
	if err := r.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if !probing.Load() || !r.Wait(5*time.Second) || r.ExitCode() != 0 {
		t.Errorf("probing %v, status %d, want 0", probing.Load(), r.ExitCode())
	}
	if took := time.Since(stopped); took > time.Second {
		t.Errorf("ended after %v", took)
	}
	b.noLease(t)
}

// Nothing of the probe stays in a bucket, and it costs a fresh standby no time.
func TestTheProbeLeavesNothingAndDelaysNothing(t *testing.T) {
	var puts, deletes atomic.Int32
	b := gateway(t, func(_ http.ResponseWriter, r *http.Request) bool {
		if isProbe(r) {
			switch r.Method {
			case http.MethodPut:
				puts.Add(1)
			case http.MethodDelete:
				deletes.Add(1)
			}
		}
		return false
	})
	begun := time.Now()
	r := start(t, newCluster(t, b), "A")
	if !r.AwaitReady("ready", 15*time.Second) {
		t.Fatal("does not lead")
	}
	if took := time.Since(begun); took > 6*time.Second+slack {
		t.Errorf("the first leader after %v, want one ttl", took)
	}
	if puts.Load() != 25 || deletes.Load() != 6 {
		t.Errorf("%d writes and %d removals", puts.Load(), deletes.Load())
	}
}
