package e2e

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// residentMB reads the resident memory of a process.
func residentMB(t *testing.T, pid int) float64 {
	t.Helper()
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range strings.Split(string(data), "\n") {
		if rest, ok := strings.CutPrefix(line, "VmRSS:"); ok {
			kb, err := strconv.ParseFloat(strings.TrimSpace(strings.TrimSuffix(rest, "kB")), 64)
			if err != nil {
				t.Fatal(err)
			}
			return kb / 1024
		}
	}
	t.Fatal("no VmRSS")
	return 0
}

func TestAStandbyUsesLessThan64MB(t *testing.T) {
	for name, open := range backends() {
		t.Run(name, func(t *testing.T) {
			p := newPair(t, open(t))
			time.Sleep(3 * time.Second) // some polls
			mb := residentMB(t, p.standby.PID())
			t.Logf("standby on %s: %.1f MB resident", name, mb)
			if mb >= 64 {
				t.Errorf("%.1f MB resident, want less than 64", mb)
			}
		})
	}
}

// The first request counts: a platform that starts a replacement waits for it.
func TestTheFirstStoreRequestComesWithin100msOfTheStart(t *testing.T) {
	var mu sync.Mutex
	var first time.Time
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		mu.Lock()
		if first.IsZero() {
			first = time.Now()
		}
		mu.Unlock()
		w.WriteHeader(http.StatusServiceUnavailable)
	}))
	defer srv.Close()
	at := func(kind string) backend {
		return map[string]backend{
			"s3": {env: []string{"AWS_ACCESS_KEY_ID=a", "AWS_SECRET_ACCESS_KEY=b"},
				config: fmt.Sprintf("coordinate: {type: s3_lease, s3_lease: {bucket: b-1, region: us-east-1, endpoint_url: %q}}\nstate: {store: none}\n", srv.URL)},
			"gcs": {config: fmt.Sprintf("coordinate: {type: gcs_lease, gcs_lease: {bucket: b-1, endpoint_url: %q}}\nstate: {store: none}\n", srv.URL)},
		}[kind]
	}
	for _, kind := range []string{"s3", "gcs"} {
		t.Run(kind, func(t *testing.T) {
			// The best of five: a busy machine delays a process, never speeds it up.
			best := time.Hour
			for range 5 {
				c := newCluster(t, at(kind))
				mu.Lock()
				first = time.Time{}
				mu.Unlock()
				begun := time.Now()
				start(t, c, "A")
				for end := begun.Add(10 * time.Second); time.Now().Before(end); time.Sleep(time.Millisecond) {
					mu.Lock()
					seen := first
					mu.Unlock()
					if !seen.IsZero() {
						best = min(best, seen.Sub(begun))
						break
					}
				}
				c.Close()
			}
			t.Logf("first request to %s after %v", kind, best.Round(time.Millisecond))
			if best > 100*time.Millisecond {
				t.Errorf("first request after %v, want within 100 ms", best)
			}
		})
	}
}
