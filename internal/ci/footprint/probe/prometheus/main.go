// Command prometheus is the footprint of the metrics.
package main

import (
	"github.com/sf2loki/sf2loki-ha/internal/ci/footprint/resident"
	"github.com/sf2loki/sf2loki-ha/internal/telemetry"
)

func main() {
	resident.Print(telemetry.New("probe", func() telemetry.State { return telemetry.State{} }).Handler())
}
