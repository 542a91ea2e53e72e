package socketapi

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"

	"github.com/sf2loki/sf2loki-ha/cas"
)

// Client talks to the socket of one term.
type Client struct {
	epoch string
	http  *http.Client
}

// NewClient returns a client for the socket at path. It sends no request.
func NewClient(path string, epoch int64) *Client {
	var dialer net.Dialer
	return &Client{epoch: strconv.FormatInt(epoch, 10), http: &http.Client{Transport: &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) { return dialer.DialContext(ctx, "unix", path) },
	}}}
}

// AnswerError is an answer that is an error.
type AnswerError struct {
	Status int
	Failure
}

// Error reads "code (status): text".
func (e *AnswerError) Error() string {
	return fmt.Sprintf("checkpoint socket: %s (%d): %s", e.Code, e.Status, e.Failure.Error)
}

// Final reports whether asking again cannot help.
func (e *AnswerError) Final() bool { return e.Status < http.StatusInternalServerError }

// All returns every key and value of the document.
func (c *Client) All(ctx context.Context) (map[string]string, error) {
	body, err := c.do(ctx, http.MethodGet, nil)
	if err != nil {
		return nil, err
	}
	var all map[string]string
	if err := json.Unmarshal(body, &all); err != nil {
		return nil, fmt.Errorf("checkpoint socket: %w", err)
	}
	return all, nil
}

// Store stores values in one write.
func (c *Client) Store(ctx context.Context, values map[string]string) error {
	body, err := json.Marshal(values)
	if err != nil {
		return fmt.Errorf("checkpoint socket: %w", err)
	}
	_, err = c.do(ctx, http.MethodPatch, body)
	return err
}

func (c *Client) do(ctx context.Context, method string, body []byte) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, method, "http://socket"+checkpointsPath, bytes.NewReader(body))
	if err != nil {
		return nil, fmt.Errorf("checkpoint socket: %w", err)
	}
	req.Header.Set(EpochHeader, c.epoch)
	resp, err := c.http.Do(req)
	if err != nil {
		return nil, fmt.Errorf("checkpoint socket: %w", err)
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(resp.Body, 2*cas.MaxSize))
	if err != nil {
		return nil, fmt.Errorf("checkpoint socket: %w", err)
	}
	if resp.StatusCode >= http.StatusBadRequest {
		e := &AnswerError{Status: resp.StatusCode}
		if json.Unmarshal(answer, &e.Failure) != nil {
			e.Failure = Failure{Code: "unknown", Error: fmt.Sprintf("%.200q", answer)}
		}
		return nil, e
	}
	return answer, nil
}

// Close drops idle connections.
func (c *Client) Close() { c.http.CloseIdleConnections() }
