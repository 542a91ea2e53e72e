package coordinator

import (
	"errors"
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
	if b.Failover != 7400*time.Millisecond || b.WritesPerHour != 1800 || b.ReadsPerHour != 3600 {
		t.Errorf("%+v", b)
	}
	// A stop window of the platform cuts the drain.
	if got := (Config{PlatformStopWindow: 10 * time.Second}).Budget().Drain; got != 8*time.Second {
		t.Errorf("drain %v in a window of 10 s, want 8 s", got)
	}
}
