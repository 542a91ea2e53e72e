package coordinator

import (
	"time"

	"github.com/sf2loki/sf2loki-ha/cas"
)

// input is something that happened.
type input struct {
	at   Instant
	wall time.Time
	kind inputKind
	// For results: which operation, and what came back.
	op      uint64
	lease   Lease
	version cas.Version
	fence   Fence
	request RequestState
	err     error
	// For stop requests.
	reason string
	final  bool
	// For what is said of the work: the term it is about.
	term string
	// For the end of the work: the epoch that fenced it, or 0.
	floor int64
}

type inputKind uint8

const (
	inTick inputKind = iota
	inResult
	inWorkEnded
	inStop
	inWorkFailed  // it is started again within the term
	inWorkSettled // it has run well for a while: failures no longer count
)

// action is something to do.
type action struct {
	kind actionKind
	// For requests.
	op      uint64
	cond    condition
	rec     Record
	ask     inquiry
	request Request
	timeout time.Duration
	// For terms.
	term   termState
	cause  error
	killAt Instant
	event  Event
}

type actionKind uint8

const (
	doRead actionKind = iota
	doWrite
	doAsk     // read the fence, the request object, or both
	doRequest // write the request object
	doStart   // start the work of a term
	doExtend  // the instants of the term moved
	doEnd     // tell the work to end, with a cause
	doEmit
)
