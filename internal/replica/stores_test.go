package replica

import (
	"bytes"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/sf2loki/sf2loki-ha/internal/config"
)

func TestAFileLeaseReadsBeforeItWritesAfterHalfATTL(t *testing.T) {
	if got := fileLease(config.FileLease{TTL: 30 * time.Second}, slog.Default()).MaxReadAge; got != 15*time.Second {
		t.Errorf("%v", got)
	}
}

func TestARecordOfUpstreamIsToldFromOursAndFromDamage(t *testing.T) {
	for text, want := range map[string]bool{
		`{"holder": "sf2loki-7", "expires_at": "2026-01-01T12:00:30+00:00", "epoch": 3}`:                        true,
		`{"holder": "sf2loki-7", "expires_at": "2026-01-01T12:00:30+00:00"}`:                                    true, // before it had epochs
		`{"holder": "A", "expires_at": "2026-01-01T12:00:30.000000Z", "epoch": 3, "incarnation": "0011223344"}`: false,
		`{}`: false, `[1, 2]`: false, `null`: false, "": false, "half a wri": false, "\xff": false,
		`{"holder": 7, "expires_at": "2026-01-01T12:00:30+00:00", "epoch": 3}`: false,
	} {
		if got := fromUpstream([]byte(text)); got != want {
			t.Errorf("%s: %v", text, got)
		}
	}
}

func TestAnUpstreamReplicaOnTheSamePathIsAnErrorThatNamesThePath(t *testing.T) {
	var out bytes.Buffer
	opts := fileLease(config.FileLease{Path: "/shared/leader.lease", TTL: 30 * time.Second}, slog.New(slog.NewTextHandler(&out, nil)))
	opts.Changing(errors.New("what the register says"))
	for _, want := range []string{"level=ERROR", "another program renews this lease", "/shared/leader.lease", "what the register says"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%s lacks %q", out.String(), want)
		}
	}
}
