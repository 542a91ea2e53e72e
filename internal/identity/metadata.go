package identity

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
)

// maxAnswer is the most of an answer that is read.
const maxAnswer = 256 << 10

// client talks to a metadata service: directly, because a proxy would be asked
// about somebody else's machine, and only to the address that was meant.
func client() *http.Client {
	return &http.Client{
		Transport:     &http.Transport{Proxy: nil, DisableKeepAlives: true},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// google asks the metadata server of Google, which says who it is in a header:
// something else that answers at that name is not believed.
func (d *detector) google(ctx context.Context, name string) (string, error) {
	body, err := d.get(ctx, d.GoogleMetadata+"/computeMetadata/v1/"+name, http.Header{"Metadata-Flavor": {"Google"}})
	if err != nil {
		return "", err
	}
	if value := line(string(body)); value != "" {
		return value, nil
	}
	return "", fmt.Errorf("%s is empty", name)
}

// get reads one answer within the budget. What must be in the request must be in
// the answer as well. Errors carry no address: it may be somebody's.
func (d *detector) get(ctx context.Context, address string, header http.Header) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, Budget)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil || req.URL.Scheme != "http" || req.URL.Host == "" {
		return nil, errors.New("its address is not an http URL")
	}
	for k, v := range header {
		req.Header[k] = v
	}
	res, err := d.client.Do(req)
	if err != nil {
		if wrapped := (*url.Error)(nil); errors.As(err, &wrapped) {
			err = wrapped.Err
		}
		return nil, fmt.Errorf("no answer: %w", err)
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("it answered %d", res.StatusCode)
	}
	for k := range header {
		if res.Header.Get(k) != header.Get(k) {
			return nil, fmt.Errorf("the answer has no header %s: it is of something else", k)
		}
	}
	body, err := io.ReadAll(io.LimitReader(res.Body, maxAnswer))
	if err != nil {
		return nil, fmt.Errorf("the answer ended early: %w", err)
	}
	return body, nil
}
