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
		{3 * time.Second, "read", "denied", true}, // another kind again
		{Repeat, "read", "denied", false},
		{Repeat + 3*time.Second, "read", "denied", true},
	} {
		if got := tr.News(step.key, step.what, start.Add(step.after)); got != step.want {
			t.Errorf("step %d: %v, want %v", i, got, step.want)
		}
	}
	if what, was := tr.Over("read"); what != "denied" || !was {
		t.Errorf("over: %q, %v", what, was)
	}
	if what, was := tr.Over("read"); what != "" || was {
		t.Errorf("over twice: %q, %v", what, was)
	}
	if !tr.News("read", "denied", start.Add(Repeat+4*time.Second)) {
		t.Error("a trouble that comes back is news")
	}
}
