package coordinator

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"
)

func TestEveryDocumentedProfileIsValid(t *testing.T) {
	for name, c := range map[string]Config{
		"default":  {},
		"fast":     {TTL: 6 * time.Second, RenewInterval: 2 * time.Second},
		"fast GCS": {TTL: 8 * time.Second, RenewInterval: 2 * time.Second, MinWriteInterval: time.Second},
		"calm":     {TTL: 45 * time.Second, RenewInterval: 15 * time.Second},
		"file":     {TTL: 30 * time.Second, RenewInterval: 10 * time.Second},
		"drill":    {TTL: 3 * time.Second, RenewInterval: time.Second},
	} {
		c.Identity = "x"
		if err := c.Validate(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestEachRelationIsRefusedWithNumbersAndFix(t *testing.T) {
	base := Config{Identity: "x", TTL: 15 * time.Second, RenewInterval: 5 * time.Second}
	for name, c := range map[string]struct {
		change func(*Config)
		field  string
		want   []string
	}{
		"renew is half":              {func(c *Config) { c.RenewInterval = 7500 * time.Millisecond }, "RenewInterval", []string{"7.5s", "15s", "less than half"}},
		"calls do not fit":           {func(c *Config) { c.CallTimeout = 4 * time.Second }, "RenewInterval", []string{"4s", "17s", "10.85s", "raise the ttl"}},
		"grace does not fit":         {func(c *Config) { c.StopGrace = 9 * time.Second }, "RenewInterval", []string{"9s", "stop grace"}},
		"faster than the store":      {func(c *Config) { c.RenewInterval, c.MinWriteInterval = 500*time.Millisecond, time.Second }, "RenewInterval", []string{"500ms", "1s"}},
		"ttl too short":              {func(c *Config) { c.TTL = 900 * time.Millisecond }, "TTL", []string{"900ms", "1s"}},
		"ttl too long":               {func(c *Config) { c.TTL = time.Hour }, "TTL", []string{"1h", "10m"}},
		"poll longer than ttl":       {func(c *Config) { c.PollInterval = time.Minute }, "PollInterval", []string{"1m", "15s"}},
		"poll too fast":              {func(c *Config) { c.PollInterval = time.Millisecond }, "PollInterval", []string{"1ms", "100ms"}},
		"no identity":                {func(c *Config) { c.Identity = "" }, "Identity", []string{"empty"}},
		"negative renew":             {func(c *Config) { c.RenewInterval = -1 }, "RenewInterval", []string{"greater than 0"}},
		"drift that is no number":    {func(c *Config) { c.Drift = math.NaN() }, "Drift", []string{"NaN"}},
		"drift":                      {func(c *Config) { c.Drift = 0.5 }, "Drift", []string{"0.5"}},
		"a stop window without room": {func(c *Config) { c.PlatformStopWindow = 2 * time.Second }, "PlatformStopWindow", []string{"2s"}},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := base
			c.change(&cfg)
			err := cfg.Validate()
			var field *FieldError
			if !errors.As(err, &field) || field.Field != c.field {
				t.Fatalf("%v; want a FieldError of %s", err, c.field)
			}
			for _, want := range c.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("%v; want %q in it", err, want)
				}
			}
		})
	}
}

// fieldErrors are the violations of c, as "Field" for a range and
// "Field<Other,Other" for a relation.
func fieldErrors(t *testing.T, c Config) []string {
	t.Helper()
	err := c.Validate()
	if err == nil {
		return nil
	}
	var fields []string
	for _, one := range err.(interface{ Unwrap() []error }).Unwrap() {
		var field *FieldError
		if !errors.As(one, &field) {
			t.Fatalf("%v is not a FieldError", one)
		}
		name := field.Field
		if len(field.Others) > 0 {
			name += "<" + strings.Join(field.Others, ",")
		}
		fields = append(fields, name)
	}
	return fields
}

func TestEveryBrokenRelationIsReportedBesideTheRanges(t *testing.T) {
	const fit = "RenewInterval<TTL,CallTimeout,StopGrace,KillMargin,Drift"
	const half = "RenewInterval<TTL"
	for name, c := range map[string]struct {
		config Config
		want   []string
	}{
		"three relations":                          {Config{Identity: "x", TTL: 3 * time.Second, RenewInterval: 5 * time.Second, PollInterval: 10 * time.Second}, []string{"PollInterval<TTL", half, fit}},
		"a range hides no relation":                {Config{TTL: 3 * time.Second, RenewInterval: 5 * time.Second, ShutdownGrace: -1}, []string{"Identity", "ShutdownGrace", half, fit}},
		"no relation to a bad ttl":                 {Config{Identity: "x", TTL: time.Hour, RenewInterval: 40 * time.Minute, PollInterval: 2 * time.Hour}, []string{"TTL"}},
		"nothing derived from a bad ttl is blamed": {Config{Identity: "x", TTL: -time.Second}, []string{"TTL"}},
		"no relation to a bad grace":               {Config{Identity: "x", TTL: 9 * time.Second, StopGrace: -1}, []string{"StopGrace", half}},
		"a poll below its least is one mistake":    {Config{Identity: "x", PollInterval: -1}, []string{"PollInterval"}},
		"writes beside the ttl":                    {Config{Identity: "x", TTL: time.Hour, RenewInterval: time.Millisecond, MinWriteInterval: time.Second}, []string{"TTL", "RenewInterval<MinWriteInterval"}},
	} {
		if got := fieldErrors(t, c.config); strings.Join(got, " ") != strings.Join(c.want, " ") {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

// Following the hint leads to a valid configuration, with everything that was
// given explicitly left as it is.
func TestTheHintOfARelationIsRight(t *testing.T) {
	for name, c := range map[string]Config{
		"derived margins":    {RenewInterval: 7 * time.Second},
		"half":               {TTL: time.Minute, RenewInterval: 30 * time.Second},
		"both":               {RenewInterval: 9 * time.Second},
		"stop grace":         {StopGrace: 9 * time.Second},
		"long stop grace":    {StopGrace: 40 * time.Second, RenewInterval: 20 * time.Second},
		"call timeout":       {CallTimeout: 4 * time.Second},
		"kill margin":        {KillMargin: 8 * time.Second},
		"throttled store":    {TTL: 6 * time.Second, RenewInterval: 2 * time.Second, MinWriteInterval: time.Second},
		"all of them":        {TTL: 4 * time.Second, RenewInterval: 3 * time.Second, StopGrace: 5 * time.Second, CallTimeout: 2 * time.Second, KillMargin: 2 * time.Second, Drift: 0.05},
		"close to the limit": {TTL: MaxTTL, RenewInterval: 299 * time.Second, StopGrace: 5 * time.Minute},
	} {
		c.Identity = "x"
		err := c.Validate()
		if err == nil {
			t.Errorf("%s is valid: the case has lost its bite", name)
			continue
		}
		_, hint, _ := strings.Cut(err.Error(), "; ")
		hint, _, _ = strings.Cut(hint, "\n")
		followed := 0
		for _, way := range strings.Split(hint, " or ") {
			words := strings.Fields(way)
			d, parseErr := time.ParseDuration(words[len(words)-1])
			if parseErr != nil {
				t.Fatalf("%s: %q ends with no duration: %v", name, way, parseErr)
			}
			fixed := c
			switch {
			case strings.HasPrefix(way, "raise the ttl to "):
				fixed.TTL = d
			case strings.HasPrefix(way, "renew every "):
				fixed.RenewInterval = d
			default:
				t.Fatalf("%s: unknown hint %q", name, way)
			}
			if err := fixed.Validate(); err != nil {
				t.Errorf("%s: followed %q: %v", name, way, err)
			}
			followed++
		}
		if followed == 0 {
			t.Errorf("%s: no hint in %v", name, err)
		}
	}
	// A hint is never searched for from a ttl that is far out of range.
	if got := fieldErrors(t, Config{Identity: "x", TTL: math.MinInt64}); len(got) != 1 {
		t.Error(got)
	}
	// Where no ttl helps, none is named.
	err := Config{Identity: "x", StopGrace: 20 * time.Minute}.Validate()
	if got := fmt.Sprint(err); strings.Contains(got, "raise the ttl") || !strings.Contains(got, "no ttl up to 10m0s fits") {
		t.Error(got)
	}
}

func TestTheWorkIsDeadBeforeAnObserverMayActUnderTheLargestDrift(t *testing.T) {
	for _, ttl := range []time.Duration{time.Second, 6 * time.Second, 15 * time.Second, 30 * time.Second, MaxTTL} {
		b := Config{Identity: "x", TTL: ttl, RenewInterval: ttl / 4}.Budget()
		// Ours ticks 1 % slower than the observer's: our lifetime lasts longer
		// in its time, and still not longer than its window.
		if inItsTime := time.Duration(float64(b.DeadAfter) * 1.01); inItsTime > ttl {
			t.Errorf("ttl %v: dead after %v of the observer's time", ttl, inItsTime)
		}
		if !(b.StopAfter < b.KillAfter && b.KillAfter < b.DeadAfter) {
			t.Errorf("ttl %v: stop %v, kill %v, dead %v are out of order", ttl, b.StopAfter, b.KillAfter, b.DeadAfter)
		}
	}
}

func TestTheBudgetOfTheDemo(t *testing.T) {
	b := Config{TTL: 6 * time.Second, RenewInterval: 2 * time.Second}.Budget()
	if b.Failover != 7400*time.Millisecond || b.LeaderWritesPerHour != 1800 || b.StandbyReadsPerHour != 5400 {
		t.Errorf("%+v", b)
	}
	// A stop window of the platform cuts the drain.
	if got := (Config{PlatformStopWindow: 10 * time.Second}).Budget().Drain; got != 8*time.Second {
		t.Errorf("drain %v in a window of 10 s, want 8 s", got)
	}
}
