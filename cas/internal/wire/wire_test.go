package wire

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"
)

func TestScrubLeavesNoCredentialOfAURL(t *testing.T) {
	for _, tt := range []struct{ in, want string }{
		{`Put "https://u:p@host:1/b/k?X-Amz-Signature=s": EOF`, `Put "https://host:1": EOF`},
		{"GET HTTP://user@h/x failed", "GET http://h failed"},
		{"http://169.254.170.2/v2/credentials/6f-uuid: refused", "http://169.254.170.2 refused"},
		{"two http://a/b and https://c/d", "two http://a and https://c"},
		{"bad https://%zz:pw@x here", "bad (URL removed) here"},
		{"s3://bucket/key stays", "s3://bucket/key stays"},
	} {
		if got := Scrub(tt.in); got != tt.want {
			t.Errorf("Scrub(%q) = %q, want %q", tt.in, got, tt.want)
		}
	}
}

func TestCauseKeepsTheMeaningAndHidesTheOriginal(t *testing.T) {
	orig := &url.Error{Op: "Put", URL: "https://u:secret@h/b?sig=secret", Err: context.DeadlineExceeded}
	c := Cause(orig)
	if strings.Contains(c.Error(), "secret") {
		t.Errorf("text leaks: %s", c)
	}
	if !errors.Is(c, context.DeadlineExceeded) {
		t.Error("errors.Is no longer finds the context error")
	}
	var u *url.Error
	if errors.As(c, &u) {
		t.Error("the original with its URL is reachable")
	}
	if Cause(nil) != nil {
		t.Error("Cause(nil) is not nil")
	}
}

func TestEndpointDropsUserinfoAndQuotesNothing(t *testing.T) {
	u, err := Endpoint(" https://user:secret@host:9000/s3/ ")
	if err != nil || u.String() != "https://host:9000/s3" {
		t.Errorf("got %v, %v", u, err)
	}
	for _, bad := range []string{
		"", "host:9000", "ftp://user:secret@h", "http://", "http://:80", "http://h?secret=1", "http://h#secret",
		"http://user:secret@h:port", "http://h/%zz-secret",
	} {
		if _, err := Endpoint(bad); err == nil || strings.Contains(err.Error(), "secret") {
			t.Errorf("Endpoint(%q): %v", bad, err)
		}
	}
}

func TestClientFollowsNoRedirect(t *testing.T) {
	n := 0
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n++
		http.Redirect(w, r, "/elsewhere", http.StatusTemporaryRedirect)
	}))
	defer srv.Close()
	resp, err := Client(nil).Get(srv.URL)
	if err != nil {
		t.Fatal(err)
	}
	_, _ = io.Copy(io.Discard, resp.Body)
	resp.Body.Close()
	if resp.StatusCode != http.StatusTemporaryRedirect || n != 1 {
		t.Errorf("status %d after %d requests", resp.StatusCode, n)
	}
}

func TestClientLeavesTheGivenClientAlone(t *testing.T) {
	base := &http.Client{Timeout: time.Minute}
	c := Client(base)
	if base.CheckRedirect != nil {
		t.Error("the caller's client was changed")
	}
	if c.Timeout != time.Minute {
		t.Error("the caller's settings were lost")
	}
}
