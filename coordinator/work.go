package coordinator

import (
	"encoding/json"
	"errors"
	"slices"
	"time"
)

// ErrCrashLoop, wrapped in the error of lead, says that the work failed several
// times in a row and that another replica should try. What this replica then
// waits for is the back-off in the record; see Term.Failed.
var ErrCrashLoop = errors.New("the work fails again and again")

const (
	// firstBackoff is the back-off after the first failure in a row; it doubles
	// up to maxBackoff.
	firstBackoff = time.Second
	maxBackoff   = 60 * time.Second
	// maxFailures caps the count: beyond it nothing changes.
	maxFailures = 1000
	// maxFailed is how many incarnations a record remembers.
	maxFailed = 16
)

// Work is what a record says about the work: crash back-off spans all replicas
// of a lease. It is zero unless the work failed lately.
type Work struct {
	// Failures is how often the work failed in a row, on whichever replica.
	Failures int
	// Incarnations are the processes whose work failed since it last ran well,
	// latest last. One that is not among them may try at once.
	Incarnations []string
	// Backoff is how long those that failed wait, counted from the receipt of
	// the first read of the record: no two clocks are compared. At most 60 s.
	Backoff time.Duration
}

// failed returns w after one more failure of that process.
func (w Work) failed(incarnation string) Work {
	w.Failures = min(w.Failures+1, maxFailures)
	w.Backoff = min(maxBackoff, firstBackoff<<min(w.Failures-1, 10))
	list := slices.DeleteFunc(slices.Clone(w.Incarnations), func(i string) bool { return i == incarnation })
	list = append(list, incarnation)
	w.Incarnations = list[max(0, len(list)-maxFailed):]
	return w
}

// pause is how long that process waits after a record with w was first read.
func (w Work) pause(incarnation string) time.Duration {
	if slices.Contains(w.Incarnations, incarnation) {
		return w.Backoff
	}
	return 0
}

type wireWork struct {
	Failures      int      `json:"failures"`
	Incarnations  []string `json:"incarnations,omitempty"`
	BackoffMillis int64    `json:"backoff_ms"`
}

func (w Work) wire() *wireWork {
	if w.Failures == 0 {
		return nil
	}
	return &wireWork{w.Failures, w.Incarnations, w.Backoff.Milliseconds()}
}

// parseWork reads the field. A damaged one counts as absent: it only ever makes
// somebody wait.
func parseWork(raw json.RawMessage) Work {
	var w wireWork
	if json.Unmarshal(raw, &w) != nil || w.Failures <= 0 {
		return Work{}
	}
	return Work{
		Failures:     min(w.Failures, maxFailures),
		Incarnations: w.Incarnations[max(0, len(w.Incarnations)-maxFailed):],
		Backoff:      time.Duration(min(max(w.BackoffMillis, 0), maxBackoff.Milliseconds())) * time.Millisecond,
	}
}
