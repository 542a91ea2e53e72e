package budgetcmd

import "github.com/sf2loki/sf2loki-ha/coordinator"

// Dollars for 1,000 requests, the same on both stores: S3 Standard in us-east-1 and
// Cloud Storage Standard in one region. Removals are free. A dual or multi-region
// of Cloud Storage charges twice as much for writes.
const (
	writePrice = 0.005
	readPrice  = 0.0004
)

// The requests of one store probe, which every replica makes once an hour.
const (
	probeWrites = 26
	probeReads  = 9
)

// hoursPerMonth is a year's hours through twelve.
const hoursPerMonth = 730

// Cost is dollars per month for the requests of a leader and one standby.
type Cost struct {
	LeaderWrites, LeaderReads, StandbyReads, Probes, Total float64
	// ProbeWrites and ProbeReads are those of both replicas in an hour.
	ProbeWrites, ProbeReads int
}

// costOf prices the requests of b, with or without the hourly probes.
func costOf(b coordinator.Budget, probed bool) Cost {
	var c Cost
	if probed {
		c.ProbeWrites, c.ProbeReads = 2*probeWrites, 2*probeReads
	}
	month := func(perHour int, price float64) float64 { return float64(perHour) * hoursPerMonth / 1000 * price }
	c.LeaderWrites = month(b.LeaderWritesPerHour, writePrice)
	c.LeaderReads = month(b.LeaderReadsPerHour, readPrice)
	c.StandbyReads = month(b.StandbyReadsPerHour, readPrice)
	c.Probes = month(c.ProbeWrites, writePrice) + month(c.ProbeReads, readPrice)
	c.Total = c.LeaderWrites + c.LeaderReads + c.StandbyReads + c.Probes
	return c
}

func (c Cost) probes() int { return c.ProbeWrites + c.ProbeReads }
