package testservers

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"testing"
)

// GCS is a running fake-gcs-server. It asks for no credentials.
type GCS struct {
	// Endpoint is the base URL, the value of STORAGE_EMULATOR_HOST.
	Endpoint string
	// Bucket exists and is empty.
	Bucket string
}

// StartGCS starts fake-gcs-server with its data in memory.
func StartGCS(t testing.TB) *GCS {
	t.Helper()
	bin := Bin(t, "fake-gcs-server")
	port := start(t, "/_internal/healthcheck", nil, func(port int) []string {
		p := strconv.Itoa(port)
		return []string{bin, "-backend", "memory", "-scheme", "http", "-host", "127.0.0.1", "-port", p,
			"-public-host", loopback(port), "-external-url", "http://" + loopback(port), "-log-level", "error"}
	})
	g := &GCS{Endpoint: "http://" + loopback(port), Bucket: "test-bucket"}
	g.MakeBucket(t, g.Bucket)
	return g
}

// MakeBucket makes another empty bucket.
func (g *GCS) MakeBucket(t testing.TB, name string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	body := bytes.NewReader(fmt.Appendf(nil, `{"name":%q}`, name))
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, g.Endpoint+"/storage/v1/b?project=test", body)
	if err != nil {
		t.Fatalf("testservers: %v", err)
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatalf("testservers: %v", err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(resp.Body)
		t.Fatalf("testservers: make bucket %s: %s: %s", name, resp.Status, text)
	}
}
