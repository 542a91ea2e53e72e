package guard

import (
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/sf2loki/sf2loki-ha/internal/boottime"
)

func TestOrdersSurviveTheWire(t *testing.T) {
	orders := []Order{
		{Type: OrderDeadline, Seq: 1, At: 1},
		{Type: OrderDeadline, Seq: 2, At: boottime.Never},
		{Type: OrderDeadline, Seq: 1<<64 - 1, At: -5},
		{Type: OrderSignal, Signal: 15},
		{Type: OrderKill},
	}
	var stream []byte
	for i := range orders {
		line, err := orders[i].Encode()
		if err != nil {
			t.Fatal(err)
		}
		stream = append(stream, line...)
		orders[i].Version = Version
	}
	for _, size := range []int{1, 2, 7, len(stream)} {
		var dec Decoder[Order]
		var got []Order
		for rest := stream; len(rest) > 0; {
			n := min(size, len(rest))
			out, err := dec.Feed(rest[:n])
			if err != nil {
				t.Fatalf("in pieces of %d: %v", size, err)
			}
			got, rest = append(got, out...), rest[n:]
		}
		if !reflect.DeepEqual(got, orders) {
			t.Errorf("in pieces of %d: got %+v, want %+v", size, got, orders)
		}
	}
}

func TestGarbageEndsTheStream(t *testing.T) {
	good := `{"v":1,"type":"kill"}` + "\n"
	for name, garbage := range map[string]string{
		"not JSON":          "hello\n",
		"empty line":        "\n",
		"null":              "null\n",
		"array":             "[]\n",
		"other version":     `{"v":2,"type":"kill"}` + "\n",
		"no version":        `{"type":"kill"}` + "\n",
		"unknown type":      `{"v":1,"type":"pause"}` + "\n",
		"unknown field":     `{"v":1,"type":"kill","unless":"busy"}` + "\n",
		"two messages":      `{"v":1,"type":"kill"}{"v":1,"type":"kill"}` + "\n",
		"number too large":  `{"v":1,"type":"deadline","seq":1,"at":9223372036854775808}` + "\n",
		"fractional time":   `{"v":1,"type":"deadline","seq":1,"at":1.5}` + "\n",
		"no sequence":       `{"v":1,"type":"deadline","at":5}` + "\n",
		"signal 0":          `{"v":1,"type":"signal"}` + "\n",
		"signal 65":         `{"v":1,"type":"signal","signal":65}` + "\n",
		"a report":          `{"v":1,"type":"ack","seq":1}` + "\n",
		"endless line":      strings.Repeat("x", maxMessage),
		"long line with LF": strings.Repeat(" ", maxMessage) + good,
		"binary":            "\x00\xff\xfe\n",
	} {
		t.Run(name, func(t *testing.T) {
			var dec Decoder[Order]
			out, err := dec.Feed([]byte(good + garbage))
			if !errors.Is(err, ErrGarbage) {
				t.Fatalf("error %v, want ErrGarbage", err)
			}
			if len(out) > 1 {
				t.Errorf("got %d messages, want at most the one before the garbage", len(out))
			}
			if out, again := dec.Feed([]byte(good)); len(out) != 0 || again == nil {
				t.Errorf("after garbage: %d messages, error %v; want none and an error", len(out), again)
			}
		})
	}
}

func TestLongErrorTextFitsIntoOneWrite(t *testing.T) {
	for name, text := range map[string]string{
		"plain":         strings.Repeat("a", 10000),
		"escaped":       strings.Repeat("\x01", 10000),
		"cut character": strings.Repeat("a", maxText-1) + "é",
	} {
		line, err := Report{Type: ReportStartFailed, Error: text}.Encode()
		if err != nil {
			t.Fatal(err)
		}
		if len(line) > maxMessage {
			t.Errorf("%s: %d bytes, want at most %d", name, len(line), maxMessage)
		}
		var dec Decoder[Report]
		if out, err := dec.Feed(line); err != nil || len(out) != 1 {
			t.Errorf("%s: decode: %d reports, error %v", name, len(out), err)
		}
	}
}

func TestAnOrderThatTheGuardWouldRefuseIsNotSent(t *testing.T) {
	for _, o := range []Order{{}, {Type: "pause"}, {Type: OrderDeadline}, {Type: OrderSignal, Signal: 99}} {
		if _, err := o.Encode(); err == nil {
			t.Errorf("%+v was encoded", o)
		}
	}
}

func FuzzDecoderNeverPanicsAndStaysEnded(f *testing.F) {
	f.Add([]byte(`{"v":1,"type":"deadline","seq":1,"at":5}`+"\n"), 3)
	f.Add([]byte("{\n"), 1)
	f.Fuzz(func(t *testing.T, data []byte, cut int) {
		cut = min(max(cut, 0), len(data))
		var dec Decoder[Order]
		_, first := dec.Feed(data[:cut])
		out, second := dec.Feed(data[cut:])
		if first != nil && (second == nil || len(out) > 0) {
			t.Fatal("the decoder went on after garbage")
		}
	})
}
