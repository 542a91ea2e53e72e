// Package e2e tests the shipped binary with real processes and real servers.
//
// The tests start versitygw and fake-gcs-server from .bin and sf2loki-ha from
// bin ("make tools build"), on loopback, with the canary as work, and judge by
// what the canaries say they did. They wait for real time.
package e2e
