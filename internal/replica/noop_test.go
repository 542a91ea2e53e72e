package replica

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"testing"
)

// Nothing arbitrates between two replicas without an election: whoever runs one
// like this is told, before the work starts.
func TestWithoutAnElectionTheRunSaysSo(t *testing.T) {
	for name, c := range map[string]struct {
		yaml string
		told bool
	}{
		"noop":     {"coordinate: {type: noop}\nstate: {store: none}\nservice: {health_addr: \"127.0.0.1:0\"}\n", true},
		"s3_lease": {strings.ReplaceAll(onS3, "ADDR", "127.0.0.1:0"), false},
	} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			opts := options(t, c.yaml)
			opts.Log = slog.New(slog.NewTextHandler(&out, nil))
			r, err := New(t.Context(), opts)
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			if err := r.Run(ctx); err != nil {
				t.Fatal(err)
			}
			if got := strings.Contains(out.String(), "level=WARN msg=no_election") && strings.Contains(out.String(), "run exactly one"); got != c.told {
				t.Errorf("told %v, want %v:\n%s", got, c.told, out.String())
			}
		})
	}
}
