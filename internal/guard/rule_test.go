package guard_test

import (
	"testing"

	"github.com/sf2loki/sf2loki-ha/internal/boottime"
	"github.com/sf2loki/sf2loki-ha/internal/guard"
)

func deadline(seq uint64, at boottime.Instant) guard.Order {
	return guard.Order{Type: guard.OrderDeadline, Seq: seq, At: at}
}

func TestTheRuleAcceptsNoInstantThatComesTooLate(t *testing.T) {
	type order struct {
		at    boottime.Instant // when it is read
		order guard.Order
		ack   bool
	}
	for name, c := range map[string]struct {
		orders []order
		reason guard.Reason // "": it has not fired
		until  boottime.Instant
	}{
		"no order":                       {nil, "", boottime.Never},
		"one":                            {[]order{{10, deadline(1, 100), true}}, "", 100},
		"a later instant":                {[]order{{10, deadline(1, 100), true}, {50, deadline(2, 200), true}}, "", 200},
		"an earlier instant":             {[]order{{10, deadline(1, 100), true}, {50, deadline(2, 60), true}}, "", 60},
		"read at the old instant":        {[]order{{10, deadline(1, 100), true}, {100, deadline(2, 200), false}}, guard.ReasonDeadline, 100},
		"read just before it":            {[]order{{10, deadline(1, 100), true}, {99, deadline(2, 200), true}}, "", 200},
		"an instant that is over":        {[]order{{10, deadline(1, 100), true}, {50, deadline(2, 50), false}}, guard.ReasonDeadline, 50},
		"the first is over":              {[]order{{10, deadline(1, 10), false}}, guard.ReasonDeadline, 10},
		"a number that was used":         {[]order{{10, deadline(1, 100), true}, {20, deadline(1, 200), false}}, guard.ReasonEOF, 100},
		"an order after the end":         {[]order{{10, deadline(1, 100), true}, {20, deadline(1, 200), false}, {30, deadline(2, 300), false}}, guard.ReasonEOF, 100},
		"a number that was left out":     {[]order{{10, deadline(1, 100), true}, {20, deadline(7, 200), true}}, "", 200},
		"an order after the last moment": {[]order{{10, deadline(1, 100), true}, {200, deadline(2, 300), false}, {210, deadline(3, 400), false}}, guard.ReasonDeadline, 100},
	} {
		t.Run(name, func(t *testing.T) {
			var r guard.Rule
			for i, o := range c.orders {
				ack, first := r.Deadline(o.order, o.at)
				if ack != o.ack || first && i > 0 || o.ack && i == 0 && !first {
					t.Errorf("order %d: acknowledged %v, first %v", i, ack, first)
				}
			}
			reason, fired := r.Fired()
			if reason != c.reason || fired != (c.reason != "") || r.Until() != c.until {
				t.Errorf("%q %v, instant %d; want %q, %d", reason, fired, r.Until(), c.reason, c.until)
			}
		})
	}
}

func TestTheFirstReasonToFireStands(t *testing.T) {
	var r guard.Rule
	r.Deadline(deadline(1, 100), 10)
	r.Fire(guard.ReasonKill)
	if !r.Look(1000) {
		t.Error("has not fired")
	}
	if reason, _ := r.Fired(); reason != guard.ReasonKill {
		t.Errorf("%q", reason)
	}
}
