//go:build clientgo

package main

import (
	"time"

	"github.com/sf2loki/sf2loki-ha/internal/failoverbench"
)

// client-go's defaults, and the same lease with our renew interval.
func init() {
	for _, retry := range []time.Duration{2 * time.Second, renew} {
		others = append(others, func(p failoverbench.Place) failoverbench.Contestant {
			return failoverbench.ClientGo(p, ttl, 10*time.Second, retry)
		})
	}
}
