package coordinator

import "errors"

// Why a term ended: the cause of the context that lead was given. Compare with
// errors.Is.
var (
	// ErrLost: another replica holds the lease, or it is gone. The work must be
	// killed at once, without grace: somebody else may act already.
	ErrLost = errors.New("lease lost")
	// ErrExpired: the lease could not be renewed in time. Nobody else may act
	// before the term's deadline; the work has until KillAt to end.
	ErrExpired = errors.New("lease not renewed in time")
	// ErrStopping: a stop or a step-down was requested. The lease is renewed
	// while the work drains, until KillAt.
	ErrStopping = errors.New("stop requested")
)
