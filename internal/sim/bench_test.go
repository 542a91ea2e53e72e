package sim_test

import (
	"testing"

	"github.com/sf2loki/sf2loki-ha/internal/sim"
)

// BenchmarkHistories plays one history an operation.
func BenchmarkHistories(b *testing.B) {
	for seed := range uint64(b.N) {
		sim.Play(seed+1, false)
	}
}
