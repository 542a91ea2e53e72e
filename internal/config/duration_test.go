package config

import (
	"strings"
	"testing"
	"time"
)

func TestDurationForms(t *testing.T) {
	for text, want := range map[string]time.Duration{
		// Shorthand.
		"5m": 300 * time.Second, "1h30m": 5400 * time.Second, "30m1h": 5400 * time.Second, "1.5h": 5400 * time.Second,
		"1m500ms": 60500 * time.Millisecond, "1w2d": 777600 * time.Second, "0s": 0, "30s": 30 * time.Second, "1m1m": 2 * time.Minute, `"30s"`: 30 * time.Second,
		// Numbers are seconds.
		"90": 90 * time.Second, "0.25": 250 * time.Millisecond, "1_5": 15 * time.Second, "015": 13 * time.Second, "0x10": 16 * time.Second, "0b11": 3 * time.Second,
		"1:30": 90 * time.Second, "1:00.5": 60500 * time.Millisecond, "-5": -5 * time.Second, "+5": 5 * time.Second, "0.0000014": time.Microsecond, "1.5e+1": 15 * time.Second,
		// ISO 8601.
		"PT5M": 300 * time.Second, "P1DT2H": 26 * time.Hour, "PT1.5S": 1500 * time.Millisecond, "-PT5M": -300 * time.Second, "P1W": 7 * 24 * time.Hour, "P1Y1M": 395 * 24 * time.Hour, "+PT1H1M1S": 3661 * time.Second,
		// Clock text and days.
		`"00:05"`: 5 * time.Minute, `"00:00:25"`: 25 * time.Second, `"00:00:00.5"`: 500 * time.Millisecond, `"-00:01"`: -time.Minute, "1 day": 24 * time.Hour, "2 days": 48 * time.Hour,
		`"1 day, 00:01"`: 24*time.Hour + time.Minute, `"1d 00:01"`: 24*time.Hour + time.Minute,
	} {
		if c := load(t, "service: {unready_after_sink_failing: "+text+"}"); c.Service.UnreadyAfterSinkFailing != want {
			t.Errorf("%s = %v, want %v", text, c.Service.UnreadyAfterSinkFailing, want)
		}
	}
}

func TestDurationRefusals(t *testing.T) {
	for text, want := range map[string]string{
		`"90"`: `"90" is a number without a unit; write 90s for seconds`, `"0"`: `write 0s for seconds`, `" 30 "`: `"30" is a number without a unit`, `"1.5"`: "write 1.5s",
		"08": `write 08s`,
		"5x": `"5x" is not a duration; write it as 30s, 1m30s or 500ms; the units are ms, s, m, h, d and w`, "5M": `"5M" is not a duration`, "1h 30m": "is not a duration", "-5m": "is not a duration",
		`""`: `"" is not a duration`, "1us": "is not a duration", "P": "is not a duration", "PT": "is not a duration", "P1.5DT1H": "is not a duration", `"24:99"`: "is not a duration",
		"~": "must be a duration, but is empty or null", "yes": `must be a duration, but is the boolean "yes"`, "[]": "but is a list", "2026-01-01": "but is the date",
		".inf": "is not a finite number of seconds", ".nan": "is not a finite number", "1e400": "is not a duration", "1.0e+400": "is not a finite number", "101w999999999999999d": "is longer than 100 years",
		"99999999999": "is longer than 100 years", strings.Repeat("9", 70): "is not a finite number", strings.Repeat("1s", 40): "is not a duration",
	} {
		one(t, problems(t, "service: {unready_after_sink_failing: "+text+"}"), "service.unready_after_sink_failing: ", want, "(FILE:1:39)")
	}
}
