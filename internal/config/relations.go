package config

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/sf2loki/sf2loki-ha/coordinator"
)

// durations checks the durations of the selected coordinator, of the service and
// of the workload, also against each other. The relations are the coordinator's;
// here they get the names of the file. What depends on a value that was reported
// already is not judged, all the rest is.
func (k *checker) durations() {
	const graceKey = "workload.stop_grace"
	ttlKey, renewKey, pollKey := k.c.durationKeys()
	// 1. A zero means "default" to the coordinator, but somebody wrote it.
	l := k.c.leaseDurations()
	for _, f := range []struct {
		key   string
		value time.Duration
	}{
		{graceKey, k.c.Workload.StopGrace},
		{ttlKey, l.TTL}, {renewKey, l.RenewInterval}, {pollKey, l.PollInterval},
	} {
		if _, given := k.c.set[f.key]; given && k.ok(f.key) && f.value <= 0 {
			k.reject(f.key, "%v must be greater than 0; leave the key out for the default", f.value)
		}
	}
	// 2. What would be wrong with the stop grace that is derived from the ttl is
	// not the stop grace's fault. The text is that of what was given: it has the
	// numbers with which the hint is right.
	election := k.c.Election(cmp.Or(k.c.HolderID(), "replica"))
	derived := election
	derived.StopGrace = 0
	anyway := violations(derived)
	for _, v := range violations(election) {
		if slices.ContainsFunc(anyway, v.sameRule) {
			k.report(v)
			continue
		}
		// 3. The stop grace takes from what is left for renewing: if nothing was
		// wrong without it, it is the value to change.
		if k.sound(v) && k.ok(graceKey) {
			k.reject(graceKey, "%v leaves too little of the ttl of %v to renew it every %v; %s",
				election.StopGrace, election.TTL, election.RenewInterval, graceFix(election, len(anyway), ttlKey))
		}
	}
}

// violation is one broken rule of the coordinator.
type violation struct{ *coordinator.FieldError }

func (v violation) sameRule(w violation) bool {
	return v.Field == w.Field && slices.Equal(v.Others, w.Others)
}

// violations lists the rules that c breaks.
func violations(c coordinator.Config) []violation {
	var list []violation
	var add func(error)
	add = func(err error) {
		var many interface{ Unwrap() []error }
		var field *coordinator.FieldError
		switch {
		case errors.As(err, &many):
			for _, one := range many.Unwrap() {
				add(one)
			}
		case errors.As(err, &field):
			list = append(list, violation{field})
		case err != nil:
			list = append(list, violation{&coordinator.FieldError{Detail: err.Error()}})
		}
	}
	add(c.Validate())
	return list
}

// report words a violation with the key of the file.
func (k *checker) report(v violation) {
	if key := k.c.keyOf(v.Field); k.sound(v) {
		k.fail(k.where(key), key, "%s", v.Detail)
	}
}

// sound tells whether everything that the rule compares is known.
func (k *checker) sound(v violation) bool {
	for _, field := range append([]string{v.Field}, v.Others...) {
		if key := k.c.keyOf(field); !k.known(key) {
			return false
		}
	}
	return true
}

// graceFix says which stop grace, and which ttl, would leave enough time. The
// rules that are broken anyway, unavoidable of them, do not count.
func graceFix(c coordinator.Config, unavoidable int, ttlKey string) string {
	fits := func(grace, ttl time.Duration) bool {
		c := c
		c.StopGrace, c.TTL = grace, ttl
		return len(violations(c)) <= unavoidable
	}
	// 1. The longest grace with the ttl as it is, in steps of 10 ms.
	const step = 10 * time.Millisecond
	low, high := time.Duration(0), c.TTL/step // low is valid, high is not
	for high-low > 1 {
		if middle := (low + high) / 2; fits(middle*step, c.TTL) {
			low = middle
		} else {
			high = middle
		}
	}
	ways := []string{fmt.Sprintf("use at most %v", low*step)}
	// 2. The shortest ttl with the grace as it is, in steps of half a second.
	for ttl := c.TTL; ttl <= coordinator.MaxTTL && ttl > 0; ttl += 500 * time.Millisecond {
		if fits(c.StopGrace, ttl) {
			ways = append(ways, fmt.Sprintf("set %s to %v", ttlKey, ttl))
			break
		}
	}
	return strings.Join(ways, " or ")
}
