package failoverbench

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"time"

	"github.com/sf2loki/sf2loki-ha/cas"
)

// HTTP is a store behind a proxy that takes the latency.
type HTTP struct {
	name   string
	store  *url.URL
	open   func(endpoint string) (cas.Bucket, error)
	behind *http.Transport
}

// NewHTTP is the store at a base URL. open opens the bucket with a client of its own
// at another base URL.
func NewHTTP(name, store string, open func(endpoint string) (cas.Bucket, error)) (*HTTP, error) {
	u, err := url.Parse(store)
	if err != nil {
		return nil, fmt.Errorf("address of %s: %w", name, err)
	}
	return &HTTP{name: name, store: u, open: open, behind: &http.Transport{
		DisableCompression: true, MaxIdleConnsPerHost: 64, ExpectContinueTimeout: time.Second,
	}}, nil
}

// Name implements Place.
func (h *HTTP) Name() string { return h.name }

// Open implements Place: every replica has a door of its own.
func (h *HTTP) Open(link *Link) (cas.Bucket, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("door to %s: %w", h.name, err)
	}
	server := &http.Server{Handler: h.door(link), ReadHeaderTimeout: 10 * time.Second}
	go func() { _ = server.Serve(l) }()
	bucket, err := h.open("http://" + l.Addr().String())
	if err != nil {
		return nil, errors.Join(err, server.Close())
	}
	return doorBucket{bucket, server}, nil
}

// doorBucket closes its door.
type doorBucket struct {
	cas.Bucket
	server *http.Server
}

func (b doorBucket) Close() error { return errors.Join(b.Bucket.Close(), b.server.Close()) }

// arrival is a request's share of a door.
type arrival struct {
	write bool
	at    time.Time
}

type arrivalKey struct{}

// door takes half of the latency on the way to the store and half on the way back.
func (h *HTTP) door(link *Link) http.Handler {
	proxy := &httputil.ReverseProxy{
		Transport: h.behind,
		ErrorLog:  log.New(io.Discard, "", 0), // a caller that has crashed is no news
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(h.store)
			r.Out.Host = r.In.Host // it is signed
		},
		ModifyResponse: func(resp *http.Response) error {
			a := resp.Request.Context().Value(arrivalKey{}).(arrival)
			if a.write && resp.StatusCode/100 == 2 {
				// Earlier than it really landed: a limit is never too long.
				link.land(a.at)
			}
			<-time.After(link.latency.of(a.write) / 2)
			return nil
		},
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		write := r.Method != http.MethodGet && r.Method != http.MethodHead
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return // it was not sent
		}
		<-time.After(link.latency.of(write) / 2)
		link.arrive(write)
		// What was sent arrives, whatever becomes of its sender. The context has to be
		// one that can end, or the proxy watches the connection instead.
		ctx, cancel := context.WithCancel(context.WithValue(context.WithoutCancel(r.Context()), arrivalKey{}, arrival{write, time.Now()}))
		defer cancel()
		r = r.WithContext(ctx)
		r.Body = io.NopCloser(bytes.NewReader(body))
		proxy.ServeHTTP(w, r)
	})
}
