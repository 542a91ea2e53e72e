package config

import (
	"fmt"
	"path/filepath"
	"strings"

	"github.com/sf2loki/sf2loki-ha/cas"
)

// maxLeaseKey leaves room for the longest name that is made of the lease's own,
// which is that of an object of the store probe.
const maxLeaseKey = maxObjectKey - cas.MaxScratchName

// Where credentials belong, for the errors about an endpoint URL.
const (
	s3Credentials  = "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or as a role of the task"
	gcsCredentials = "service_file, or as application default credentials"
)

// selectedLease checks the section of the selected coordinator.
func (k *checker) selectedLease() {
	const (
		file = "coordinate.file_lease."
		s3   = "coordinate.s3_lease."
		gcs  = "coordinate.gcs_lease."
		k8s  = "coordinate.k8s_lease."
	)
	l := k.c.Coordinate
	if message, ok := notInBuild[l.Type]; ok {
		k.fail(k.where("coordinate.type"), "coordinate.type", "%s", message)
	}
	reason := k.is("coordinate.type", l.Type)
	switch l.Type {
	case TypeFileLease:
		k.check(file+"path", pathProblem(l.FileLease.Path))
	case TypeS3Lease:
		k.bucket(s3+"bucket", l.S3Lease.Bucket, reason)
		k.check(s3+"key", objectKeyProblem(l.S3Lease.Key, maxLeaseKey))
		k.endpoint(s3+"endpoint_url", l.S3Lease.EndpointURL, s3Credentials)
	case TypeGCSLease:
		k.bucket(gcs+"bucket", l.GCSLease.Bucket, reason)
		k.check(gcs+"object_name", objectKeyProblem(l.GCSLease.ObjectName, maxLeaseKey))
		k.endpoint(gcs+"endpoint_url", l.GCSLease.EndpointURL, gcsCredentials)
		k.check(gcs+"service_file", serviceFileProblem(l.GCSLease.ServiceFile))
	case TypeK8sLease:
		k.check(k8s+"namespace", kubeNameProblem(l.K8sLease.Namespace, false))
		k.check(k8s+"name", kubeNameProblem(l.K8sLease.Name, true))
	}
}

// selectedStore checks the section of the selected store.
func (k *checker) selectedStore() {
	s := k.c.State
	reason := k.is("state.store", s.Store)
	switch s.Store {
	case StoreFile:
		k.check("state.file.path", pathProblem(s.File.Path))
	case StoreS3:
		k.bucket("state.s3.bucket", s.S3.Bucket, reason)
		k.check("state.s3.key", objectKeyProblem(s.S3.Key, maxObjectKey))
		k.endpoint("state.s3.endpoint_url", s.S3.EndpointURL, s3Credentials)
	case StoreGCS:
		k.bucket("state.gcs.bucket", s.GCS.Bucket, reason)
		k.check("state.gcs.object_name", objectKeyProblem(s.GCS.ObjectName, maxObjectKey))
		k.endpoint("state.gcs.endpoint_url", s.GCS.EndpointURL, gcsCredentials)
		k.check("state.gcs.service_file", serviceFileProblem(s.GCS.ServiceFile))
	}
}

// check reports problem, if there is one, unless the key was reported already.
func (k *checker) check(key, problem string) {
	if problem != "" && k.ok(key) {
		k.reject(key, "%s", problem)
	}
}

func (k *checker) bucket(key, bucket, reason string) {
	if strings.TrimSpace(bucket) == "" {
		k.check(key, fmt.Sprintf("is empty, but %s; give the bucket's name, here or as %s", reason, envName(key)))
		return
	}
	k.check(key, bucketProblem(bucket))
}

func (k *checker) endpoint(key, url, credentials string) {
	if url != "" {
		k.check(key, endpointProblem(url, credentials))
	}
}

// pairing checks that the store can serve the replicas that the coordinator
// coordinates.
func (k *checker) pairing() {
	const key = "state.store"
	typ, store := k.c.Coordinate.Type, k.c.State.Store

	// 1. Replicas of an object or Kubernetes lease share no disk. The default
	// store is a file, so that saying nothing would lose every checkpoint at
	// the first takeover.
	if typ == TypeS3Lease || typ == TypeGCSLease || typ == TypeK8sLease {
		const fix = "set s3, gcs, none (work that keeps no checkpoint document), or, if every replica mounts the directory of state.file.path, file with state.file.shared: true"
		if at, given := k.c.set[key]; !given {
			at = k.where(key)
			if at == (origin{file: k.c.file}) {
				at = k.where("coordinate.type")
			}
			k.fail(at, key, "is not set, but %s and the default file is on this replica's own disk, where a takeover would not find it; %s", k.is("coordinate.type", typ), fix)
		} else if store == StoreFile && !k.c.State.File.Shared && k.ok("state.file.shared") {
			k.fail(at, key, "file is on this replica's own disk, where a takeover would not find it, but %s; %s", k.is("coordinate.type", typ), fix)
		}
	}

	// 2. sf2loki always keeps checkpoints, and does not know the value none.
	if store == StoreNone {
		if sections := k.sf2lokiGiven(); len(sections) > 0 {
			k.reject(key, "none is for work that keeps no checkpoint document, but sf2loki is configured here (%s) and does; set s3, gcs or file", strings.Join(sections, ", "))
		} else if command := k.c.Workload.Command; len(command) > 0 && filepath.Base(command[0]) == "sf2loki" {
			k.reject(key, "none is for work that keeps no checkpoint document, but workload.command is sf2loki, which does; set s3, gcs or file")
		}
	}
}

func (k *checker) sf2lokiGiven() []string {
	var given []string
	for _, s := range sf2lokiSections {
		if _, ok := k.c.sf2loki[s]; ok {
			given = append(given, s)
		}
	}
	return given
}

// sameObject refuses a lease that is the checkpoint document. Each side keeps
// its own version of what it wrote last, so every write of one would make the
// other lose.
func (k *checker) sameObject() {
	lease, isLease := k.leasePlace()
	state, isState := k.statePlace()
	leaseKey, stateKey := k.nameKeys()
	if !isLease || !isState || !k.ok(leaseKey, stateKey) || !lease.overlaps(state) {
		return
	}
	for _, key := range []string{leaseKey, stateKey} {
		// A bucket or endpoint that was reported says nothing about identity.
		if section := parent(key); !k.ok(section+".bucket", section+".endpoint_url") {
			return
		}
	}
	kind := "object"
	if lease.store == "file" {
		kind = "file"
	}
	what := "the same " + kind + " as"
	if lease.name != state.name {
		what = "no " + kind + " of its own beside"
	}
	k.fail(k.where(leaseKey), leaseKey, "the lease %s is %s the checkpoint document %s (%s, from %s); give one of them another name",
		k.c.LeaseObject(), what, k.c.StateObject(), stateKey, k.where(stateKey).describe())
}

// nameKeys are the keys that name the lease's and the checkpoint's document.
func (k *checker) nameKeys() (lease, state string) {
	lease = map[string]string{
		TypeFileLease: "coordinate.file_lease.path", TypeS3Lease: "coordinate.s3_lease.key", TypeGCSLease: "coordinate.gcs_lease.object_name",
	}[k.c.Coordinate.Type]
	state = map[string]string{
		StoreFile: "state.file.path", StoreS3: "state.s3.key", StoreGCS: "state.gcs.object_name",
	}[k.c.State.Store]
	return lease, state
}
