package telemetry

import (
	"fmt"
	"io"
	"log/slog"
	"strings"
	"time"
)

// LevelCritical is above slog's Error, as in sf2loki.
const LevelCritical = slog.Level(12)

// Formats of log lines.
const (
	FormatJSON   = "json"
	FormatLogfmt = "logfmt"
)

// NewLogger returns a logger that writes one line a record to w, in the format
// json (also for "") or logfmt. Level is debug, info (also for ""), warning or
// warn, error, critical, in any case.
func NewLogger(w io.Writer, format, level string) (*slog.Logger, error) {
	min, err := ParseLevel(level)
	if err != nil {
		return nil, err
	}
	opts := &slog.HandlerOptions{Level: min, ReplaceAttr: upstreamKeys}
	switch strings.ToLower(format) {
	case "", FormatJSON:
		return slog.New(slog.NewJSONHandler(w, opts)), nil
	case FormatLogfmt:
		return slog.New(slog.NewTextHandler(w, opts)), nil
	}
	return nil, fmt.Errorf("log format %q is neither %s nor %s", format, FormatJSON, FormatLogfmt)
}

// ParseLevel reads a level name of sf2loki.
func ParseLevel(name string) (slog.Level, error) {
	switch strings.ToLower(name) {
	case "debug":
		return slog.LevelDebug, nil
	case "", "info":
		return slog.LevelInfo, nil
	case "warning", "warn":
		return slog.LevelWarn, nil
	case "error":
		return slog.LevelError, nil
	case "critical":
		return LevelCritical, nil
	}
	return 0, fmt.Errorf("log level %q is none of debug, info, warning, error, critical", name)
}

// upstreamKeys gives slog's own keys the names and forms of sf2loki's log.
func upstreamKeys(groups []string, a slog.Attr) slog.Attr {
	if a.Value.Kind() == slog.KindDuration {
		// A number of nanoseconds says nothing to a person at three in the morning.
		return slog.Float64(a.Key+"_seconds", a.Value.Duration().Round(time.Millisecond).Seconds())
	}
	if len(groups) > 0 {
		return a
	}
	switch a.Key {
	case slog.TimeKey:
		if t, ok := a.Value.Any().(time.Time); ok {
			return slog.String("timestamp", t.UTC().Format("2006-01-02T15:04:05.000000Z"))
		}
	case slog.LevelKey:
		if l, ok := a.Value.Any().(slog.Level); ok {
			return slog.String("level", levelName(l))
		}
	case slog.MessageKey:
		a.Key = "event"
	}
	return a
}

func levelName(l slog.Level) string {
	switch {
	case l >= LevelCritical:
		return "critical"
	case l >= slog.LevelError:
		return "error"
	case l >= slog.LevelWarn:
		return "warning"
	case l >= slog.LevelInfo:
		return "info"
	}
	return "debug"
}
