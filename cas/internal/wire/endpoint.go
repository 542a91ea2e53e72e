package wire

import (
	"errors"
	"net/url"
	"strings"
)

var errEndpoint = errors.New("endpoint URL: want http://host[:port] or https://host[:port], optionally with a path, without query and fragment")

// Endpoint parses the URL of a custom endpoint. Userinfo is dropped: neither
// backend authenticates with it, and an URL that does not carry it cannot leak
// it. A slash at the end is dropped too. The error never quotes raw, which may
// hold a password.
func Endpoint(raw string) (*url.URL, error) {
	u, err := url.Parse(strings.TrimSpace(raw))
	if err != nil {
		return nil, errEndpoint
	}
	if (u.Scheme != "http" && u.Scheme != "https") || u.Hostname() == "" ||
		u.RawQuery != "" || u.ForceQuery || u.Fragment != "" {
		return nil, errEndpoint
	}
	u.User = nil
	u.Path = strings.TrimRight(u.Path, "/")
	u.RawPath = ""
	return u, nil
}
