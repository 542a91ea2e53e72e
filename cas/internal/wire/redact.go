package wire

import (
	"errors"
	"net/url"
	"regexp"
)

var urls = regexp.MustCompile(`(?i)\bhttps?://[^\s"'<>]+`)

// Scrub cuts every http and https URL in text down to scheme and host. Userinfo
// and presigned queries are credentials, and so is the path of the endpoint from
// which a container gets its role's keys.
func Scrub(text string) string {
	return urls.ReplaceAllStringFunc(text, func(s string) string {
		u, err := url.Parse(s)
		if err != nil || u.Host == "" {
			return "(URL removed)"
		}
		return u.Scheme + "://" + u.Host
	})
}

// Cause turns the error of a client library into the cause of a cas.Error: its
// text is scrubbed, errors.Is still finds what it wraps (a context error, an
// errno), and the original, whose text is not scrubbed, cannot be reached.
// Cause(nil) is nil.
func Cause(err error) error {
	if err == nil {
		return nil
	}
	text := err.Error()
	var u *url.Error
	if errors.As(err, &u) && u.Err != nil {
		text = u.Err.Error() // without "Put https://...", which the caller knows
	}
	return Because(text, err)
}

// Because is Cause with a text of the caller's choice, scrubbed as well.
func Because(text string, err error) error {
	return &cause{text: Scrub(text), err: err}
}

type cause struct {
	text string
	err  error
}

func (c *cause) Error() string { return c.text }

// Is looks through to the original without handing it out, as Unwrap would.
func (c *cause) Is(target error) bool { return c.err != nil && errors.Is(c.err, target) }
