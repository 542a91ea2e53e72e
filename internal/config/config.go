package config

import "time"

// The values of coordinate.type.
const (
	TypeNoop      = "noop"
	TypeFileLease = "file_lease"
	TypeS3Lease   = "s3_lease"
	TypeGCSLease  = "gcs_lease"
	TypeK8sLease  = "k8s_lease"
)

// The values of state.store.
const (
	StoreFile = "file"
	StoreS3   = "s3"
	StoreGCS  = "gcs"
	// StoreNone: the work keeps no checkpoint document that we could seal. It is
	// legal with every coordinator, and meant for work that is not sf2loki: the
	// pair is still exactly one active process, but nothing is fenced at the
	// store and the epoch has no floor besides the lease itself. It is refused
	// together with sf2loki's own sections: sf2loki always keeps checkpoints,
	// and its own loader does not know the value.
	StoreNone = "none"
)

// The values of workload.unfenced_state.
const (
	UnfencedRefuse = "refuse"
	UnfencedAccept = "accept"
)

// Config is a whole, valid configuration. The tag of a field is its key in the
// file; "optional" means that null is the same as leaving the key out.
//
// docs/config.md is generated from the comments below. A sentence that begins
// with "Default" becomes the column of that name: "Default 30 s." has to be what
// defaults returns, "Default: text." is for what is not a constant.
type Config struct {
	// Coordinate says how replicas agree on the one that acts.
	Coordinate Coordinate `key:"coordinate"`
	// State says where the checkpoint document is.
	State State `key:"state"`
	// Service is this process: addresses, logs, stopping.
	Service Service `key:"service"`
	// Workload is the command that runs only while this replica leads.
	Workload Workload `key:"workload"`

	file     string            // the file read, or ""
	document []byte            // its content
	set      map[string]origin // keys that the file or the environment gave
	sf2loki  map[string]origin // sf2loki's own sections that were given
}

// Coordinate says how replicas agree on the one that acts.
type Coordinate struct {
	// Type of coordinator: noop (no election: run exactly one replica), file_lease,
	// s3_lease, gcs_lease or k8s_lease. Has to be given if one of the sections
	// below is. Default noop.
	Type string `key:"type"`
	// FileLease is used with type file_lease.
	FileLease FileLease `key:"file_lease"`
	// S3Lease is used with type s3_lease.
	S3Lease S3Lease `key:"s3_lease"`
	// GCSLease is used with type gcs_lease.
	GCSLease GCSLease `key:"gcs_lease"`
	// K8sLease is used with type k8s_lease.
	K8sLease K8sLease `key:"k8s_lease"`
	// UnsafeSkipStoreProbe lets this replica lead on a store that was not seen to
	// honour conditional writes. On one that ignores them two replicas act at once.
	// Default false.
	UnsafeSkipStoreProbe bool `key:"unsafe_skip_store_probe"`
}

// FileLease is a lease in a file of a file system that every replica sees.
type FileLease struct {
	// Path of the lease file. Default /var/lib/sf2loki/leader.lease.
	Path string `key:"path"`
	// TTL is how long a lease stays valid after its last renewal. Default 30 s.
	TTL time.Duration `key:"ttl"`
	// RenewInterval is the time between two renewals. Default 10 s.
	RenewInterval time.Duration `key:"renew_interval"`
	// PollInterval is the time between a standby's reads. Default 1 s.
	PollInterval time.Duration `key:"poll_interval"`
	// HolderID names this replica for people. Default: the task, instance or pod, or the host name.
	HolderID string `key:"holder_id"`
}

// S3Lease is a lease object in an S3 bucket, or in a store that speaks S3 and
// honours conditional writes.
type S3Lease struct {
	// Bucket is the bucket's name. Required with type s3_lease.
	Bucket string `key:"bucket"`
	// Key of the lease object. The two objects named like it with .request and
	// .drill appended belong to the lease as well. Default sf2loki/leader.lease.
	Key string `key:"key"`
	// Region of the bucket. Default: found by the AWS SDK.
	Region string `key:"region,optional"`
	// EndpointURL of a store other than AWS: http(s), without credentials.
	// Default: AWS.
	EndpointURL string `key:"endpoint_url,optional"`
	// TTL is how long a lease stays valid after its last renewal. Default 15 s.
	TTL time.Duration `key:"ttl"`
	// RenewInterval is the time between two renewals. Default 5 s.
	RenewInterval time.Duration `key:"renew_interval"`
	// PollInterval is the time between a standby's reads. Default 1 s.
	PollInterval time.Duration `key:"poll_interval"`
	// HolderID names this replica for people. Default: the task, instance or pod, or the host name.
	HolderID string `key:"holder_id"`
}

// GCSLease is a lease object in a Google Cloud Storage bucket.
type GCSLease struct {
	// Bucket is the bucket's name. Required with type gcs_lease.
	Bucket string `key:"bucket"`
	// ObjectName of the lease object. The two objects named like it with .request
	// and .drill appended belong to the lease as well. Default
	// sf2loki/leader.lease.
	ObjectName string `key:"object_name"`
	// ServiceFile is the path of a service account key. Default: application
	// default credentials.
	ServiceFile string `key:"service_file,optional"`
	// EndpointURL of an emulator: http(s), without credentials. Default: Google
	// Cloud.
	EndpointURL string `key:"endpoint_url,optional"`
	// TTL is how long a lease stays valid after its last renewal. Default 15 s.
	TTL time.Duration `key:"ttl"`
	// RenewInterval is the time between two renewals, at least 1 s: the store
	// accepts one write of an object in a second. Default 5 s.
	RenewInterval time.Duration `key:"renew_interval"`
	// PollInterval is the time between a standby's reads. Default 1 s.
	PollInterval time.Duration `key:"poll_interval"`
	// HolderID names this replica for people. Default: the task, instance or pod, or the host name.
	HolderID string `key:"holder_id"`
}

// K8sLease is a Kubernetes Lease object.
type K8sLease struct {
	// Namespace of the Lease. Default "default".
	Namespace string `key:"namespace"`
	// Name of the Lease. Default sf2loki-leader.
	Name string `key:"name"`
	// Identity names this replica for people. Default: the task, instance or pod, or the host name.
	Identity string `key:"identity"`
	// LeaseDuration is how long a lease stays valid after its last renewal.
	// Default 30 s.
	LeaseDuration time.Duration `key:"lease_duration"`
	// RenewInterval is the time between two renewals. Default 10 s.
	RenewInterval time.Duration `key:"renew_interval"`
	// Kubeconfig is the path of a kubeconfig file. Default: in-cluster.
	Kubeconfig string `key:"kubeconfig,optional"`
}

// State says where the checkpoint document is.
type State struct {
	// Store of the document: file, s3, gcs or none (the work keeps none that could
	// be fenced). With an object or Kubernetes lease it has to be given explicitly.
	// Default file.
	Store string `key:"store"`
	// File is used with store file.
	File StateFile `key:"file"`
	// S3 is used with store s3.
	S3 StateS3 `key:"s3"`
	// GCS is used with store gcs.
	GCS StateGCS `key:"gcs"`
}

// StateFile is a checkpoint document in a file.
type StateFile struct {
	// Path of the document. Default /var/lib/sf2loki/state.json.
	Path string `key:"path"`
	// Shared declares that every replica mounts the file system of the path.
	// Without it an object or Kubernetes lease refuses the store. Default false.
	Shared bool `key:"shared"`
}

// StateS3 is a checkpoint document in an S3 bucket.
type StateS3 struct {
	// Bucket is the bucket's name. Required with store s3.
	Bucket string `key:"bucket"`
	// Key of the document. Default sf2loki/state.json.
	Key string `key:"key"`
	// Region of the bucket. Default: found by the AWS SDK.
	Region string `key:"region,optional"`
	// EndpointURL of a store other than AWS: http(s), without credentials.
	// Default: AWS.
	EndpointURL string `key:"endpoint_url,optional"`
}

// StateGCS is a checkpoint document in a Google Cloud Storage bucket.
type StateGCS struct {
	// Bucket is the bucket's name. Required with store gcs.
	Bucket string `key:"bucket"`
	// ObjectName of the document. Default sf2loki/state.json.
	ObjectName string `key:"object_name"`
	// ServiceFile is the path of a service account key. Default: application
	// default credentials.
	ServiceFile string `key:"service_file,optional"`
	// EndpointURL of an emulator: http(s), without credentials. Default: Google
	// Cloud.
	EndpointURL string `key:"endpoint_url,optional"`
}

// Service is this process: addresses, logs, stopping.
type Service struct {
	// HealthAddr is host:port of the health and metrics server. An empty host
	// means every interface, port 0 a free one. Default ":8080".
	HealthAddr string `key:"health_addr"`
	// ShutdownGrace is what the work gets to drain after a requested stop. Zero
	// means none. Default 25 s.
	ShutdownGrace time.Duration `key:"shutdown_grace"`
	// LogLevel of this process, in any case: debug, info, warning, warn, error or
	// critical; Load makes it lower case. Default info.
	LogLevel string `key:"log_level"`
	// LogFormat of this process: json or logfmt. Default json.
	LogFormat string `key:"log_format"`
	// PlatformStopWindow is the time from SIGTERM to SIGKILL that the platform
	// grants; draining is cut to fit into it. Default: unknown.
	PlatformStopWindow time.Duration `key:"platform_stop_window"`
	// RuntimeDir takes the socket of workload.checkpoint_api and the file of
	// {child_config}. It has to exist. Default: for the socket a directory of its own among
	// the temporary files, for the file /run/sf2loki-ha or the temporary files.
	RuntimeDir string `key:"runtime_dir"`
	// UnreadyAfterSinkFailing belongs to sf2loki; only its form is checked here.
	// Default 15 m.
	UnreadyAfterSinkFailing time.Duration `key:"unready_after_sink_failing"`
	// Telemetry belongs to sf2loki and is not read here.
	Telemetry Opaque `key:"telemetry"`
}

// Opaque is a section that belongs to sf2loki. Only its presence is known: what
// was never read cannot be logged.
type Opaque struct {
	// Given tells whether the file or the environment has the section.
	Given bool
}

// Workload is the command that runs only while this replica leads.
type Workload struct {
	// Command is the program and its arguments, run without a shell. A
	// command after -- on the command line replaces it. Default: no command.
	Command []string `key:"command"`
	// StopGrace is what the command gets to end by itself once the lease could
	// not be renewed. Default: a fifth of the ttl, at most 3 s.
	StopGrace time.Duration `key:"stop_grace"`
	// CheckpointAPI gives the command the checkpoint document over a Unix socket,
	// fenced, instead of letting it write the store by itself. Default false.
	CheckpointAPI bool `key:"checkpoint_api"`
	// UnfencedState says what to do about a command that writes a checkpoint file
	// by itself, which no fence protects: refuse or accept. Default refuse.
	UnfencedState string `key:"unfenced_state"`
}

// IsSet tells whether the file or the environment gave the dotted key, or a key
// below it, so that an explicit value can be told from an equal default.
func (c *Config) IsSet(key string) bool {
	_, ok := c.set[key]
	return ok
}

// Document is the content of the file as it was read, with ${NAME} in it; nil
// without a file. It is not to be changed, and never to be logged.
func (c *Config) Document() []byte { return c.document }

// defaults are sf2loki's, and for what sf2loki does not have, ours.
func defaults() *Config {
	const (
		stateObject = "sf2loki/state.json"
		leaseObject = "sf2loki/leader.lease"
	)
	return &Config{
		Coordinate: Coordinate{
			Type: TypeNoop,
			FileLease: FileLease{
				Path: "/var/lib/sf2loki/leader.lease",
				TTL:  30 * time.Second, RenewInterval: 10 * time.Second, PollInterval: time.Second,
			},
			S3Lease: S3Lease{
				Key: leaseObject,
				TTL: 15 * time.Second, RenewInterval: 5 * time.Second, PollInterval: time.Second,
			},
			GCSLease: GCSLease{
				ObjectName: leaseObject,
				TTL:        15 * time.Second, RenewInterval: 5 * time.Second, PollInterval: time.Second,
			},
			K8sLease: K8sLease{
				Namespace: "default", Name: "sf2loki-leader",
				LeaseDuration: 30 * time.Second, RenewInterval: 10 * time.Second,
			},
		},
		State: State{
			Store: StoreFile,
			File:  StateFile{Path: "/var/lib/sf2loki/state.json"},
			S3:    StateS3{Key: stateObject},
			GCS:   StateGCS{ObjectName: stateObject},
		},
		Service: Service{
			HealthAddr: ":8080", ShutdownGrace: 25 * time.Second,
			LogLevel: "info", LogFormat: "json",
			UnreadyAfterSinkFailing: 15 * time.Minute,
		},
		Workload: Workload{UnfencedState: UnfencedRefuse},
		set:      map[string]origin{},
		sf2loki:  map[string]origin{},
	}
}
