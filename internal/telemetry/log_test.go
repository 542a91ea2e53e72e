package telemetry_test

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/sf2loki/sf2loki-ha/internal/telemetry"
)

func TestLogLinesHaveUpstreamsKeys(t *testing.T) {
	for _, c := range []struct{ format, want string }{
		{"json", `{"timestamp":"2000-01-01T00:00:00.000000Z","level":"warning","event":"lease lost","epoch":7,"g":{"time":"x","msg":"y"}}` + "\n"},
		{"", `{"timestamp":"2000-01-01T00:00:00.000000Z","level":"warning","event":"lease lost","epoch":7,"g":{"time":"x","msg":"y"}}` + "\n"},
		{"logfmt", `timestamp=2000-01-01T00:00:00.000000Z level=warning event="lease lost" epoch=7 g.time=x g.msg=y` + "\n"},
	} {
		synctest.Test(t, func(t *testing.T) {
			var out bytes.Buffer
			log, err := telemetry.NewLogger(&out, c.format, "info")
			if err != nil {
				t.Fatal(err)
			}
			log.Warn("lease lost", "epoch", 7, slog.Group("g", "time", "x", "msg", "y"))
			if out.String() != c.want {
				t.Errorf("%q:\n got %s\nwant %s", c.format, &out, c.want)
			}
		})
	}
}

func TestLevelsAreUpstreams(t *testing.T) {
	levels := []slog.Level{slog.LevelDebug, slog.LevelInfo, slog.LevelWarn, slog.LevelError, telemetry.LevelCritical}
	for name, want := range map[string]string{
		"debug": "debug info warning error critical", "info": "info warning error critical", "": "info warning error critical",
		"warning": "warning error critical", "WARN": "warning error critical", "Error": "error critical", "critical": "critical",
	} {
		var out bytes.Buffer
		log, err := telemetry.NewLogger(&out, "logfmt", name)
		if err != nil {
			t.Fatal(err)
		}
		for _, l := range levels {
			log.Log(context.Background(), l, "x")
		}
		var got []string
		for line := range strings.Lines(out.String()) {
			_, rest, _ := strings.Cut(line, "level=")
			level, _, _ := strings.Cut(rest, " ")
			got = append(got, level)
		}
		if strings.Join(got, " ") != want {
			t.Errorf("level %q logs %q, want %q", name, got, want)
		}
	}
}

func TestUnknownLevelAndFormatAreRefused(t *testing.T) {
	for _, c := range []struct{ format, level, want string }{{"json", "verbose", "verbose"}, {"xml", "info", "xml"}} {
		if _, err := telemetry.NewLogger(&bytes.Buffer{}, c.format, c.level); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: error %v", c, err)
		}
	}
}
