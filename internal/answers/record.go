package answers

import (
	"time"

	"github.com/sf2loki/sf2loki-ha/coordinator"
)

// Where the scripted stores keep the lease.
const (
	Bucket    = "bkt"
	Key       = "sf2loki/leader.lease"
	Namespace = "logs"
	LeaseName = "leader"
)

// Wall is the wall clock of the one who acquired the lease of the table.
var Wall = time.Date(2026, 11, 30, 12, 0, 0, 123456000, time.UTC)

// Record is a held record with that write id.
func Record(writeID string) coordinator.Record {
	return coordinator.Record{
		Holder: "pod-1", Epoch: 7, Version: 1, Lease: "the lease", Incarnation: "inc-1", Term: "term-1", WriteID: writeID,
		TTL: 2500 * time.Millisecond, Renew: time.Second, State: coordinator.Held, AcquiredAt: Wall, RenewedAt: Wall.Add(time.Second),
	}
}

// Text is the document of a record.
func Text(r coordinator.Record) string {
	b, err := r.Marshal()
	if err != nil {
		panic("answers: " + err.Error()) // platform maps of strings always encode
	}
	return string(b)
}

// The writes of the table: what is there, and what each call writes.
var (
	there   = Text(Record("w1"))
	written = Text(Record("w2"))
)
