package faultproxy

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// objects is a small store with ETags, which remembers what reached it.
type objects struct {
	mu      sync.Mutex
	data    map[string]string
	version int
	etags   map[string]string
	visits  []string
}

func (o *objects) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	o.mu.Lock()
	defer o.mu.Unlock()
	o.visits = append(o.visits, r.Method+" "+r.URL.Path+" "+string(body))
	etag := o.etags[r.URL.Path]
	if r.Method != http.MethodPut {
		if etag == "" {
			http.NotFound(w, r)
			return
		}
		w.Header().Set("ETag", etag)
		_, _ = io.WriteString(w, o.data[r.URL.Path])
		return
	}
	if match := r.Header.Get("If-Match"); match != "" && match != etag || r.Header.Get("If-None-Match") == "*" && etag != "" {
		w.WriteHeader(http.StatusPreconditionFailed)
		return
	}
	o.version++
	o.data[r.URL.Path], o.etags[r.URL.Path] = string(body), strconv.Quote(strconv.Itoa(o.version))
	w.Header().Set("ETag", o.etags[r.URL.Path])
}

func (o *objects) seen() []string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.Clone(o.visits)
}

// rig is a proxy in front of a small store.
type rig struct {
	*Proxy
	t     *testing.T
	store *objects
}

func newRig(t *testing.T, cfg Config) rig {
	t.Helper()
	o := &objects{data: map[string]string{}, etags: map[string]string{}}
	srv := httptest.NewServer(o)
	t.Cleanup(srv.Close)
	cfg.Store = srv.URL
	return rig{open(t, cfg), t, o}
}

func open(t *testing.T, cfg Config) *Proxy {
	t.Helper()
	p, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	})
	return p
}

func (r rig) door(name string) string {
	r.t.Helper()
	url, err := r.Door(name)
	if err != nil {
		r.t.Fatal(err)
	}
	return url
}

// patience is how long a caller of the tests waits for an answer.
const patience = 400 * time.Millisecond

// outcome is what a caller sees: a status, or why there is none.
type outcome struct {
	status int
	body   string
	etag   string
	lost   string // "silence" or "closed"
	took   time.Duration
}

func (o outcome) String() string {
	if o.lost != "" {
		return o.lost
	}
	return fmt.Sprint(o.status)
}

func (r rig) send(replica, method, key, body string, header ...string) outcome {
	r.t.Helper()
	begun := time.Now()
	ctx, cancel := context.WithTimeout(r.t.Context(), patience)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, r.door(replica)+"/"+key, strings.NewReader(body))
	if err != nil {
		r.t.Fatal(err)
	}
	for i := 0; i+1 < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	resp, err := (&http.Transport{DisableKeepAlives: true}).RoundTrip(req)
	o := outcome{}
	var data []byte
	if err == nil {
		defer resp.Body.Close()
		o.status, o.etag = resp.StatusCode, resp.Header.Get("ETag")
		data, err = io.ReadAll(resp.Body)
		o.body = string(data)
	}
	o.took = time.Since(begun)
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		o.lost = "silence"
	case err != nil:
		o.lost = "closed"
	}
	return o
}

// last is the exchange that came last, once it looks as expected.
func (r rig) last(want func(Exchange) bool) Exchange {
	r.t.Helper()
	var x Exchange
	for end := time.Now().Add(5 * time.Second); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		all := r.Exchanges()
		if x = all[len(all)-1]; want(x) {
			return x
		}
	}
	r.t.Errorf("the last exchange is %+v", x)
	return x
}

func TestWhatAFaultSaysHappens(t *testing.T) {
	const delay = 100 * time.Millisecond
	for name, tt := range map[string]struct {
		fault   Fault
		caller  string
		reaches bool // the store
		told    bool
		applied Applied
		atLeast time.Duration
	}{
		"nothing":                {Fault{}, "200", true, true, Yes, 0},
		"lost request, closed":   {Fault{LoseRequest: Reset}, "closed", false, false, No, 0},
		"lost request, silent":   {Fault{LoseRequest: Silence}, "silence", false, false, No, patience},
		"lost answer, closed":    {Fault{LoseAnswer: Reset}, "closed", true, false, Yes, 0},
		"lost answer, silent":    {Fault{LoseAnswer: Silence}, "silence", true, false, Yes, patience},
		"late request":           {Fault{LateRequest: delay}, "200", true, true, Yes, delay},
		"late answer":            {Fault{LateAnswer: delay}, "200", true, true, Yes, delay},
		"request, much too late": {Fault{LateRequest: 2 * patience}, "silence", true, false, Yes, patience},
		"answer, much too late":  {Fault{LateAnswer: 2 * patience}, "silence", true, false, Yes, patience},
		"held back, alone":       {Fault{HoldBack: delay}, "200", true, true, Yes, delay},
		"refused":                {Fault{Refuse: 503}, "503", false, true, No, 0},
		"late and lost":          {Fault{LateRequest: delay, LoseAnswer: Reset}, "closed", true, false, Yes, delay},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, Config{})
			r.Add(Rule{Fault: tt.fault})
			o := r.send("A", "PUT", "k", "v")
			if o.String() != tt.caller || o.took < tt.atLeast {
				t.Errorf("the caller sees %q after %v", o, o.took)
			}
			x := r.last(func(x Exchange) bool {
				return x.Applied == tt.applied && (x.Told != 0) == tt.told && (x.Answered != 0) == tt.reaches
			})
			if x.Fault != tt.fault.String() {
				t.Errorf("recorded as %q", x.Fault)
			}
			if got := len(r.store.seen()) > 0; got != tt.reaches {
				t.Errorf("the store was reached: %v", got)
			}
			if tt.reaches && x.Sent-x.Arrived < 0 || x.Told != 0 && x.Told < x.Answered {
				t.Errorf("instants out of order: %+v", x)
			}
		})
	}
}

func TestACutAnswerEndsInTheMidstOfItsBody(t *testing.T) {
	r := newRig(t, Config{})
	r.send("A", "PUT", "k", "0123456789")
	r.Add(Rule{Op: Load, Fault: Fault{CutAnswer: true}})
	if o := r.send("A", "GET", "k", ""); o.status != 200 || o.body != "01234" || o.lost != "closed" {
		t.Errorf("%+v", o)
	}
	if x := r.last(func(x Exchange) bool { return x.Op == Load }); x.Told != 0 {
		t.Error("recorded as told")
	}
}

func TestAReplayedRequestComesAgain(t *testing.T) {
	r := newRig(t, Config{})
	r.Add(Rule{Op: Put, Times: 1, Fault: Fault{Replay: 200 * time.Millisecond}})
	r.send("A", "PUT", "k", "old")
	r.send("A", "PUT", "k", "new")
	if o := r.send("A", "GET", "k", ""); o.body != "new" {
		t.Errorf("%q before the replay", o.body)
	}
	x := r.last(func(x Exchange) bool { return x.Of != 0 && x.Applied == Yes })
	if x.Of != 1 || x.Told != 0 || x.Replica != "A" {
		t.Errorf("%+v", x)
	}
	if o := r.send("A", "GET", "k", ""); o.body != "old" {
		t.Errorf("%q after the replay", o.body)
	}
}

func TestAHeldRequestIsOvertakenByALaterWriteOfItsObjectAlone(t *testing.T) {
	r := newRig(t, Config{})
	r.Add(Rule{Replica: "A", Op: Put, Fault: Fault{HoldBack: 5 * time.Second}})
	done := make(chan outcome)
	go func() { done <- r.send("A", "PUT", "k", "held") }()
	for len(r.Exchanges()) == 0 {
		time.Sleep(time.Millisecond)
	}
	time.Sleep(50 * time.Millisecond)
	r.send("B", "PUT", "other", "x")
	r.send("B", "GET", "k", "")
	time.Sleep(50 * time.Millisecond)
	if n := len(r.store.seen()); n != 2 {
		t.Fatalf("passed after a write of another object and a read: %q", r.store.seen())
	}
	r.send("B", "PUT", "k", "later")
	if o := <-done; o.status != 200 {
		t.Errorf("%+v", o)
	}
	if got := r.store.seen()[2:]; !slices.Equal(got, []string{"PUT /k later", "PUT /k held"}) {
		t.Errorf("order %q", got)
	}
	if x := r.Exchanges()[0]; x.Fault != "held back and overtaken" {
		t.Errorf("recorded as %q", x.Fault)
	}
}

func TestARuleHitsTheNthRequestOfItsKind(t *testing.T) {
	r := newRig(t, Config{})
	r.Add(Rule{Replica: "A", Op: Put, Key: "lease*", Skip: 1, Times: 2, Fault: Fault{Refuse: 503}})
	var got []int
	for range 5 {
		for _, other := range []outcome{r.send("B", "PUT", "lease", "x"), r.send("A", "PUT", "state", "x"), r.send("A", "GET", "lease", "")} {
			if other.status == 503 {
				t.Error("another replica, object or operation was hit")
			}
		}
		got = append(got, r.send("A", "PUT", "lease.request", "x").status)
	}
	if want := []int{200, 503, 503, 200, 200}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	r.Add(Rule{For: 150 * time.Millisecond, Fault: Fault{Refuse: 500}, If: func(q Request) bool { return q.Key == "z" }})
	if a, b := r.send("A", "PUT", "z", ""), r.send("A", "PUT", "y", ""); a.status != 500 || b.status != 200 {
		t.Errorf("%v, %v while the rule stands", a, b)
	}
	time.Sleep(150 * time.Millisecond)
	if o := r.send("A", "PUT", "z", ""); o.status != 200 {
		t.Errorf("%v after its time", o)
	}
}

func TestACutDoorLetsNothingPassInItsDirectionForItsTime(t *testing.T) {
	for _, tt := range []struct {
		dir     Direction
		applied Applied
	}{{Requests, No}, {Answers, Yes}, {Both, No}} {
		t.Run(tt.dir.String(), func(t *testing.T) {
			t.Parallel()
			r := newRig(t, Config{})
			r.door("A")
			if err := r.Cut("A", tt.dir, 2*patience); err != nil {
				t.Fatal(err)
			}
			if o := r.send("A", "PUT", "k", "v"); o.lost != "silence" {
				t.Errorf("the caller sees %v", o)
			}
			r.last(func(x Exchange) bool { return x.Applied == tt.applied && x.Told == 0 && x.Fault != "" })
			if o := r.send("B", "PUT", "k", "v"); o.status != 200 {
				t.Errorf("another door: %v", o)
			}
			time.Sleep(patience + 50*time.Millisecond)
			if o := r.send("A", "PUT", "k", "v"); o.status != 200 {
				t.Errorf("%v afterwards", o)
			}
		})
	}
	// What is under way is lost as well.
	r := newRig(t, Config{})
	r.door("A")
	r.Add(Rule{Fault: Fault{LateAnswer: 100 * time.Millisecond}})
	time.AfterFunc(50*time.Millisecond, func() { _ = r.Cut("A", Answers, time.Second) })
	if o := r.send("A", "PUT", "k", "v"); o.lost != "silence" {
		t.Errorf("an answer under way: %v", o)
	}
}

func TestAnObjectTakesSoManyWritesASecond(t *testing.T) {
	r := newRig(t, Config{WritesPerSecond: 1})
	first, second, other := r.send("A", "PUT", "k", "1"), r.send("B", "PUT", "k", "2"), r.send("A", "PUT", "o", "3")
	if first.status != 200 || second.status != 429 || other.status != 200 {
		t.Errorf("%v, %v, another object %v", first, second, other)
	}
	if o := r.send("A", "GET", "k", ""); o.body != "1" {
		t.Errorf("%q was stored", o.body)
	}
	time.Sleep(time.Second)
	if o := r.send("B", "PUT", "k", "2"); o.status != 200 {
		t.Errorf("%v after a second", o)
	}
}

func TestTheRecordSaysWhatTheStoreAnswered(t *testing.T) {
	r := newRig(t, Config{})
	r.send("A", "GET", "k", "")
	r.send("A", "PUT", "k", `{"holder":"A","epoch":7,"version":1,"term":"t7","write_id":"w1","state":"held"}`, "If-None-Match", "*")
	r.send("B", "PUT", "k", "x", "If-None-Match", "*")
	r.send("A", "PUT", "k", `{"__fence_epoch__":"7","__fence__":"{\"term\":\"t7\",\"write_id\":\"w2\"}","canary:position":"{\"n\":5,\"epoch\":6,\"term\":\"t6\"}"}`, "If-Match", `"1"`)
	r.send("B", "PUT", "k", "x", "If-Match", `"1"`)
	r.send("B", "GET", "k", "")
	r.send("B", "PUT", "k", "x")
	want := []string{
		"A load  404 absent ", "A create absent 200 1 yes", "B create absent 412  no", "A replace 1 200 2 yes",
		"B replace 1 412  no", "B load  200 2 ", "B put  200 3 yes",
	}
	var got []string
	all := r.Exchanges()
	for _, x := range all {
		got = append(got, fmt.Sprintf("%s %s %s %d %s %s", x.Replica, x.Op, x.Condition, x.Status, x.Version, x.Applied))
	}
	if !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
	if d := all[1].Document; d == nil || *d != (Document{Kind: "lease", WriteID: "w1", Epoch: 7, Term: "t7", State: "held"}) {
		t.Errorf("lease %+v", d)
	}
	if d := all[5].Document; d == nil || d.Kind != "checkpoint" || d.WriteID != "w2" || d.Epoch != 7 || d.Term != "t7" || d.Keys != 1 || d.Position == nil || *d.Position != (Position{5, 6, "t6"}) {
		t.Errorf("checkpoint %+v", d)
	}
	if all[6].Document != nil {
		t.Errorf("%+v made of x", all[6].Document)
	}
}

func TestARequestThatNoFaultHitsPassesAsItWasSent(t *testing.T) {
	var got *http.Request
	var body []byte
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got = r.Clone(context.Background())
		body, _ = io.ReadAll(r.Body)
		w.Header()["X-Two"] = []string{"1", "2"}
		w.Header().Set("Date", "Mon, 30 Nov 2026 10:00:00 GMT")
		w.WriteHeader(299)
		_ = http.NewResponseController(w).Flush() // chunked
		_, _ = w.Write(body)
	}))
	t.Cleanup(srv.Close)
	p := open(t, Config{Store: srv.URL})
	door, err := p.Door("A")
	if err != nil {
		t.Fatal(err)
	}
	large := bytes.Repeat([]byte("0123456789abcdef"), 1<<18) // 4 MiB
	for name, length := range map[string]int64{"with its length": int64(len(large)), "in chunks": -1} {
		t.Run(name, func(t *testing.T) {
			req, err := http.NewRequest("PUT", door+"/a%2Fb//c%20d+e?x=1&y=%2B&z", io.NopCloser(bytes.NewReader(large)))
			if err != nil {
				t.Fatal(err)
			}
			req.ContentLength, req.Host = length, "bucket.example:1234"
			req.Header["User-Agent"] = []string{""}
			req.Header["X-Amz-Meta"] = []string{"a", "b"}
			req.Header.Set("Expect", "100-continue")
			resp, err := http.DefaultTransport.RoundTrip(req)
			if err != nil {
				t.Fatal(err)
			}
			defer resp.Body.Close()
			back, err := io.ReadAll(resp.Body)
			if err != nil || !bytes.Equal(back, large) || !bytes.Equal(body, large) {
				t.Errorf("%d bytes there and %d back of %d, %v", len(body), len(back), len(large), err)
			}
			if got.Host != req.Host || got.RequestURI != "/a%2Fb//c%20d+e?x=1&y=%2B&z" || got.ContentLength != length || (length < 0) != slices.Equal(got.TransferEncoding, []string{"chunked"}) {
				t.Errorf("%s %s, length %d, %v", got.Host, got.RequestURI, got.ContentLength, got.TransferEncoding)
			}
			if !slices.Equal(got.Header["X-Amz-Meta"], []string{"a", "b"}) || got.UserAgent() != "" || len(got.Header["Accept-Encoding"]) != 1 {
				t.Errorf("headers %v", got.Header)
			}
			if resp.StatusCode != 299 || !slices.Equal(resp.Header["X-Two"], []string{"1", "2"}) || resp.Header.Get("Date") != "Mon, 30 Nov 2026 10:00:00 GMT" ||
				resp.ContentLength != -1 || resp.Header["Content-Type"] != nil {
				t.Errorf("answer %d, length %d, %v", resp.StatusCode, resp.ContentLength, resp.Header)
			}
		})
	}
}

func TestAStoreThatIsAwayIsAClosedConnectionAndAnUnknownOutcome(t *testing.T) {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { reset(w) }))
	t.Cleanup(srv.Close)
	r := rig{open(t, Config{Store: srv.URL}), t, nil}
	if o := r.send("A", "PUT", "k", "v"); o.lost != "closed" {
		t.Errorf("%v", o)
	}
	r.last(func(x Exchange) bool { return x.Applied == Unknown && x.Answered == 0 && x.Told == 0 })
}

func TestAChangedRequestReachesTheStoreChangedAndIsRecordedAsItCame(t *testing.T) {
	r := newRig(t, Config{Change: func(req *http.Request) error {
		req.Header.Del("If-Match")
		return nil
	}})
	r.send("A", "PUT", "k", "1")
	if o := r.send("A", "PUT", "k", "2", "If-Match", `"never"`); o.status != 200 {
		t.Errorf("%v", o)
	}
	r.last(func(x Exchange) bool { return x.Op == Replace && x.Condition == "never" && x.Applied == Yes })
}

func TestCalmEndsAllFaults(t *testing.T) {
	r := newRig(t, Config{Random: &Random{LoseRequest: 1}})
	r.Add(Rule{Op: Load, Fault: Fault{Refuse: 503}})
	r.door("A")
	if err := r.Cut("A", Both, time.Hour); err != nil {
		t.Fatal(err)
	}
	r.Calm()
	for _, method := range []string{"PUT", "GET"} {
		if o := r.send("A", method, "k", "v"); o.status != 200 {
			t.Errorf("%s: %v", method, o)
		}
	}
}

func TestCloseEndsWhatIsUnderWay(t *testing.T) {
	r := newRig(t, Config{})
	r.Add(Rule{Op: Put, Fault: Fault{LateRequest: time.Hour}})
	r.Add(Rule{Op: Load, Fault: Fault{LoseAnswer: Silence}})
	door := r.door("A")
	for _, method := range []string{"PUT", "GET"} {
		go func() {
			req, _ := http.NewRequest(method, door+"/k", nil)
			if resp, err := http.DefaultTransport.RoundTrip(req); err == nil {
				resp.Body.Close()
			}
		}()
	}
	for len(r.Exchanges()) < 2 {
		time.Sleep(time.Millisecond)
	}
	begun := time.Now()
	if err := r.Close(); err != nil || time.Since(begun) > 2*time.Second {
		t.Errorf("%v after %v", err, time.Since(begun))
	}
	if _, err := http.Get(door); err == nil {
		t.Error("the door is open")
	}
}
