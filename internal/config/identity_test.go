package config

import (
	"strings"
	"testing"
)

func TestAHolderIDThatWouldFillTheRecordIsRefusedByItsKey(t *testing.T) {
	name := strings.Repeat("n", 300)
	for key, text := range map[string]string{
		"coordinate.s3_lease.holder_id: has 300 bytes": s3("holder_id: " + name),
		"coordinate.k8s_lease.identity: has 300 bytes": "coordinate: {type: k8s_lease, k8s_lease: {identity: " + name + "}}\nstate: {store: none}",
	} {
		if got := problems(t, text); len(got) != 1 || !strings.Contains(got[0], key) {
			t.Errorf("%q, want %q", got, key)
		}
	}
}
