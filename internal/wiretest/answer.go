package wiretest

import (
	"fmt"
	"net/http"
	"sort"
	"strings"
	"time"
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

	chunked bool
	late    time.Duration
	part    part
	send    int // bytes of that part that are sent
	rst     bool
}

// part is where the sending of an answer ends.
type part int

const (
	atTheEnd part = iota
	inTheHead
	inTheBody
)

// Respond answers with a status, headers ("Name: value") and a body whose length
// is announced.
func Respond(status int, body string, header ...string) Answer {
	return Answer{kind: respond, status: status, header: header, body: body}
}

// Cut announces the whole body, sends n bytes of it and closes the connection.
func (a Answer) Cut(n int) Answer {
	a.part, a.send = inTheBody, n
	return a
}

// CutHead sends n bytes of the status line and headers and closes the connection.
func (a Answer) CutHead(n int) Answer {
	a.part, a.send = inTheHead, n
	return a
}

// ByReset makes Cut end the connection with a reset.
func (a Answer) ByReset() Answer {
	a.rst = true
	return a
}

// Chunked sends the body in one chunk, without announcing its length. Cut then
// counts bytes of the encoded body, and an answer that is cut lacks its end.
func (a Answer) Chunked() Answer {
	a.chunked = true
	return a
}

// After sends the answer that long after the request arrived, whether or not
// the client still waits.
func (a Answer) After(d time.Duration) Answer {
	a.late = d
	return a
}

// ResetAtOnce resets the connection without reading the request: when it is
// opened, or on a connection that was kept when a request begins.
func ResetAtOnce() Answer { return Answer{kind: resetAtOnce} }

// ResetAfterRequest reads the whole request and resets the connection: the server
// may have done what was asked.
func ResetAfterRequest() Answer { return Answer{kind: resetAfterRequest} }

// Hang reads the whole request and says nothing until the client goes away.
func Hang() Answer { return Answer{kind: hang} }

// Unread reports whether the answer is given without a request being read: the
// attempt is counted, and no Request is kept.
func (a Answer) Unread() bool { return a.kind == resetAtOnce }

func (a Answer) whole() bool { return a.part == atTheEnd }

func (a Answer) bytes() string {
	var b strings.Builder
	fmt.Fprintf(&b, "HTTP/1.1 %d %s\r\n", a.status, http.StatusText(a.status))
	h := append([]string(nil), a.header...)
	sort.Strings(h)
	for _, line := range h {
		b.WriteString(line + "\r\n")
	}
	content := a.body
	if a.chunked {
		content = fmt.Sprintf("%x\r\n%s\r\n0\r\n\r\n", len(a.body), a.body)
		b.WriteString("Transfer-Encoding: chunked\r\n\r\n")
	} else {
		fmt.Fprintf(&b, "Content-Length: %d\r\n\r\n", len(a.body))
	}
	switch a.part {
	case inTheHead:
		return b.String()[:a.send]
	case inTheBody:
		return b.String() + content[:a.send]
	}
	return b.String() + content
}
