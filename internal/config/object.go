package config

import (
	"net/url"
	"os"
	"path"
	"path/filepath"
	"strings"
)

// LeaseObject names the lease of the selected type for logs, without
// credentials.
func (c *Config) LeaseObject() string {
	switch l := c.Coordinate; l.Type {
	case TypeFileLease:
		return "file:" + l.FileLease.Path
	case TypeS3Lease:
		return "s3://" + l.S3Lease.Bucket + "/" + l.S3Lease.Key + at(l.S3Lease.EndpointURL)
	case TypeGCSLease:
		return "gs://" + l.GCSLease.Bucket + "/" + l.GCSLease.ObjectName + at(l.GCSLease.EndpointURL)
	case TypeK8sLease:
		return "k8s://" + l.K8sLease.Namespace + "/" + l.K8sLease.Name
	}
	return "none"
}

// LeaseIdentity is the lease that is meant, without the way to its store, "" for
// noop. It is sealed into the checkpoint document and compared for ever, so that
// it must not change when the store is reached by another name or address.
func (c *Config) LeaseIdentity() string {
	switch l := c.Coordinate; l.Type {
	case TypeFileLease:
		return filepath.Clean(l.FileLease.Path)
	case TypeS3Lease:
		return "s3://" + l.S3Lease.Bucket + "/" + l.S3Lease.Key
	case TypeGCSLease:
		return "gs://" + l.GCSLease.Bucket + "/" + l.GCSLease.ObjectName
	case TypeK8sLease:
		return "k8s://" + l.K8sLease.Namespace + "/" + l.K8sLease.Name
	}
	return ""
}

// StateObject names the checkpoint document for logs, without credentials.
func (c *Config) StateObject() string {
	switch s := c.State; s.Store {
	case StoreFile:
		return "file:" + s.File.Path
	case StoreS3:
		return "s3://" + s.S3.Bucket + "/" + s.S3.Key + at(s.S3.EndpointURL)
	case StoreGCS:
		return "gs://" + s.GCS.Bucket + "/" + s.GCS.ObjectName + at(s.GCS.EndpointURL)
	}
	return "none"
}

// at shows an endpoint: scheme and host, never userinfo or query.
func at(endpoint string) string {
	if endpoint == "" {
		return ""
	}
	u, err := url.Parse(endpoint)
	if err != nil || u.Host == "" {
		return " at a custom endpoint"
	}
	return " at " + (&url.URL{Scheme: u.Scheme, Host: u.Host, Path: strings.TrimRight(u.Path, "/")}).String()
}

// place is where a document is: a file, or an object in a bucket of a store.
type place struct {
	store, bucket, name string
}

// leasePlace is where the lease is; false if it is neither file nor object.
func (k *checker) leasePlace() (place, bool) {
	switch l := k.c.Coordinate; l.Type {
	case TypeFileLease:
		return filePlace(l.FileLease.Path), true
	case TypeS3Lease:
		return place{k.s3Store(l.S3Lease.EndpointURL), l.S3Lease.Bucket, cleanKey(l.S3Lease.Key)}, true
	case TypeGCSLease:
		return place{k.gcsStore(l.GCSLease.EndpointURL), l.GCSLease.Bucket, cleanKey(l.GCSLease.ObjectName)}, true
	}
	return place{}, false
}

// statePlace is where the checkpoint document is; false if there is none.
func (k *checker) statePlace() (place, bool) {
	switch s := k.c.State; s.Store {
	case StoreFile:
		return filePlace(s.File.Path), true
	case StoreS3:
		return place{k.s3Store(s.S3.EndpointURL), s.S3.Bucket, cleanKey(s.S3.Key)}, true
	case StoreGCS:
		return place{k.gcsStore(s.GCS.EndpointURL), s.GCS.Bucket, cleanKey(s.GCS.ObjectName)}, true
	}
	return place{}, false
}

// s3Store follows the AWS SDK: without endpoint_url the environment decides.
func (k *checker) s3Store(endpoint string) string {
	if ignore, _ := k.env.get("AWS_IGNORE_CONFIGURED_ENDPOINT_URLS"); endpoint == "" && !strings.EqualFold(ignore, "true") {
		for _, name := range []string{"AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL"} {
			if endpoint, _ = k.env.get(name); endpoint != "" {
				break
			}
		}
	}
	return endpointIdentity(endpoint, serviceAWS)
}

// gcsStore follows the Cloud Storage client: an emulator can be set for all.
func (k *checker) gcsStore(endpoint string) string {
	if endpoint == "" {
		endpoint, _ = k.env.get("STORAGE_EMULATOR_HOST")
	}
	return strings.TrimSuffix(endpointIdentity(endpoint, serviceGCS), "/storage/v1")
}

func cleanKey(key string) string { return strings.TrimLeft(path.Clean("/"+key), "/") }

func filePlace(p string) place { return place{store: "file", name: resolvePath(p)} }

// resolvePath makes a path absolute and follows the symbolic links of the part
// that exists: the file itself often does not exist yet.
func resolvePath(p string) string {
	if abs, err := filepath.Abs(p); err == nil {
		p = abs
	}
	rest := ""
	for dir := filepath.Clean(p); ; dir = filepath.Dir(dir) {
		if real, err := filepath.EvalSymlinks(dir); err == nil {
			return filepath.Join(real, rest)
		}
		if dir == filepath.Dir(dir) {
			return p
		}
		rest = filepath.Join(filepath.Base(dir), rest)
	}
}

// overlaps tells whether two documents are one, or one of them has a name that
// belongs to the other: its lock, its temporary or numbered files, its request
// and drill objects.
func (p place) overlaps(q place) bool {
	if p.store != q.store || p.bucket != q.bucket {
		return false
	}
	if p.name == q.name || derived(p.name, q.name) || derived(q.name, p.name) {
		return true
	}
	if p.store != "file" {
		return false
	}
	// Hard links and file systems that ignore case.
	a, errA := os.Stat(p.name)
	b, errB := os.Stat(q.name)
	return errA == nil && errB == nil && os.SameFile(a, b)
}

func derived(name, base string) bool {
	suffix, ok := strings.CutPrefix(name, base+".")
	if !ok {
		return false
	}
	switch suffix {
	case "lock", "tmp", "request", "drill":
		return true
	}
	if strings.HasPrefix(suffix, "probe/") || strings.HasSuffix(suffix, ".tmp") {
		return true // what lies there may be removed
	}
	return suffix != "" && strings.Trim(suffix, "0123456789") == ""
}
