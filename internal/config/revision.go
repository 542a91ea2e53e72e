package config

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"regexp"
)

// ofOneReplica matches the lines of a file that differ between replicas of one
// deployment: their names and addresses, and the way to the store.
var ofOneReplica = regexp.MustCompile(`(?m)^.*\b(holder_id|identity|health_addr|endpoint_url)\b.*$`)

// Revision identifies what is deployed: the version of the binary, the command
// and the configuration, sf2loki's own sections included. Replicas of one
// deployment have the same one: what names a replica does not count. It is a
// hash, in 16 hexadecimal digits, of the file as written, with ${NAME} not
// replaced, so that no secret goes into it.
func (c *Config) Revision(version string, command []string) string {
	ours := *c
	for _, name := range []*string{
		&ours.Coordinate.FileLease.HolderID, &ours.Coordinate.S3Lease.HolderID, &ours.Coordinate.GCSLease.HolderID, &ours.Coordinate.K8sLease.Identity,
		&ours.Service.HealthAddr,
		&ours.Coordinate.S3Lease.EndpointURL, &ours.Coordinate.GCSLease.EndpointURL, &ours.State.S3.EndpointURL, &ours.State.GCS.EndpointURL,
	} {
		*name = ""
	}
	ours.Workload.Command = nil // command is what counts
	// Structs of strings, numbers and booleans always encode.
	effective, _ := json.Marshal(ours)
	parts, _ := json.Marshal([]any{version, command, string(effective), string(ofOneReplica.ReplaceAll(c.document, nil))})
	sum := sha256.Sum256(parts)
	return hex.EncodeToString(sum[:8])
}
