package coordinator

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// profile is a set of durations that fit each other.
type profile struct {
	name             string
	ttl, renew, poll time.Duration
}

// The profiles, for object stores. All renew three times within a ttl, so that one
// renewal may fail, and keep the poll interval at or below a fifteenth of it, or at
// the second that one request costs little.
var namedProfiles = []profile{
	{"fast", 6 * time.Second, 2 * time.Second, time.Second},
	{"default", DefaultTTL, DefaultRenewInterval, DefaultPollInterval},
	{"calm", 45 * time.Second, 15 * time.Second, 3 * time.Second},
}

// spacedTTL is the ttl of the profile fast where the store limits writes: a retry
// has to wait for its turn and must still come before the stop of the work.
const spacedTTL = 8 * time.Second

// Profiles are the names that WithProfile takes, fastest first.
func Profiles() []string {
	var names []string
	for _, p := range namedProfiles {
		names = append(names, p.name)
	}
	return names
}

// WithProfile returns c with TTL, RenewInterval and PollInterval of the named
// profile, everything else as it was. MinWriteInterval has to be set before.
func (c Config) WithProfile(name string) (Config, error) {
	i := slices.IndexFunc(namedProfiles, func(p profile) bool { return p.name == name })
	if i < 0 {
		return c, fmt.Errorf("profile %q does not exist; choose %s", name, strings.Join(Profiles(), ", "))
	}
	p := namedProfiles[i]
	c.TTL, c.RenewInterval, c.PollInterval = p.ttl, p.renew, p.poll
	if c.MinWriteInterval > 0 {
		c.TTL = max(c.TTL, spacedTTL)
	}
	return c, nil
}
