package failoverbench

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"math"
	"reflect"
	"strings"
	"testing"
	"time"
)

func TestTheFiguresByHand(t *testing.T) {
	if got := StatsOf(nil); got != (Stats{}) {
		t.Errorf("of nothing: %+v", got)
	}
	var values []time.Duration
	for i := 20; i >= 1; i-- {
		values = append(values, time.Duration(i)*time.Second)
	}
	want := Stats{N: 20, Mean: 10500 * time.Millisecond, P50: 10 * time.Second, P95: 19 * time.Second, Max: 20 * time.Second}
	if got := StatsOf(values); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	if values[0] != 20*time.Second {
		t.Error("the values were sorted in place")
	}
	one := Stats{N: 1, Mean: 3, P50: 3, P95: 3, Max: 3}
	if got := StatsOf([]time.Duration{3}); got != one {
		t.Errorf("of one: %+v", got)
	}
}

// sample is two crashes of ours and two of another's.
func sample() Report {
	const s, ms = time.Second, time.Millisecond
	return Report{
		Setup: Setup{Date: "2026-01-02", Commit: "abc", Rounds: 2, Seed: 5, ReadMillis: 60, WriteMillis: 100, LateMillis: 1.5},
		Results: []Result{
			{
				About: About{Name: "ours", Settings: "ttl 15s", Store: "memory", Ours: true, TTL: 15 * s, Bound: 16400 * ms},
				Rounds: []Round{
					{Crash: 70 * s, Age: 1 * s, Failover: 14200 * ms, Seal: 14360 * ms, Start: 14400 * ms},
					{Crash: 75*s + 300*time.Microsecond, Age: -20 * ms, Failover: 15300 * ms, Seal: 15460 * ms, Start: 15500 * ms},
				},
				Leader: Rates{720, 720}, Standby: Rates{3900, 0},
			},
			{
				About:  About{Name: "theirs", Settings: "a < b & c", Store: "memory", TTL: 15 * s},
				Rounds: []Round{{Crash: 70 * s, Age: 1 * s, Failover: 21 * s, Start: 21 * s}, {Crash: 75 * s, Age: 1 * s, Failover: 14 * s, Start: 14 * s}},
				Leader: Rates{0, 1713}, Standby: Rates{1100, 0},
			},
		},
	}
}

func TestTheRatioIsThatOfTheMeans(t *testing.T) {
	r := sample().Results
	// (14.2 + 15.3) / (14 + 15.02), and (21 + 14) / (14 + 14).
	if got := r[0].Ratio(); math.Abs(got-29.5/29.02) > 1e-9 {
		t.Error(got)
	}
	if got := r[1].Ratio(); got != 1.25 {
		t.Error(got)
	}
	if got := r[1].Ratios(); len(got) != 2 || got[0] != 1 || got[1] != 1.5 {
		t.Error(got)
	}
	if got := (Result{}).Ratio(); !math.IsInf(got, 1) {
		t.Errorf("of nothing: %v", got)
	}
}

func TestAReportComesBackFromItsFile(t *testing.T) {
	data, err := sample().Encode()
	if err != nil {
		t.Fatal(err)
	}
	got, err := Decode(data)
	if err != nil || !reflect.DeepEqual(got, sample()) {
		t.Errorf("%+v, %v\nwant %+v", got, err, sample())
	}
	for what, broken := range map[string]string{
		"not JSON":           "{",
		"a missing failover": strings.Replace(string(data), "[14200,15300]", "[14200]", 1),
		"a missing seal":     strings.Replace(string(data), "[14360,15460]", "[14360]", 1),
	} {
		if broken == string(data) {
			t.Fatalf("%s: the case has lost its bite", what)
		}
		if _, err := Decode([]byte(broken)); err == nil {
			t.Errorf("%s was read", what)
		}
	}
}

func TestTheTablesShowWhatWasMeasured(t *testing.T) {
	tables := sample().Tables()
	for _, want := range []string{
		"2 crashes each; reads of 60 ms, writes of 100 ms; seed 5; commit abc, 2026-01-02; timers at most 1.5 ms late.",
		"| ours (ttl 15s) | memory | 14.75 s | 14.20 s | 15.30 s | 15.30 s | 14.51 s | 1.017 | 15.28 s | 16.40 s |",
		"| theirs (a < b & c) | memory | 17.50 s | 14.00 s | 21.00 s | 21.00 s | 14.00 s | 1.250 | 22.00 s | - |",
		"| ours (ttl 15s) | memory | 0.16 s | 0.20 s | 720 | 720 | 0 | 3900 |",
		"| theirs (a < b & c) | memory | - | 0.00 s | 1713 | 0 | 0 | 1100 |",
	} {
		if !strings.Contains(tables, want) {
			t.Errorf("%q is not in\n%s", want, tables)
		}
	}
}

func TestThePictureIsAWholeDrawing(t *testing.T) {
	picture := sample().Picture()
	elements, decoder := map[string]int{}, xml.NewDecoder(bytes.NewReader(picture))
	for {
		token, err := decoder.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if e, ok := token.(xml.StartElement); ok {
			elements[e.Name.Local]++
			for _, a := range e.Attr {
				if strings.Contains(a.Value, "NaN") || strings.Contains(a.Value, "Inf") || a.Name.Local == "href" {
					t.Errorf("%s=%q", a.Name.Local, a.Value)
				}
			}
		}
	}
	if elements["svg"] != 1 || elements["path"] != 2 || elements["script"] != 0 {
		t.Error(elements)
	}
	// The staircase of the second one: 1.0 of the limit, then 1.5; the axis ends at
	// 1.6, so that 0.1 is 730/7 wide.
	if want := `d="M62.0 344.0H166.3V194.0H687.7V44.0H792.0"`; !strings.Contains(string(picture), want) {
		t.Errorf("%s is not in\n%s", want, picture)
	}
	if !strings.Contains(string(picture), "theirs (a &lt; b &amp; c) on memory: mean 17.50 s, 1.25 x its limit") {
		t.Error("the legend lacks the second one")
	}
	if !bytes.Equal(picture, sample().Picture()) {
		t.Error("the same report gives two pictures")
	}
	if empty := (Report{}).Picture(); !bytes.Contains(empty, []byte("</svg>")) {
		t.Error("nothing has no picture")
	}
}
