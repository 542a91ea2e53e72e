package cas

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Verdict is the outcome of a probe, or of one of its checks.
type Verdict string

// The verdicts. Their text is also the label of metrics.
const (
	// ProbeOK: every answer was definite and right.
	ProbeOK Verdict = "ok"
	// ProbeUnknown: an answer is missing, or was a refusal of the request and not
	// of its condition. Try again.
	ProbeUnknown Verdict = "unknown"
	// ProbeUnsupported: the store gave an answer that no sound store gives, or
	// said itself that it has no conditional writes. A lease must not be kept here.
	ProbeUnsupported Verdict = "unsupported"
)

// Verdicts lists every verdict.
func Verdicts() []Verdict { return []Verdict{ProbeOK, ProbeUnknown, ProbeUnsupported} }

// StoreFault names what is wrong with a store that must not be used.
type StoreFault string

// The faults. Their text is what operators read.
const (
	// FaultNotEnforced: a write was accepted although its condition was false.
	FaultNotEnforced StoreFault = "conditional writes are not enforced"
	// FaultRaced: conditions are checked, but not at the instant of the write.
	FaultRaced StoreFault = "conditional writes are raced"
	// FaultNotSupported: the store says NotImplemented.
	FaultNotSupported StoreFault = "conditional writes are not supported"
	// FaultNeverMatches: the first create works and every replace conflicts.
	FaultNeverMatches StoreFault = "the current version never matches"
	// FaultSameVersion: a version does not tell two writes apart.
	FaultSameVersion StoreFault = "a write does not change the version"
)

// hints tell what a fault means and what to do.
var faultHints = map[StoreFault]string{
	FaultNotEnforced:  "two replicas would lead at once here: use a store that enforces If-None-Match and If-Match, or look for a proxy that strips them",
	FaultRaced:        "two replicas would lead at once here: use a store whose conditional writes are atomic",
	FaultNotSupported: "use a store that implements conditional writes (on S3: If-None-Match and If-Match of PutObject)",
	FaultNeverMatches: "the first create works and every replace conflicts, so no lease can be renewed here: the store compares If-Match without the quotes of the ETag, or a proxy rewrites ETags; use another store, or take the proxy away",
	FaultSameVersion:  "a stale replica could not be told from the leader here: use another store",
}

// storeFault is a check's definite evidence against a store.
type storeFault struct {
	fault  StoreFault
	detail string
	cause  error
}

func (f *storeFault) Error() string {
	text := string(f.fault)
	if f.detail != "" {
		text += ": " + f.detail
	}
	if f.cause != nil {
		text += ": " + f.cause.Error()
	}
	return text
}

func (f *storeFault) Unwrap() error { return f.cause }

func notEnforced(what string) error {
	return &storeFault{FaultNotEnforced, what + " was accepted", nil}
}

func notSupported(cause error) error { return &storeFault{FaultNotSupported, "", cause} }

// ProbeCheck is the outcome of one check.
type ProbeCheck struct {
	// Name says what has to be true.
	Name string
	// Verdict is whether it is.
	Verdict Verdict
	// Err is the evidence, or what was missing. It is nil with ProbeOK, and with
	// ProbeUnknown if the check was not reached.
	Err error
}

// ProbeReport is the outcome of a probe.
type ProbeReport struct {
	// Version is ProbeVersion.
	Version int
	// Area names where the probe wrote, for people.
	Area string
	// Verdict is the worst of the checks.
	Verdict Verdict
	// Fault is the store's, with ProbeUnsupported.
	Fault StoreFault
	// Checks has one entry a check, in a fixed order.
	Checks []ProbeCheck
	// Requests is how many were sent, removals included.
	Requests int
	// Took is the time from the first request to the end of the removals.
	Took time.Duration
	// Left names objects that may have stayed, and CleanUp says why.
	Left    []string
	CleanUp error

	failed error // of the first check that decided
}

// report sums up.
func (p *prober) report(took time.Duration, closing error) ProbeReport {
	slices.Sort(p.left)
	r := ProbeReport{
		Version: ProbeVersion, Area: p.area, Verdict: ProbeOK, Checks: p.results,
		Requests: p.requests, Took: took, Left: p.left, CleanUp: errors.Join(p.cleaning, closing),
	}
	// Evidence beats what is missing; of each kind the first check decides.
	for _, c := range r.Checks {
		switch {
		case c.Verdict == ProbeUnsupported && r.Verdict != ProbeUnsupported:
			r.Verdict, r.failed = ProbeUnsupported, c.Err
			var f *storeFault
			if errors.As(c.Err, &f) {
				r.Fault = f.fault
			}
		case c.Verdict == ProbeUnknown && r.Verdict == ProbeOK:
			r.Verdict, r.failed = ProbeUnknown, c.Err
		case c.Verdict == ProbeUnknown && r.Verdict == ProbeUnknown && r.failed == nil:
			r.failed = c.Err
		}
	}
	if r.failed == nil {
		r.failed = closing // nothing was reached
	}
	return r
}

// Err is nil with ProbeOK. With ProbeUnsupported it is an *Error of class
// Unsupported whose text names the store's fault and whose hint says what to do.
// With ProbeUnknown it is an *Error that says what stands in the way, with the
// class of the answer that was given instead of a verdict.
func (r ProbeReport) Err() error {
	e := &Error{Op: "probe", Object: r.Area, Err: r.failed}
	switch r.Verdict {
	case ProbeOK:
		return nil
	case ProbeUnsupported:
		e.Class, e.Hint = Unsupported, faultHints[r.Fault]
		return e
	}
	e.Class = ClassOf(r.failed)
	switch e.Class {
	case "":
		e.Class = Ambiguous
	case Denied:
		e.Hint = "whether the store enforces conditions is not known: the probe was denied; it needs to read, write and remove objects whose names begin with " + r.Area
	case NoBucket:
		e.Hint = "whether the store enforces conditions is not known: there is no such bucket"
	case Contended:
		e.Hint = "whether the store enforces conditions is not known: it asked for fewer requests"
	case Ambiguous:
		e.Hint = "whether the store enforces conditions is not known: it did not answer, or not clearly"
	}
	return e
}

// String has one line a check.
func (r ProbeReport) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "store probe %d of %s: %s (%d requests, %v)\n", r.Version, r.Area, r.Verdict, r.Requests, r.Took.Round(time.Millisecond))
	for _, c := range r.Checks {
		fmt.Fprintf(&b, "  %-11s  %s", c.Verdict, c.Name)
		switch {
		case c.Err != nil:
			b.WriteString(": " + c.Err.Error())
		case c.Verdict == ProbeUnknown:
			b.WriteString(": not reached")
		}
		b.WriteByte('\n')
	}
	for _, name := range r.Left {
		fmt.Fprintf(&b, "  may be left: %s\n", name)
	}
	return b.String()
}
