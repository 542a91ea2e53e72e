package failoverbench

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sf2loki/sf2loki-ha/cas"
)

// address is a bucket that is only its base URL.
type address struct {
	cas.Bucket
	url string
}

func (address) Close() error { return nil }

func TestADoorTakesTheLatencyAndCountsAndKeepsWhatLanded(t *testing.T) {
	var accept atomic.Bool
	accept.Store(true)
	seen := make(chan *http.Request, 10)
	bodies := make(chan string, 10)
	store := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		seen <- r
		bodies <- string(body)
		if !accept.Load() {
			w.WriteHeader(http.StatusPreconditionFailed)
		}
		_, _ = io.WriteString(w, "answer")
	}))
	defer store.Close()
	place, err := NewHTTP("test", store.URL, func(endpoint string) (cas.Bucket, error) { return address{url: endpoint}, nil })
	if err != nil {
		t.Fatal(err)
	}
	link := newLink(Latency{Read: 60 * time.Millisecond, Write: 120 * time.Millisecond})
	bucket, err := place.Open(link)
	if err != nil {
		t.Fatal(err)
	}
	door := bucket.(doorBucket).Bucket.(address).url
	send := func(ctx context.Context, method, body string) (took time.Duration, err error) {
		var content io.Reader
		if body != "" {
			content = io.NopCloser(&oneRead{body})
		}
		req, err := http.NewRequestWithContext(ctx, method, door+"/bucket/a%2Fb?x=1", content)
		if err != nil {
			t.Fatal(err)
		}
		begin := time.Now()
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			return time.Since(begin), err
		}
		defer resp.Body.Close()
		if text, err := io.ReadAll(resp.Body); err != nil || string(text) != "answer" {
			t.Errorf("%s: %q, %v", method, text, err)
		}
		return time.Since(begin), nil
	}
	// 1. A read takes its time, and passes as it is.
	if took, err := send(t.Context(), http.MethodGet, ""); err != nil || took < 60*time.Millisecond {
		t.Errorf("a read took %v, %v", took, err)
	}
	if r := <-seen; r.URL.RequestURI() != "/bucket/a%2Fb?x=1" || "http://"+r.Host != door {
		t.Errorf("the store saw %s at %s", r.URL.RequestURI(), r.Host)
	}
	<-bodies
	if !link.Landed().IsZero() {
		t.Error("a read landed")
	}
	// 2. A write as well, and its landing lies within.
	begin := time.Now()
	if took, err := send(t.Context(), http.MethodPut, "data"); err != nil || took < 120*time.Millisecond {
		t.Errorf("a write took %v, %v", took, err)
	}
	<-seen
	if body := <-bodies; body != "data" {
		t.Errorf("the store got %q", body)
	}
	landed := link.Landed()
	if after := landed.Sub(begin); after < 60*time.Millisecond || time.Since(landed) < 60*time.Millisecond {
		t.Errorf("it landed %v after the send and %v before now", after, time.Since(landed))
	}
	// 3. What is refused did not land.
	accept.Store(false)
	if _, err := send(t.Context(), http.MethodPut, "data"); err != nil || link.Landed() != landed {
		t.Errorf("a refused write landed, %v", err)
	}
	<-seen
	<-bodies
	// 4. What was sent arrives although its sender gave up.
	accept.Store(true)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{WroteRequest: func(httptrace.WroteRequestInfo) { cancel() }})
	if _, err := send(ctx, http.MethodPut, "late"); err == nil {
		t.Error("an answer came before its time")
	}
	<-seen
	if body := <-bodies; body != "late" {
		t.Errorf("the store got %q", body)
	}
	// 5. Everything was counted. Then the door is shut.
	if traffic := link.traffic(time.Time{}); traffic.reads.n != 1 || len(link.writes) != 3 {
		t.Errorf("%d reads and %d writes were counted", traffic.reads.n, len(link.writes))
	}
	if err := bucket.Close(); err != nil {
		t.Error(err)
	}
	if _, err := send(t.Context(), http.MethodGet, ""); err == nil {
		t.Error("the door is still open")
	}
}

// oneRead is a body whose length is not known.
type oneRead struct{ text string }

func (r *oneRead) Read(p []byte) (int, error) {
	if r.text == "" {
		return 0, io.EOF
	}
	n := copy(p, r.text)
	r.text = r.text[n:]
	return n, nil
}
