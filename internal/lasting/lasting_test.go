package lasting

import (
	"testing"
	"time"
)

func TestALastingTroubleIsSaidOnceAndAgainAfterAWhile(t *testing.T) {
	var tr Troubles
	start := time.Unix(1000, 0)
	for i, step := range []struct {
		after     time.Duration
		key, what string
		want      bool
	}{
		{0, "read", "denied", true},
		{time.Second, "read", "denied", false},
		{time.Second, "write", "denied", true}, // another key
		{2 * time.Second, "read", "ambiguous", true},
		{3 * time.Second, "read", "denied", false}, // a kind that was said already
		{Repeat - time.Second, "read", "denied", false},
		{Repeat + 3*time.Second, "read", "denied", true},
	} {
		if got := tr.News(step.key, step.what, start.Add(step.after)); got != step.want {
			t.Errorf("step %d: %v, want %v", i, got, step.want)
		}
	}
	last := start.Add(Repeat + 3*time.Second)
	if tr.Calmed("read", last.Add(Calm-time.Millisecond)) {
		t.Error("one good answer is no end")
	}
	if !tr.Calmed("read", last.Add(Calm)) || tr.Calmed("read", last.Add(Calm)) {
		t.Error("it is over once, after a calm while")
	}
	if !tr.Over("write") || tr.Over("write") {
		t.Error("over is said once")
	}
	if !tr.News("read", "denied", start.Add(Repeat+4*time.Second)) {
		t.Error("a trouble that comes back is news")
	}
}
