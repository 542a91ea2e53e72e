package replica

import (
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/sf2loki/sf2loki-ha/coordinator"
	"github.com/sf2loki/sf2loki-ha/internal/config"
)

// docs/requests.md: people write one object, named like the lease with .request
// appended. It does not matter whether a replica has written it before.
func TestAHoldThatAPersonPutsIntoTheRequestFileIsRead(t *testing.T) {
	for name, nominated := range map[string]bool{"nothing was asked before": false, "a replica asked for a handover before": true} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "leader.lease")
			c := &clients{}
			_, reg, err := c.lease(t.Context(), config.Coordinate{Type: config.TypeFileLease, FileLease: config.FileLease{Path: path, TTL: 30 * time.Second}}, slog.New(slog.DiscardHandler))
			if err != nil {
				t.Fatal(err)
			}
			requests := coordinator.RequestsFrom(reg)
			if nominated {
				h := &coordinator.Handover{ID: "o", Incarnation: "i", Revision: "r", Target: coordinator.Target{Epoch: 1, Term: "t"}}
				if err := requests.WriteRequest(t.Context(), coordinator.Request{}.WithHandover(h), ""); err != nil {
					t.Fatal(err)
				}
			}
			hold := `{"version":1,"hold":{"id":"7f3a","reason":"repair","by":"anna","for_ms":900000}}`
			if err := os.WriteFile(path+coordinator.RequestSuffix, []byte(hold), 0o600); err != nil {
				t.Fatal(err)
			}
			state, err := requests.ReadRequest(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if state.Request.Hold == nil {
				t.Fatalf("the hold is not seen: %s", state.Request.Marshal())
			}
			// And a replica that writes its part leaves it there.
			if err := requests.WriteRequest(t.Context(), state.Request.Aged(state.Age).WithStepDown(nil), state.Version); err != nil {
				t.Fatal(err)
			}
			if state, err = requests.ReadRequest(t.Context()); err != nil || state.Request.Hold == nil {
				t.Errorf("%v: %s", err, state.Request.Marshal())
			}
		})
	}
}
