package coordinator

import (
	"testing"
	"time"
)

// A store that takes one write a second counts from its own handling of a write,
// which lies between the send and the answer. Found by the fault proxy.
func TestWritesKeepTheirDistanceFromTheAnswerOfTheLastOne(t *testing.T) {
	cfg := Config{TTL: 8 * time.Second, RenewInterval: time.Second, PollInterval: time.Second, MinWriteInterval: time.Second}
	b := newBench(t, cfg, false)
	b.leads()
	for range 5 {
		b.until(doWrite, 3*time.Second)
		b.now = b.now.Add(150 * time.Millisecond)
		b.answer(input{version: "v"})
		answered := b.now
		b.until(doWrite, 3*time.Second)
		if got := b.now.Sub(answered); got < time.Second || got > 1100*time.Millisecond {
			t.Errorf("the next write came %v after the answer", got)
		}
		b.answer(input{version: "w"})
	}
}
