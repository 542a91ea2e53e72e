package coordinator

import (
	"encoding/json"
	"strings"
	"testing"
)

// A record that its own readers call corrupt costs the pair a takeover of 60 s.
func TestARecordIsNeverLargerThanItsReadersAccept(t *testing.T) {
	for name, r := range map[string]Record{
		"a history of long names": {Holder: "me", Epoch: 9, Incarnation: "i", History: func() (h []PastTerm) {
			for range maxHistory {
				h = append(h, PastTerm{Epoch: 3, Holder: strings.Repeat("h", 30<<10), Reason: "x"})
			}
			return h
		}()},
		"fields of another writer": {Holder: "me", Epoch: 9, Incarnation: "i", extra: map[string]json.RawMessage{"x": json.RawMessage(`"` + strings.Repeat("x", maxRecord) + `"`)}},
	} {
		data, err := r.Marshal()
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		back, err := ParseRecord(data)
		if err != nil || back.Epoch != 9 || back.Incarnation != "i" {
			t.Errorf("%s: %v, %+v", name, err, back)
		}
		if name == "a history of long names" && len(back.History) < 4 {
			t.Errorf("only %d terms of the history are left", len(back.History))
		}
	}
	if _, err := (Record{Holder: strings.Repeat("h", maxRecord)}).Marshal(); err == nil {
		t.Error("a record that nobody can read was written")
	}
	cfg := fast
	cfg.Identity = strings.Repeat("n", MaxIdentity+1)
	if err := cfg.Validate(); err == nil || !strings.Contains(err.Error(), "257 bytes") {
		t.Errorf("an identity of 257 bytes: %v", err)
	}
}
