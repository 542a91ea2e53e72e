package coordinator

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Limits that Validate enforces, in the units of the field they bound.
const (
	// MinTTL is the shortest lease: below it the margins that keep the old work
	// dead before a takeover are shorter than an ordinary scheduling delay.
	MinTTL = time.Second
	// MaxTTL is the longest lease, and the cap on a ttl read from a record: a
	// damaged record must not keep a pair leaderless for hours.
	MaxTTL = 10 * time.Minute
	// MaxIdentity is the longest identity, in bytes.
	MaxIdentity = 256
	// MinPollInterval bounds the read rate of a standby.
	MinPollInterval = 100 * time.Millisecond

	// DefaultTTL, DefaultRenewInterval and DefaultPollInterval suit object
	// stores: one write in five seconds, takeover after fifteen.
	DefaultTTL           = 15 * time.Second
	DefaultRenewInterval = 5 * time.Second
	DefaultPollInterval  = time.Second
	// DefaultDrift is how much faster one machine's clock may tick than
	// another's (1 %). NTP disciplines a clock to 0.05 %.
	DefaultDrift = 0.01
	// DefaultShutdownGrace is sf2loki's own time to drain.
	DefaultShutdownGrace = 25 * time.Second
	// closeBudget is what sf2loki adds to its grace to close clients.
	closeBudget = 5 * time.Second
	// platformReserve is kept free of a platform's stop window for the release.
	platformReserve = 2 * time.Second
)

// Config is what an Elector needs to know. The zero value of every duration
// means its default; WithDefaults shows the effective values and New applies
// them.
type Config struct {
	// Identity names this replica for people, in the record and in logs. It
	// need not be unique: two processes are told apart by a random incarnation.
	// Required.
	Identity string
	// Lease names the lease inside its record, so that a copied object is
	// noticed. Default: the store's Describe.
	Lease string

	// TTL is how long a lease stays valid after the send of the renewal that
	// landed, and how long an observer waits before it takes over. Default 15 s.
	TTL time.Duration
	// RenewInterval is the time from one renewal's send to the next. Default 5 s.
	RenewInterval time.Duration
	// PollInterval is the time between a standby's reads. Default 1 s.
	PollInterval time.Duration

	// CallTimeout bounds one request. Default max(0.3 s, min(1.5 s, TTL/10)).
	CallTimeout time.Duration
	// StopGrace is what the work gets to end by itself once the lease could not
	// be renewed. Default min(3 s, TTL/5).
	StopGrace time.Duration
	// KillMargin is kept between the kill of the work and the deadline of the
	// term. Default max(0.25 s, min(1 s, TTL/15)).
	KillMargin time.Duration
	// Drift is the largest relative difference between two machines' clock
	// rates. Default 0.01.
	Drift float64
	// MinWriteInterval is the least time between two writes of the lease: 1 s on
	// GCS, which answers faster writes of one object with 429. Default 0.
	MinWriteInterval time.Duration

	// ShutdownGrace is what the work gets to drain after a requested stop; the
	// lease is renewed meanwhile. Default 25 s. Zero means the default; for no
	// grace use a millisecond.
	ShutdownGrace time.Duration
	// PlatformStopWindow is the time from SIGTERM to SIGKILL that the platform
	// grants; 0 means unknown. The drain is cut to fit inside it.
	PlatformStopWindow time.Duration

	// Revision identifies binary version and configuration in the record.
	Revision string
	// Platform describes where this replica runs (task, zone), for people.
	Platform map[string]string
}

// WithDefaults returns c with every zero duration replaced by its default.
func (c Config) WithDefaults() Config {
	setDefault(&c.TTL, DefaultTTL)
	setDefault(&c.RenewInterval, DefaultRenewInterval)
	setDefault(&c.PollInterval, DefaultPollInterval)
	setDefault(&c.CallTimeout, max(300*time.Millisecond, min(1500*time.Millisecond, c.TTL/10)))
	if c.MinWriteInterval > 0 {
		// A store that throttles writes answers late rather than not at all.
		c.CallTimeout = max(c.CallTimeout, time.Second)
	}
	setDefault(&c.StopGrace, min(3*time.Second, c.TTL/5))
	setDefault(&c.KillMargin, max(250*time.Millisecond, min(time.Second, c.TTL/15)))
	setDefault(&c.ShutdownGrace, DefaultShutdownGrace)
	if c.Drift == 0 {
		c.Drift = DefaultDrift
	}
	return c
}

func setDefault(d *time.Duration, value time.Duration) {
	if *d == 0 {
		*d = value
	}
}

// FieldError is one violated rule of a Config.
type FieldError struct {
	// Field is the Config field that is wrong, such as RenewInterval.
	Field string
	// Others are the fields that the rule compares Field with; empty if the
	// value of Field is out of range by itself.
	Others []string
	// Detail carries the numbers and the fix.
	Detail string
}

func (e *FieldError) Error() string { return e.Field + ": " + e.Detail }

// Validate checks ranges and the relations between durations after applying
// defaults. It returns every violation, joined; each is a *FieldError. A
// relation is judged if all of its fields are in range, whatever the rest is.
func (c Config) Validate() error {
	given := c
	c = c.WithDefaults()
	var errs []error
	outside := map[string]bool{}
	fail := func(field, format string, args ...any) {
		outside[field] = true
		errs = append(errs, &FieldError{Field: field, Detail: fmt.Sprintf(format, args...)})
	}

	// 1. Ranges: each value by itself. What is derived from a ttl out of range
	// is not a second mistake, so that only given values are judged.
	if c.Identity == "" {
		fail("Identity", "is empty; give this replica a name that people recognise")
	}
	if len(c.Identity) > MaxIdentity {
		fail("Identity", "has %d bytes; it goes into every record and %d of them into its history, so use at most %d", len(c.Identity), maxHistory, MaxIdentity)
	}
	if c.TTL < MinTTL || c.TTL > MaxTTL {
		fail("TTL", "%v is outside %v to %v", c.TTL, MinTTL, MaxTTL)
	}
	if !(c.Drift >= 0 && c.Drift <= 0.2) { // written so that it refuses NaN
		fail("Drift", "%v is outside 0 to 0.2", c.Drift)
	}
	for _, f := range []struct {
		name  string
		value time.Duration
	}{
		{"RenewInterval", given.RenewInterval}, {"PollInterval", given.PollInterval}, {"CallTimeout", given.CallTimeout},
		{"StopGrace", given.StopGrace}, {"KillMargin", given.KillMargin}, {"ShutdownGrace", given.ShutdownGrace},
	} {
		if f.value < 0 {
			fail(f.name, "%v must be greater than 0", f.value)
		}
	}
	if c.PollInterval < MinPollInterval && !outside["PollInterval"] {
		fail("PollInterval", "%v is less than %v; each poll is a request that is paid for, so use %v or more", c.PollInterval, MinPollInterval, MinPollInterval)
	}
	if c.MinWriteInterval < 0 {
		fail("MinWriteInterval", "%v must not be negative", c.MinWriteInterval)
	}
	if c.PlatformStopWindow < 0 || (c.PlatformStopWindow > 0 && c.PlatformStopWindow <= platformReserve) {
		fail("PlatformStopWindow", "%v leaves no time to stop the work; %v of it are kept for the release", c.PlatformStopWindow, platformReserve)
	}

	// The relations: each means something only if all of its values do.
	relate := func(broken bool, field string, others []string, format string, args ...any) {
		if !broken || slices.ContainsFunc(append([]string{field}, others...), func(f string) bool { return outside[f] }) {
			return
		}
		errs = append(errs, &FieldError{Field: field, Others: others, Detail: fmt.Sprintf(format, args...)})
	}
	// 2. A standby that polls less often than a lease lasts would not meet the
	// published bound.
	relate(c.PollInterval > c.TTL, "PollInterval", []string{"TTL"}, "%v is longer than the ttl of %v; use at most %v, better a tenth of it", c.PollInterval, c.TTL, c.TTL)
	// 3. sf2loki's own rule: one renewal may fail and the next still counts.
	fix := given.renewalFix()
	relate(c.RenewInterval >= c.TTL-c.RenewInterval, "RenewInterval", []string{"TTL"},
		"%v is not less than half of the ttl of %v; %s", c.RenewInterval, c.TTL, fix)
	// 4. A renewal that is due and two retries fit before the stop instant: one
	// slow call never costs the lease.
	need, have := c.RenewInterval+3*c.CallTimeout, c.usable()
	relate(need > have, "RenewInterval", []string{"TTL", "CallTimeout", "StopGrace", "KillMargin", "Drift"},
		"%v + 3 calls of %v = %v does not fit into the %v a term has before its work must stop (ttl %v less %.1f%% drift, stop grace %v, kill margin %v); %s",
		c.RenewInterval, c.CallTimeout, need, have, c.TTL, c.Drift*100, c.StopGrace, c.KillMargin, fix)
	// 5. The store must accept writes as fast as the leader sends them.
	relate(c.RenewInterval < c.MinWriteInterval, "RenewInterval", []string{"MinWriteInterval"},
		"%v is shorter than %v, and the store accepts no second write of one object within %v; renew every %v or less often", c.RenewInterval, c.MinWriteInterval, c.MinWriteInterval, c.MinWriteInterval)
	return errors.Join(errs...)
}

// renewalFix says which ttl, and which renew interval, would satisfy relations
// 3 and 4 with everything else as given: a hint that leads to the next error is
// none.
func (c Config) renewalFix() string {
	var ways []string
	if ttl, ok := c.smallestTTL(); ok {
		ways = append(ways, fmt.Sprintf("raise the ttl to %v", ttl))
	}
	d := c.WithDefaults()
	renew := min(d.usable()-3*d.CallTimeout, (d.TTL-1)/2).Truncate(10 * time.Millisecond)
	if renew > 0 && renew >= d.MinWriteInterval {
		ways = append(ways, fmt.Sprintf("renew every %v", renew))
	}
	if len(ways) == 0 {
		return fmt.Sprintf("no ttl up to %v fits; shorten the renew interval, the stop grace or the call timeout", MaxTTL)
	}
	return strings.Join(ways, " or ")
}

// usable is the time from a renewal's send to the instant at which the work is
// told to stop if no later renewal landed.
func (c Config) usable() time.Duration {
	return c.lifetime() - c.StopGrace - c.KillMargin
}

// lifetime is the time from a renewal's send to the deadline of the term: the
// ttl less what a slow local clock could hide.
func (c Config) lifetime() time.Duration {
	return c.TTL - time.Duration(float64(c.TTL)*c.Drift)
}

// smallestTTL searches the ttl, in steps of half a second from the present one,
// with which a renewal fits; false if none up to MaxTTL does. What is given
// stays, what is zero is derived from each ttl tried.
func (c Config) smallestTTL() (time.Duration, bool) {
	for ttl := max(MinTTL, c.WithDefaults().TTL); ttl <= MaxTTL; ttl += 500 * time.Millisecond {
		c.TTL = ttl
		probe := c.WithDefaults()
		if probe.RenewInterval < ttl-probe.RenewInterval && probe.RenewInterval+3*probe.CallTimeout <= probe.usable() {
			return ttl, true
		}
	}
	return 0, false
}

// drainLimit is the longest time from a requested stop to the kill of the work.
func (c Config) drainLimit() time.Duration {
	limit := c.ShutdownGrace + closeBudget
	if c.PlatformStopWindow > 0 {
		limit = min(limit, c.PlatformStopWindow-platformReserve)
	}
	return limit
}
