// Command k8s is the footprint of the Kubernetes client.
package main

import (
	"context"
	"os"
	"path/filepath"

	"github.com/sf2loki/sf2loki-ha/coordinator/k8slease"
	"github.com/sf2loki/sf2loki-ha/internal/ci/footprint/resident"
)

const kubeconfig = `{apiVersion: v1, kind: Config, current-context: c, clusters: [{name: c, cluster: {server: "http://127.0.0.1:1"}}],
contexts: [{name: c, context: {cluster: c}}]}`

func main() {
	dir, err := os.MkdirTemp("", "footprint-")
	resident.Must(err)
	file := filepath.Join(dir, "kubeconfig")
	resident.Must(os.WriteFile(file, []byte(kubeconfig), 0o600))
	s, err := k8slease.Open(context.Background(), k8slease.Config{Namespace: "n", Name: "l", Kubeconfig: file})
	resident.Must(err)
	resident.Must(os.RemoveAll(dir))
	_, _ = s.Read(context.Background())
	resident.Print(s)
}
