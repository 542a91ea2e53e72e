package e2e

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/sf2loki/sf2loki-ha/cas"
	"github.com/sf2loki/sf2loki-ha/cas/linkfile"
	"github.com/sf2loki/sf2loki-ha/cas/s3"
	"github.com/sf2loki/sf2loki-ha/e2e/cluster"
)

const s3Section = "SF2LOKI_COORDINATE__S3_LEASE__"

// Exactly one leads, or there is a refusal that names the other.
func TestAPairThatDoesNotFitTogetherHasOneLeaderOrARefusal(t *testing.T) {
	cases := map[string]func(*testing.T){
		"different ttls":     differentTTLs,
		"one holder id":      oneHolderID,
		"wall clock, ahead":  func(t *testing.T) { otherWallClock(t, time.Hour) },
		"wall clock, behind": func(t *testing.T) { otherWallClock(t, -time.Hour) },
	}
	for name, open := range map[string]func(*testing.T) sharing{"s3": shareS3, "file": shareFile} {
		cases["two leases on one document, "+name+", one after the other"] = func(t *testing.T) { open(t).refused(t, false) }
		cases["two leases on one document, "+name+", at once"] = func(t *testing.T) { open(t).refused(t, true) }
	}
	together(t, cases)
}

// differentTTLs: the shorter one waits as long as the holder's record says, the
// longer one as long as it would for itself.
func differentTTLs(t *testing.T) {
	timing := func(ttl, renew string) cluster.Launch {
		return cluster.Launch{Env: []string{s3Section + "TTL=" + ttl, s3Section + "RENEW_INTERVAL=" + renew}}
	}
	o := &odd{b: s3Backend(t), launch: map[string]cluster.Launch{"A": timing("9s", "3s"), "B": timing("4s", "1s")}}
	o.turns(t, 9*time.Second)
}

// oneHolderID: a name is for people.
func oneHolderID(t *testing.T) {
	twin := cluster.Launch{Env: []string{s3Section + "HOLDER_ID=twin"}}
	o := &odd{b: s3Backend(t), launch: map[string]cluster.Launch{"A": twin, "B": twin}}
	o.turns(t, 6*time.Second)
	if rec := o.b.record(t); rec.Holder != "twin" {
		t.Errorf("holder %q; nothing was tested", rec.Holder)
	}
}

// stamped is every time that is written into an object or an answer.
var stamped = regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z`)

// otherClock is a way to a store for a replica whose wall clock is ahead (or, with
// a negative value, behind): every time that it writes is that much later in the
// store, every time that it reads that much earlier for it.
func otherClock(t *testing.T, store string, ahead time.Duration) (endpoint string, read, written *atomic.Int64) {
	t.Helper()
	read, written = &atomic.Int64{}, &atomic.Int64{}
	shift := func(data []byte, by time.Duration, shifted *atomic.Int64) []byte {
		return stamped.ReplaceAllFunc(data, func(text []byte) []byte {
			at, err := time.Parse(time.RFC3339Nano, string(text))
			if err != nil {
				t.Error(err)
				return text
			}
			shifted.Add(1)
			layout := "2006-01-02T15:04:05.000000Z07:00"
			if !bytes.Contains(text, []byte(".")) {
				layout = time.RFC3339
			}
			return []byte(at.Add(by).Format(layout))
		})
	}
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		body = shift(body, ahead, written)
		out, err := http.NewRequestWithContext(r.Context(), r.Method, store+r.URL.RequestURI(), bytes.NewReader(body))
		if err != nil {
			t.Error(err)
			return
		}
		out.Header = r.Header.Clone()
		sum := sha256.Sum256(body)
		out.Header.Set("X-Amz-Content-Sha256", hex.EncodeToString(sum[:])) // the gateway behind signs
		resp, err := http.DefaultTransport.RoundTrip(out)
		if err != nil {
			w.WriteHeader(http.StatusBadGateway)
			return
		}
		defer resp.Body.Close()
		answer, err := io.ReadAll(resp.Body)
		if err != nil {
			w.WriteHeader(http.StatusBadGateway)
			return
		}
		answer = shift(answer, -ahead, read)
		for name, values := range resp.Header {
			if name != "Content-Length" {
				w.Header()[name] = values
			}
		}
		for _, name := range []string{"Date", "Last-Modified"} {
			if at, err := http.ParseTime(resp.Header.Get(name)); err == nil {
				w.Header().Set(name, at.Add(-ahead).Format(http.TimeFormat))
			}
		}
		if r.Method != http.MethodHead {
			w.Header().Set("Content-Length", fmt.Sprint(len(answer)))
		}
		w.WriteHeader(resp.StatusCode)
		_, _ = w.Write(answer)
	}))
	t.Cleanup(front.Close)
	return front.URL, read, written
}

// endpointOf is the store's address in a configuration.
var endpointOf = regexp.MustCompile(`endpoint_url: "([^"]+)"`)

// otherWallClock: B's wall clock is an hour away from that of A and the store, in
// everything that it writes and reads.
func otherWallClock(t *testing.T, ahead time.Duration) {
	b := gateway(t, func(http.ResponseWriter, *http.Request) bool { return false })
	section := regexp.MustCompile(`\{(bucket: .*?endpoint_url: "[^"]+")`).FindStringSubmatch(b.config)[1]
	b.config = strings.Replace(b.config, "state: {store: none}", "state: {store: s3, s3: {"+section+"}}", 1)
	endpoint, read, written := otherClock(t, endpointOf.FindStringSubmatch(b.config)[1], ahead)
	o := &odd{b: b, wallAhead: map[string]time.Duration{"B": ahead}, launch: map[string]cluster.Launch{"B": {Env: []string{
		s3Section + "ENDPOINT_URL=" + endpoint, "SF2LOKI_STATE__S3__ENDPOINT_URL=" + endpoint}}}}
	o.turns(t, 6*time.Second)
	// What B wrote while it led is an hour off for everybody else.
	found := false
	for _, past := range b.record(t).History {
		if past.Holder == "B" {
			found = true
			if off := time.Until(past.From); off < ahead-2*time.Minute || off > ahead+2*time.Minute {
				t.Errorf("B's term began %v from now; want %v", off, ahead)
			}
		}
	}
	if !found || read.Load() < 10 || written.Load() < 3 {
		t.Errorf("%d times were shifted for B and %d by it, a term of B in the record: %v; nothing was tested", read.Load(), written.Load(), found)
	}
}

// sharing is two leases on one checkpoint document.
type sharing struct {
	b     backend
	setup map[string]cluster.Launch
	named map[string]string       // the lease of a replica, as the other one calls it
	lease map[string]cas.Register // the same, to look at
}

func shareS3(t *testing.T) sharing {
	b := s3Backend(t)
	sh := sharing{b: b, setup: map[string]cluster.Launch{}, named: map[string]string{}, lease: map[string]cas.Register{}}
	bucket := regexp.MustCompile(`bucket: ([^,]+),`).FindStringSubmatch(b.config)[1]
	objects, err := s3.Open(t.Context(), s3.Config{Bucket: bucket, Region: "us-east-1", EndpointURL: endpointOf.FindStringSubmatch(b.config)[1]})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = objects.Close() })
	for _, name := range []string{"A", "B"} {
		key := "leases/of-" + name
		sh.setup[name] = cluster.Launch{Env: []string{s3Section + "KEY=" + key}}
		sh.named[name], sh.lease[name] = "s3://"+bucket+"/"+key, objects.Register(key)
	}
	return sh
}

func shareFile(t *testing.T) sharing {
	sh := sharing{b: fileBackend(t), setup: map[string]cluster.Launch{}, named: map[string]string{}, lease: map[string]cas.Register{}}
	dir := t.TempDir()
	for _, name := range []string{"A", "B"} {
		path := filepath.Join(dir, name, "leader.lease")
		sh.setup[name] = cluster.Launch{Env: []string{"SF2LOKI_COORDINATE__FILE_LEASE__PATH=" + path}}
		sh.named[name], sh.lease[name] = path, linkfile.New(path, linkfile.Options{})
	}
	return sh
}

// stalled tells that a machine which was too busy for its guard or its renewals cost
// this replica a term. That is nobody's refusal: it may lead again.
func stalled(t *testing.T, r *cluster.Replica) bool {
	log := logOf(t, r)
	return strings.Contains(log, "no acknowledgement of deadline") || strings.Contains(log, `"event":"expired"`)
}

// refused starts two replicas with a lease each on one document, judges that one
// works on and the other never does, also when the first one is gone.
func (sh sharing) refused(t *testing.T, atOnce bool) {
	o := &odd{b: sh.b, launch: sh.setup, c: newCluster(t, sh.b)}
	document := document(t, sh.b)
	stop := watchCommits(t, document)
	all := map[string]*cluster.Replica{}
	launch := func(name string) {
		r, err := o.c.StartAs(name, sh.setup[name])
		if err != nil {
			t.Fatal(err)
		}
		all[name] = r
	}
	launch("A")
	if atOnce {
		launch("B")
	}
	first, ok := o.c.History().Await(30*time.Second, func(cluster.Act) bool { return true })
	if !ok {
		t.Fatal("no leader within 30 s")
	}
	if !atOnce {
		launch("B")
	}
	winner, loser := all[first.Replica], all[map[string]string{"A": "B", "B": "A"}[first.Replica]]

	// 1. Longer than the other one waits for its own lease: it is refused.
	refusal := "belongs to the lease " + sh.named[winner.Name] + ", this is " + sh.named[loser.Name]
	if !await(sh.b.budget.Failover+slack, func() bool { return strings.Contains(logOf(t, loser), refusal) }) {
		t.Errorf("the log of %s does not say %q:\n%s", loser.Name, refusal, logOf(t, loser))
	}
	before, err := readProgress(t.Context(), document)
	if err != nil {
		t.Fatal(err)
	}
	for end := time.Now().Add(sh.b.budget.Failover + slack); time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
		if yes, err := leads(winner); (err != nil || !yes) && !stalled(t, winner) {
			t.Fatalf("%s leads: %v, %v", winner.Name, yes, err)
		}
		if _, ready, err := loser.Ready(); err != nil || ready == "ready" {
			t.Fatalf("%s says %q, %v", loser.Name, ready, err)
		}
	}
	after, err := readProgress(t.Context(), document)
	if err != nil || after.N <= before.N || after.Fence.Term != first.Term && !stalled(t, winner) || after.Fence.Lease != sh.named[winner.Name] {
		t.Errorf("document %+v, before %+v, %v; want the first lease to work on in its term", after, before, err)
	}
	switch v, err := sh.lease[loser.Name].Load(t.Context()); {
	case !atOnce && cas.ClassOf(err) != cas.NotFound:
		t.Errorf("%s wrote its lease: %s, %v", loser.Name, v.Data, err)
	case atOnce && cas.ClassOf(err) != cas.NotFound && !bytes.Contains(v.Data, []byte(`"released"`)):
		t.Errorf("%s holds its lease: %s, %v", loser.Name, v.Data, err)
	}
	lines := 0
	for _, line := range strings.Split(logOf(t, loser), "\n") {
		if strings.Contains(line, `"level":"error"`) || strings.Contains(line, `"level":"warning"`) {
			lines++
		}
	}
	if lines > 3 {
		t.Errorf("%d warnings and errors about one fault:\n%s", lines, logOf(t, loser))
	}

	// 2. The document does not change hands by itself.
	if err := winner.Signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	time.Sleep(sh.b.budget.Failover + slack)
	stop()
	if _, ready, err := loser.Ready(); err != nil || ready == "ready" {
		t.Errorf("%s says %q, %v, on the document of another lease", loser.Name, ready, err)
	}
	for _, a := range o.acts() {
		if a.Replica == loser.Name {
			t.Fatalf("%s acted on the document of another lease", loser.Name)
		}
	}
	if missing := cluster.Missing(o.acts()); len(missing) > 0 {
		t.Errorf("%d records are missing, the first is %d", len(missing), missing[0])
	}
}
