//go:build clientgo

package failoverbench

import "time"

func init() {
	for _, retry := range []time.Duration{2 * time.Second, 5 * time.Second} {
		rivals = append(rivals, func(p Place) Contestant { return ClientGo(p, 15*time.Second, 10*time.Second, retry) })
	}
}
