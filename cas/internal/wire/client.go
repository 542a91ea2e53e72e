package wire

import (
	"net"
	"net/http"
	"time"
)

// Client returns an HTTP client for conditional requests. With a nil base it has
// a transport of its own, tuned by Tune; otherwise it uses the transport of base.
// It follows no redirect: a redirect answer is returned as it is.
//
// Not following is the safe side. A signed request that is sent to another host
// discloses its signature, and a second request after the first is exactly what
// makes a 412 that we caused look like somebody else's. (net/http itself sends a
// GET again if the idle connection it chose turns out to be dead. It does not do
// that with a request that has a body once a byte of it was written.)
func Client(base *http.Client) *http.Client {
	c := &http.Client{}
	if base != nil {
		*c = *base
	} else {
		t := &http.Transport{
			Proxy: http.ProxyFromEnvironment,
			DialContext: (&net.Dialer{
				Timeout:   5 * time.Second,
				KeepAlive: 15 * time.Second,
			}).DialContext,
			MaxIdleConns:        8,
			MaxIdleConnsPerHost: 8,
			IdleConnTimeout:     90 * time.Second,
			TLSHandshakeTimeout: 5 * time.Second,
		}
		Tune(t)
		c.Transport = t
	}
	c.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return c
}

// Tune makes a transport fit for a lease.
//
// HTTP/1.1 only: there a request whose context ends takes its connection with
// it, and the next attempt dials a fresh one. An HTTP/2 connection is shared and
// survives its requests, so after a silent network change every attempt up to
// the deadline would be sent into the same dead connection.
//
// No transparent decompression: what is read is what is stored, with the length
// the store announced, so a cut body is noticed.
func Tune(t *http.Transport) {
	t.Protocols = new(http.Protocols)
	t.Protocols.SetHTTP1(true)
	t.ForceAttemptHTTP2 = false
	t.DisableCompression = true
}
