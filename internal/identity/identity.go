package identity

import (
	"context"
	"net/http"
	"os"
	"strings"
	"time"
	"unicode"
)

// The platforms that are recognised.
const (
	ECS        = "ecs"
	CloudRun   = "cloud-run"
	Kubernetes = "kubernetes"
)

// Budget is how long Detect waits for one answer of a metadata service.
const Budget = time.Second

// Identity is where a process runs.
type Identity struct {
	// Platform is one of the constants, or "".
	Platform string
	// Holder names the process for people. Never empty, at most 256 bytes.
	Holder string
	// Details are facts for the record, such as task_arn, zone, instance, pod.
	Details map[string]string
	// StopWindow is the time from SIGTERM to SIGKILL on this platform unless it
	// was configured differently there, or 0 if that is not known.
	StopWindow time.Duration
	// Problem says what could not be found out, or is nil.
	Problem error
}

// Seams are what Detect reads. The zero value reads this machine.
type Seams struct {
	// Getenv replaces os.Getenv.
	Getenv func(string) string
	// Hostname replaces os.Hostname.
	Hostname func() (string, error)
	// ReadFile replaces os.ReadFile.
	ReadFile func(string) ([]byte, error)
	// GoogleMetadata replaces http://metadata.google.internal.
	GoogleMetadata string
}

// Detect finds out where this process runs. It sends at most three requests, and
// none on a machine that is not one of the platforms.
func Detect(ctx context.Context, s Seams) Identity {
	if s.Getenv == nil {
		s.Getenv = os.Getenv
	}
	if s.Hostname == nil {
		s.Hostname = os.Hostname
	}
	if s.ReadFile == nil {
		s.ReadFile = os.ReadFile
	}
	if s.GoogleMetadata == "" {
		s.GoogleMetadata = "http://metadata.google.internal"
	}
	d := detector{Seams: s, client: client(), id: Identity{Details: map[string]string{}}}
	// 1. ECS and Cloud Run set variables that nothing else sets; Knative sets those
	// of Cloud Run as well, in a pod.
	switch {
	case s.Getenv("ECS_CONTAINER_METADATA_URI_V4") != "":
		d.ecs(ctx)
	case s.Getenv("K_SERVICE") != "" && s.Getenv("K_REVISION") != "" && s.Getenv("KUBERNETES_SERVICE_HOST") == "":
		d.cloudRun(ctx)
	case s.Getenv("KUBERNETES_SERVICE_HOST") != "":
		d.kubernetes()
	}
	// 2. Whatever failed, there is a name.
	if d.id.Holder == "" {
		d.id.Holder = d.host()
	}
	for key, value := range d.id.Details {
		if value = line(value); value == "" {
			delete(d.id.Details, key)
		} else {
			d.id.Details[key] = value
		}
	}
	return d.id
}

type detector struct {
	Seams
	client *http.Client
	id     Identity
}

// host is the name of this machine, which may be the same everywhere.
func (d *detector) host() string {
	name, err := d.Hostname()
	if name = line(name); err != nil || name == "" {
		return "unknown-host"
	}
	return name
}

// maxLine is how much of a value is kept; a holder of the lease has at most as
// much.
const maxLine = 256

// line makes a value of somebody else printable and short.
func line(s string) string {
	s = strings.ToValidUTF8(strings.TrimSpace(s), "")
	s = strings.TrimSpace(strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return -1
		}
		return r
	}, s))
	if len(s) > maxLine {
		s = strings.ToValidUTF8(s[:maxLine], "")
	}
	return s
}
