package wiretest

import (
	"fmt"
	"net/http"
	"sort"
	"strings"
)

type kind int

const (
	respond kind = iota
	resetAtOnce
	resetAfterRequest
	hang
)

// Answer is what the server does with one attempt.
type Answer struct {
	kind   kind
	status int
	header []string
	body   string
	send   int // bytes of the body that are sent
}

// Respond answers with a status, headers ("Name: value") and a body whose length
// is announced.
func Respond(status int, body string, header ...string) Answer {
	return Answer{kind: respond, status: status, header: header, body: body, send: len(body)}
}

// Cut announces the whole body, sends n bytes of it and closes the connection.
func (a Answer) Cut(n int) Answer {
	a.send = n
	return a
}

// ResetAtOnce resets the connection without reading a byte.
func ResetAtOnce() Answer { return Answer{kind: resetAtOnce} }

// ResetAfterRequest reads the whole request and resets the connection: the server
// may have done what was asked.
func ResetAfterRequest() Answer { return Answer{kind: resetAfterRequest} }

// Hang reads the whole request and says nothing until the client goes away.
func Hang() Answer { return Answer{kind: hang} }

func (a Answer) bytes() string {
	var b strings.Builder
	fmt.Fprintf(&b, "HTTP/1.1 %d %s\r\n", a.status, http.StatusText(a.status))
	h := append([]string(nil), a.header...)
	sort.Strings(h)
	for _, line := range h {
		b.WriteString(line + "\r\n")
	}
	fmt.Fprintf(&b, "Content-Length: %d\r\n\r\n", len(a.body))
	b.WriteString(a.body[:a.send])
	return b.String()
}
