package answers

import (
	"github.com/sf2loki/sf2loki-ha/internal/wiretest"
)

// Absent is the condition of a create.
const Absent = "absent"

// Sent is what a request asks for.
type Sent struct {
	Op string // Load, Create, Replace, or "list"
	// Condition is Absent, or the version that a replace depends on.
	Condition string
	// Doc is the record that a write carries.
	Doc []byte
}

// String reads "load", "create if absent", "replace if 10".
func (s Sent) String() string {
	if s.Condition == "" {
		return s.Op
	}
	return s.Op + " if " + s.Condition
}

// Understand reads a request as the service does. A request that the service
// would read in another way, such as a write with no condition or with two, is an
// error.
func (s Service) Understand(r wiretest.Request) (Sent, error) {
	switch s {
	case S3:
		return understandS3(r)
	case GCS:
		return understandGCS(r)
	default:
		return understandK8s(r)
	}
}
