package faultproxy

import (
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"

	"github.com/sf2loki/sf2loki-ha/internal/boottime"
)

// captured is a request that can be sent again.
type captured struct {
	request *http.Request
	body    []byte
}

// serve takes one request in at a door and tells its caller what the plan allows.
func (p *Proxy) serve(d *door, w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		reset(w) // the caller went away in the midst of it
		return
	}
	x := &exchange{}
	var data []byte
	x.Request, data = p.cfg.Service.understand(r, body)
	x.Replica, x.Arrived = d.replica, boottime.Now()
	if x.Op.Writes() {
		x.Document = describe(data)
	}
	p.note(x)
	p.mu.Lock()
	x.fault = p.decide(x.Request)
	if x.fault.LoseRequest == Delivered && x.Arrived < d.requestsCut {
		x.fault = Fault{LoseRequest: Silence}
		x.Fault = "requests cut"
	} else {
		x.Fault = x.fault.String()
	}
	p.mu.Unlock()

	// The request goes its way whether or not its caller waits for it.
	result := make(chan answer, 1)
	c := captured{request: r.Clone(context.WithoutCancel(r.Context())), body: body}
	if !p.begin(func() { p.carry(d, x, c, result) }) {
		reset(w)
		return
	}
	select {
	case a := <-result:
		p.tell(w, r, x, a)
	case <-r.Context().Done():
	case <-p.ctx.Done():
	}
}

// carry brings a request to the store and its answer back, as far as its fault
// lets it. An answer with the status 0 is a closed connection; no answer is
// silence.
func (p *Proxy) carry(d *door, x *exchange, c captured, result chan<- answer) {
	f := x.fault
	lost := func(l Loss) {
		if l == Reset {
			result <- answer{}
		}
	}
	// 1. On the way to the store.
	if f.LoseRequest != Delivered {
		p.change(x, func(e *Exchange) { e.Applied = refused(e.Op) })
		lost(f.LoseRequest)
		return
	}
	if !p.sleep(f.LateRequest) || !p.holdBack(x) {
		return
	}
	// 2. At the store.
	a, ok := p.visit(x, c)
	p.letPass(x)
	if f.Replay > 0 {
		p.wg.Go(func() { p.replay(x, c) })
	}
	if !ok {
		lost(Reset)
		return
	}
	// 3. On the way back.
	if !p.sleep(f.LateAnswer) {
		return
	}
	p.mu.Lock()
	cut := boottime.Now() < d.answersCut
	if cut && f.LoseAnswer == Delivered {
		f.LoseAnswer = Silence
		x.Fault = strings.TrimPrefix(x.Fault+" + answers cut", " + ")
	}
	p.mu.Unlock()
	if f.LoseAnswer != Delivered {
		lost(f.LoseAnswer)
		return
	}
	result <- a
}

func refused(op Op) Applied {
	if op.Writes() {
		return No
	}
	return ""
}

// visit gets the answer of the store, or a refusal in its place; false if there
// is none.
func (p *Proxy) visit(x *exchange, c captured) (answer, bool) {
	status := x.fault.Refuse
	if status == 0 && x.Op.Writes() && !p.mayWrite(x.Key) {
		status = http.StatusTooManyRequests
		p.change(x, func(e *Exchange) { e.Fault = strings.TrimPrefix(e.Fault+" + over the limit", " + ") })
	}
	if status != 0 {
		a := p.cfg.Service.refuse(status, x.Key)
		code, _ := p.cfg.Service.read(x.Op, a)
		p.change(x, func(e *Exchange) { e.Status, e.Code, e.Applied = status, code, refused(e.Op) })
		return a, true
	}
	p.change(x, func(e *Exchange) {
		if e.Sent = boottime.Now(); e.Op.Writes() {
			e.Applied = Unknown
		}
	})
	a, err := p.send(c)
	if err != nil {
		return answer{}, false
	}
	code, version := p.cfg.Service.read(x.Op, a)
	p.change(x, func(e *Exchange) {
		e.Answered, e.Status, e.Code, e.Version = boottime.Now(), a.status, code, version
		switch {
		case e.Op.Writes() && a.status < 300:
			e.Applied = Yes
		case e.Op.Writes() && a.status < 500:
			e.Applied = No
		case e.Op == Load && a.status < 300:
			e.Document = describe(a.body)
		}
	})
	return a, true
}

// replay sends a request once more, when its time has come. Nobody waits for the
// answer.
func (p *Proxy) replay(of *exchange, c captured) {
	if !p.sleep(of.fault.Replay) {
		return
	}
	x := &exchange{}
	p.mu.Lock()
	x.Request, x.Document, x.Of = of.Request, of.Document, of.ID
	p.mu.Unlock()
	if !x.Op.Writes() {
		x.Document = nil
	}
	x.Arrived = boottime.Now()
	p.note(x)
	_, _ = p.visit(x, c)
	p.letPass(x)
}

// send sends a request as it was sent to us.
func (p *Proxy) send(c captured) (answer, error) {
	ctx, cancel := context.WithTimeout(p.ctx, storeTimeout)
	defer cancel()
	in := c.request
	out := in.Clone(ctx)
	out.RequestURI = ""
	out.URL.Scheme, out.URL.Host = p.store.Scheme, p.store.Host
	if path, _, _ := strings.Cut(in.RequestURI, "?"); out.URL.EscapedPath() != path {
		out.URL.Opaque = path // spelt in a way that net/url would not
	}
	out.Host = in.Host // a signature covers it
	out.Close = false
	for _, name := range []string{"Connection", "Keep-Alive", "Proxy-Connection"} {
		out.Header.Del(name)
	}
	if len(out.Header.Values("User-Agent")) == 0 {
		out.Header["User-Agent"] = []string{""} // none, rather than our own
	}
	out.Body = http.NoBody
	if len(c.body) > 0 || in.ContentLength < 0 {
		out.Body = io.NopCloser(bytes.NewReader(c.body))
	}
	if p.cfg.Change != nil {
		if err := p.cfg.Change(out); err != nil {
			return answer{}, err
		}
	}
	resp, err := p.client.Do(out)
	if err != nil {
		return answer{}, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return answer{}, err
	}
	return answer{status: resp.StatusCode, header: resp.Header, body: body, chunked: resp.ContentLength < 0}, nil
}

// tell gives an answer to the caller.
func (p *Proxy) tell(w http.ResponseWriter, r *http.Request, x *exchange, a answer) {
	switch {
	case a.status == 0:
		reset(w)
		return
	case r.Context().Err() != nil: // the caller has gone
		return
	}
	for _, name := range []string{"Date", "Content-Type"} {
		w.Header()[name] = nil // the store's, or none
	}
	for name, values := range a.header {
		if name != "Connection" && name != "Content-Length" {
			w.Header()[name] = values
		}
	}
	switch {
	case r.Method == http.MethodHead:
		w.Header()["Content-Length"] = a.header["Content-Length"]
	case a.status != http.StatusNoContent && a.status != http.StatusNotModified && !a.chunked:
		w.Header().Set("Content-Length", strconv.Itoa(len(a.body)))
	}
	w.WriteHeader(a.status)
	if x.fault.CutAnswer {
		_, _ = w.Write(a.body[:len(a.body)/2])
		_ = http.NewResponseController(w).Flush()
		reset(w)
		return
	}
	if a.chunked {
		_ = http.NewResponseController(w).Flush()
	}
	_, _ = w.Write(a.body)
	if err := http.NewResponseController(w).Flush(); err == nil {
		p.change(x, func(e *Exchange) { e.Told = boottime.Now() })
	}
}

// reset closes the connection with nothing more said.
func reset(w http.ResponseWriter) {
	conn, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	if tcp, ok := conn.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
	_ = conn.Close()
}
