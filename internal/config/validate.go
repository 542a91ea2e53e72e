package config

import (
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/sf2loki/sf2loki-ha/coordinator"
)

var (
	types      = []string{TypeNoop, TypeFileLease, TypeS3Lease, TypeGCSLease, TypeK8sLease}
	stores     = []string{StoreFile, StoreS3, StoreGCS, StoreNone}
	logLevels  = []string{"debug", "info", "warning", "warn", "error", "critical"}
	logFormats = []string{"json", "logfmt"}
)

// notInBuild are coordinator types that are configured but cannot run yet. This
// is the one place: with the coordinator, its entry goes.
var notInBuild = map[string]string{
	TypeK8sLease: "k8s_lease is not in this build yet, it comes with a later one; use s3_lease, gcs_lease or file_lease",
}

// checker judges a decoded configuration.
type checker struct {
	*loader
	c *Config
}

// ok tells whether the keys can be judged: neither they nor a section around
// them were reported already.
func (k *checker) ok(keys ...string) bool {
	for _, key := range keys {
		for ; key != ""; key = parent(key) {
			if k.bad[key] {
				return false
			}
		}
	}
	return true
}

// reject reports a problem at the place of key, or of the nearest section that
// was given, and takes the key out of further judgement.
func (k *checker) reject(key, format string, args ...any) {
	k.bad[key] = true
	k.fail(k.where(key), key, format, args...)
}

func (k *checker) where(key string) origin {
	for ; key != ""; key = parent(key) {
		if at, ok := k.c.set[key]; ok {
			return at
		}
	}
	return origin{file: k.c.file}
}

// validate checks everything that holds across keys. Sections of types and
// stores that are not selected are checked for keys and types only, because a
// file may carry several; the exception is sf2loki's own, rule 2.
func (l *loader) validate(c *Config) {
	k := &checker{loader: l, c: c}
	// 1. One key at a time.
	k.choice("coordinate.type", &c.Coordinate.Type, types, nil)
	k.choice("state.store", &c.State.Store, stores, nil)
	k.choice("service.log_level", &c.Service.LogLevel, logLevels, strings.ToLower)
	k.choice("service.log_format", &c.Service.LogFormat, logFormats, nil)
	k.healthAddr()
	k.command()
	// 2. sf2loki judges these two even if another type is selected.
	k.halfRule(TypeFileLease, "coordinate.file_lease", "ttl", c.Coordinate.FileLease.TTL, c.Coordinate.FileLease.RenewInterval)
	k.halfRule(TypeK8sLease, "coordinate.k8s_lease", "lease_duration", c.Coordinate.K8sLease.LeaseDuration, c.Coordinate.K8sLease.RenewInterval)
	// 3. The selected coordinator and store, each by itself.
	if k.ok("coordinate.type") {
		k.selectedLease()
		k.durations()
	}
	if k.ok("state.store") {
		k.selectedStore()
	}
	// 4. Both together.
	if k.ok("coordinate.type", "state.store") {
		k.pairing()
		k.sameObject()
	}
}

// choice checks a name against the valid ones.
func (k *checker) choice(key string, value *string, valid []string, normalize func(string) string) {
	if !k.ok(key) {
		return
	}
	given := *value
	if normalize != nil {
		given = normalize(given)
	}
	if slices.Contains(valid, given) {
		*value = given
		return
	}
	hint := ""
	if near := nearest(given, valid); near != "" {
		hint = fmt.Sprintf("; did you mean %s?", near)
	}
	k.reject(key, "%s is not one of %s%s", quote(*value), strings.Join(valid, ", "), hint)
}

// healthAddr checks host:port without looking the host up.
func (k *checker) healthAddr() {
	const key = "service.health_addr"
	if !k.ok(key) {
		return
	}
	addr := k.c.Service.HealthAddr
	host, port, err := net.SplitHostPort(addr)
	if err != nil || strings.ContainsAny(host, " \t/@") {
		k.reject(key, `%s is not host:port; write it as ":8080", "127.0.0.1:8080" or "[::1]:8080"`, quote(addr))
		return
	}
	n, err := strconv.ParseUint(port, 10, 32)
	if err != nil || n > 65535 {
		k.reject(key, "%s has no port between 0 and 65535; 0 means a free one", quote(addr))
	}
}

// command checks what can be known without looking for the program.
func (k *checker) command() {
	const key = "workload.command"
	command := k.c.Workload.Command
	if !k.ok(key) || len(command) == 0 {
		return
	}
	if strings.TrimSpace(command[0]) == "" {
		k.reject(key, `the first item is empty; it has to be the program, such as ["program", "argument"]`)
		return
	}
	for i, item := range command {
		if strings.ContainsRune(item, 0) {
			k.reject(key, "item %d holds a zero byte, which no argument can", i)
			return
		}
	}
}

// halfRule is sf2loki's relation for a lease that is not selected; the selected
// one is judged by coordinator.Config.Validate, which has it too.
func (k *checker) halfRule(typ, section, ttlName string, ttl, renew time.Duration) {
	ttlKey, renewKey := section+"."+ttlName, section+".renew_interval"
	if k.c.Coordinate.Type == typ || !k.ok(ttlKey, renewKey) || 2*renew < ttl {
		return
	}
	k.fail(k.where(renewKey), renewKey, "%v is not less than half of %s (%v); raise %s above %v or renew more often",
		renew, ttlName, ttl, ttlName, 2*renew)
}

// durations checks the selected coordinator's durations against each other. The
// relations are the coordinator's; here they get the names of the file.
func (k *checker) durations() {
	ttlKey, renewKey, pollKey := k.c.durationKeys()
	// 1. A zero means "default" to the coordinator, but somebody wrote it.
	l := k.c.leaseDurations()
	fields := []struct {
		key   string
		value time.Duration
	}{
		{"workload.stop_grace", k.c.Workload.StopGrace},
		{ttlKey, l.TTL}, {renewKey, l.RenewInterval}, {pollKey, l.PollInterval},
	}
	sound := true
	for _, f := range fields {
		if _, given := k.c.set[f.key]; given && k.ok(f.key) && f.value <= 0 {
			k.reject(f.key, "%v must be greater than 0; leave the key out for the default", f.value)
		}
		sound = sound && k.ok(f.key)
	}
	if !sound || !k.ok("service.shutdown_grace", "service.platform_stop_window") {
		return
	}
	// 2. Everything but the stop grace, which is then derived from the ttl.
	election := k.c.Election("replica")
	election.StopGrace = 0
	if err := election.Validate(); err != nil {
		k.translate(err)
		return
	}
	// 3. The stop grace takes from what is left for renewing. If nothing was
	// wrong without it, it is the value to change.
	if k.c.Coordinate.Type == TypeNoop || k.c.Workload.StopGrace == 0 {
		return
	}
	with := k.c.Election("replica")
	if with.Validate() == nil {
		return
	}
	k.reject("workload.stop_grace", "%v leaves too little of the ttl of %v to renew it every %v; use at most %v, or a longer ttl (%s)",
		with.StopGrace, with.TTL, with.RenewInterval, longestStopGrace(election), ttlKey)
}

// longestStopGrace searches the longest grace, in steps of 10 ms, that c bears.
func longestStopGrace(c coordinator.Config) time.Duration {
	const step = 10 * time.Millisecond
	low, high := time.Duration(0), c.TTL/step // low is valid, high is not
	for high-low > 1 {
		middle := (low + high) / 2
		c.StopGrace = middle * step
		if c.Validate() == nil {
			low = middle
		} else {
			high = middle
		}
	}
	return low * step
}

// translate reports the coordinator's errors under the keys of the file.
func (k *checker) translate(err error) {
	var many interface{ Unwrap() []error }
	if errors.As(err, &many) {
		for _, one := range many.Unwrap() {
			k.translate(one)
		}
		return
	}
	var field *coordinator.FieldError
	if !errors.As(err, &field) {
		k.fail(k.where("coordinate"), "coordinate", "%v", err)
		return
	}
	key := k.c.keyOf(field.Field)
	k.fail(k.where(key), key, "%s", field.Detail)
}
