package childconfig

import (
	"encoding/json"
	"strings"
)

const envPrefix = "sf2loki_"

// Environ returns the variables of environ that the child may have. In sf2loki
// the environment wins over the file and an unknown nested name is fatal, so what
// the document does not have must not come back this way. Names count in any
// case, as sf2loki reads them. The order is kept.
func Environ(environ []string) []string {
	kept := make([]string, 0, len(environ))
	for _, kv := range environ {
		name, text, ok := strings.Cut(kv, "=")
		rest, ours := strings.CutPrefix(strings.ToLower(name), envPrefix)
		if !ok || !ours {
			kept = append(kept, kv)
			continue
		}
		// Also SF2LOKI_COORDINATE_TYPE, which names nothing: nobody else's.
		if strings.HasPrefix(rest, "coordinate") || strings.HasPrefix(rest, "workload") {
			continue
		}
		key := strings.ReplaceAll(rest, "__", ".")
		if below(key) {
			continue
		}
		if holdsDropped(key) {
			if changed, ok := section(key, []byte(text)); ok {
				kv = name + "=" + string(changed)
			}
		}
		kept = append(kept, kv)
	}
	return kept
}

// below tells whether the key or a section that holds it is dropped.
func below(key string) bool {
	for {
		if dropped[key] {
			return true
		}
		i := strings.LastIndexByte(key, '.')
		if i < 0 {
			return false
		}
		key = key[:i]
	}
}

// section returns the JSON of a whole section without what is dropped, and
// whether that is another text. What is no JSON mapping stays for sf2loki to
// refuse.
func section(path string, text []byte) ([]byte, bool) {
	var m map[string]json.RawMessage
	if json.Unmarshal(text, &m) != nil {
		return nil, false
	}
	changed := false
	for name, v := range m {
		key := join(path, name)
		switch {
		case dropped[key]:
			delete(m, name)
			changed = true
		case holdsDropped(key):
			if inner, ok := section(key, v); ok {
				m[name], changed = inner, true
			}
		}
	}
	if !changed {
		return nil, false
	}
	out, err := json.Marshal(m)
	return out, err == nil
}
