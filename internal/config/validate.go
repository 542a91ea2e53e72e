package config

import (
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"
)

var (
	types      = []string{TypeNoop, TypeFileLease, TypeS3Lease, TypeGCSLease, TypeK8sLease}
	stores     = []string{StoreFile, StoreS3, StoreGCS, StoreNone}
	logLevels  = []string{"debug", "info", "warning", "warn", "error", "critical"}
	logFormats = []string{"json", "logfmt"}
	unfenced   = []string{UnfencedRefuse, UnfencedAccept}
)

// notInBuild are coordinator types that are configured but cannot run yet, each
// with what to do instead. At the moment every type runs.
var notInBuild = map[string]string{}

// checker judges a decoded configuration.
type checker struct {
	*loader
	c *Config
	// assumed are keys that were reported, but whose meaning is plain enough to
	// judge the rest by it.
	assumed map[string]bool
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

// known tells whether the value of key can be judged by.
func (k *checker) known(key string) bool { return k.ok(key) || k.assumed[key] }

// is words why something follows from the value of key.
func (k *checker) is(key, value string) string {
	if k.assumed[key] {
		return key + " is meant to be " + value
	}
	return key + " is " + value
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
	k := &checker{loader: l, c: c, assumed: map[string]bool{}}
	// 1. One key at a time.
	k.choice("coordinate.type", &c.Coordinate.Type, types, nil)
	k.forgottenType()
	k.choice("state.store", &c.State.Store, stores, nil)
	k.choice("service.log_level", &c.Service.LogLevel, logLevels, strings.ToLower)
	k.choice("service.log_format", &c.Service.LogFormat, logFormats, nil)
	k.choice("workload.unfenced_state", &c.Workload.UnfencedState, unfenced, nil)
	k.healthAddr()
	k.command()
	k.checkpointAPI()
	// 2. sf2loki judges these two even if another type is selected.
	k.halfRule(TypeFileLease, "coordinate.file_lease", "ttl", c.Coordinate.FileLease.TTL, c.Coordinate.FileLease.RenewInterval)
	k.halfRule(TypeK8sLease, "coordinate.k8s_lease", "lease_duration", c.Coordinate.K8sLease.LeaseDuration, c.Coordinate.K8sLease.RenewInterval)
	// 3. The selected coordinator and store, each by itself.
	if k.known("coordinate.type") {
		k.selectedLease()
	}
	k.durations()
	if k.known("state.store") {
		k.selectedStore()
	}
	// 4. Both together.
	if k.known("coordinate.type") && k.known("state.store") {
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
	hint, near := "", nearest(given, valid)
	if message, refused := notInBuild[near]; refused {
		hint, near = "; "+message, ""
	} else if near != "" {
		hint = fmt.Sprintf("; did you mean %s?", near)
	}
	k.reject(key, "%s is not one of %s%s", quote(*value), strings.Join(offered(valid), ", "), hint)
	if near != "" {
		*value, k.assumed[key] = near, true
	}
}

// offered leaves out the names that this build refuses.
func offered(names []string) []string {
	return slices.DeleteFunc(slices.Clone(names), func(name string) bool {
		_, refused := notInBuild[name]
		return refused
	})
}

// forgottenType refuses a lease that is described but not selected by anything.
// The default is noop, so that both replicas would lead and nobody would notice.
// With an explicit noop the sections may stay: sf2loki's own files have that.
func (k *checker) forgottenType() {
	const key = "coordinate.type"
	if _, given := k.c.set[key]; given || !k.ok(key) {
		return
	}
	var given, sections []string
	for _, typ := range types {
		if section := "coordinate." + typ; k.c.IsSet(section) {
			given, sections = append(given, typ), append(sections, section)
		}
	}
	if len(given) == 0 {
		return
	}
	at, assign := k.c.set[sections[0]], key+": "
	if at.env != "" {
		assign = envName(key) + "="
	}
	are, hint := " is", ""
	if len(given) > 1 {
		are = " are"
	}
	if message, refused := notInBuild[given[0]]; refused {
		hint = "; " + message
	}
	k.bad[key] = true
	k.fail(at, key, "is not set, but %s%s given; without a type there is no election and every replica leads; set %s%s, or noop if there is only ever one replica%s",
		strings.Join(sections, " and "), are, assign, strings.Join(given, " or "), hint)
	if len(given) == 1 && hint == "" {
		k.c.Coordinate.Type, k.assumed[key] = given[0], true
	}
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
