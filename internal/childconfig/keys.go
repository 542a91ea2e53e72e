package childconfig

import "strings"

// dropped are the sections and keys that sf2loki must not see. Its coordinator is
// always noop, health address and grace are set by us, and it refuses to start
// on each of the others.
var dropped = map[string]bool{
	"coordinate":                   true,
	"workload":                     true,
	"service.health_addr":          true,
	"service.shutdown_grace":       true,
	"service.platform_stop_window": true,
	"service.runtime_dir":          true,
	"state.file.shared":            true,
	"state.gcs.endpoint_url":       true,
}

// holdsDropped tells whether something below the section is dropped.
func holdsDropped(section string) bool {
	for key := range dropped {
		if strings.HasPrefix(key, section+".") {
			return true
		}
	}
	return false
}

func join(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}
