package config

import (
	"strings"
	"testing"
)

func TestACommandThatWritesACheckpointFileByItselfIsRefusedUnlessSomebodyAcceptsThat(t *testing.T) {
	const lease = "coordinate: {type: file_lease, file_lease: {path: /x/l}}\n"
	for name, c := range map[string]struct {
		text    string
		command []string
		refused bool
	}{
		"a command and a file":                {lease + "state: {store: file}", []string{"sf2loki"}, true},
		"accepted":                            {lease + "state: {store: file}\nworkload: {unfenced_state: accept}", []string{"sf2loki"}, false},
		"through the socket":                  {lease + "state: {store: file}\nworkload: {checkpoint_api: true}", []string{"work"}, false},
		"our canary":                          {lease + "state: {store: file}", []string{"/usr/bin/sf2loki-ha", "canary", "--interval", "1s"}, false},
		"something that is called like it":    {lease + "state: {store: file}", []string{"canary"}, true},
		"our binary with another verb":        {lease + "state: {store: file}", []string{"sf2loki-ha", "run"}, true},
		"a bucket":                            {lease + "state: {store: s3, s3: {bucket: b}}", []string{"sf2loki"}, false},
		"no document":                         {lease + "state: {store: none}", []string{"work"}, false},
		"no command":                          {lease + "state: {store: file}", nil, false},
		"noop: one instance, as sf2loki does": {"state: {store: file}", []string{"sf2loki"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			err := load(t, c.text).CheckWork(c.command)
			if (err != nil) != c.refused {
				t.Fatalf("%v", err)
			}
			if err != nil && !strings.Contains(err.Error(), "workload.unfenced_state: accept") {
				t.Errorf("no way out is named: %v", err)
			}
		})
	}
}

func TestASocketToNoDocumentIsRefused(t *testing.T) {
	got := problems(t, "state: {store: none}\nworkload: {checkpoint_api: true}")
	if len(got) != 1 || !strings.Contains(got[0], "workload.checkpoint_api: true gives the command a checkpoint document, but state.store is none") {
		t.Errorf("%q", got)
	}
}
