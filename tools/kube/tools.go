//go:build tools

// Package kube pins the API server and etcd that tests run. Kubernetes' own
// modules are published under versions of their own, hence the replacements in
// go.mod; a module of its own, because they fit no other's dependencies.
package kube

import (
	_ "go.etcd.io/etcd/server/v3"
	_ "k8s.io/kubernetes/cmd/kube-apiserver"
)
