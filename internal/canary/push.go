package canary

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strconv"
	"time"
)

const (
	pushPath    = "/loki/api/v1/push"
	pushTimeout = 5 * time.Second
	// pushAttempts is one round; the record is tried again in the next one.
	pushAttempts  = 5
	firstPushWait = 250 * time.Millisecond
	maxPushWait   = 10 * time.Second
)

// errRefused marks an answer that no repetition changes.
var errRefused = errors.New("refused")

// pusher sends records to a Loki-compatible endpoint.
type pusher struct {
	url        string
	user, pass string
	auth       bool
	client     *http.Client
	stream     map[string]string
}

// newPusher reads the URL. Errors and names never carry its credentials.
func newPusher(raw, identity string, transport http.RoundTripper) (*pusher, error) {
	u, err := url.Parse(raw)
	if err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Host == "" {
		// The parser's own error quotes the URL.
		return nil, errors.New("push URL is not http://HOST[:PORT][/PATH] or https://…")
	}
	p := &pusher{
		stream: map[string]string{"job": "sf2loki-ha-canary", "identity": identity},
		client: &http.Client{
			Transport: transport,
			Timeout:   pushTimeout,
			// A redirect would carry credentials to another host.
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
	}
	if u.User != nil {
		p.auth, p.user = true, u.User.Username()
		p.pass, _ = u.User.Password()
		u.User = nil
	}
	if u.Path == "" || u.Path == "/" {
		u.Path = pushPath
	}
	u.Fragment = ""
	p.url = u.String()
	return p, nil
}

// name is the endpoint for people: without credentials and query.
func (p *pusher) name() string {
	u, err := url.Parse(p.url)
	if err != nil {
		return "push endpoint"
	}
	return u.Scheme + "://" + u.Host + u.Path
}

// push delivers one line, with a bounded number of attempts. An error that is
// errRefused will not go away by itself; every other may.
func (p *pusher) push(ctx context.Context, at time.Time, line []byte) error {
	body, err := json.Marshal(map[string]any{"streams": []any{map[string]any{
		"stream": p.stream,
		"values": [][2]string{{strconv.FormatInt(at.UnixNano(), 10), string(line)}},
	}}})
	if err != nil {
		return err
	}
	wait := firstPushWait
	for attempt := 1; ; attempt++ {
		after, err := p.send(ctx, body)
		switch {
		case err == nil:
			return nil
		case errors.Is(err, errRefused), ctx.Err() != nil, attempt == pushAttempts:
			return fmt.Errorf("push to %s: attempt %d: %w", p.name(), attempt, err)
		}
		pause := min(maxPushWait, max(after, wait/2+rand.N(wait/2)))
		wait = min(maxPushWait, 2*wait)
		timer := time.NewTimer(pause)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
		}
	}
}

// send makes one attempt and returns how long the server asked to wait.
func (p *pusher) send(ctx context.Context, body []byte) (time.Duration, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, p.url, bytes.NewReader(body))
	if err != nil {
		return 0, errors.New("request could not be built")
	}
	req.Header.Set("Content-Type", "application/json")
	if p.auth {
		req.SetBasicAuth(p.user, p.pass)
	}
	resp, err := p.client.Do(req)
	if err != nil {
		// url.Error repeats the URL, whose query may be a token.
		var withURL *url.Error
		if errors.As(err, &withURL) {
			err = withURL.Err
		}
		return 0, err
	}
	defer func() { _ = resp.Body.Close() }()
	// The connection is reused only if the answer was read.
	detail, _ := io.ReadAll(io.LimitReader(resp.Body, 512))
	switch status := resp.StatusCode; {
	case status >= 200 && status < 300:
		return 0, nil
	case status == http.StatusUnauthorized, status == http.StatusForbidden, status == http.StatusNotFound,
		status == http.StatusTooManyRequests, status >= 500:
		// Repaired from outside, as sf2loki sees it too: credentials are rotated,
		// a gateway comes back.
		seconds, _ := strconv.ParseFloat(resp.Header.Get("Retry-After"), 64)
		return time.Duration(max(0, min(seconds, maxPushWait.Seconds())) * float64(time.Second)), fmt.Errorf("status %d: %.200q", status, detail)
	default:
		return 0, fmt.Errorf("status %d: %.200q: %w", status, detail, errRefused)
	}
}
