package config

import (
	"errors"
	"fmt"
	"path/filepath"
)

// checkpointAPI refuses a socket to nothing.
func (k *checker) checkpointAPI() {
	const key = "workload.checkpoint_api"
	if k.c.Workload.CheckpointAPI && k.ok(key) && k.known("state.store") && k.c.State.Store == StoreNone {
		k.reject(key, "true gives the command a checkpoint document, but %s; set file, s3 or gcs, or leave the key out", k.is("state.store", StoreNone))
	}
}

// CheckWork judges the command, wherever it was given, together with the store:
// a command that writes a checkpoint file by itself is not fenced. A file has no
// version that a seal could kill, so that a stale process which writes the whole
// document, as sf2loki's file store does, wipes out what its successor has
// written.
func (c *Config) CheckWork(command []string) error {
	switch {
	case len(command) == 0, isCanary(command), c.Coordinate.Type == TypeNoop, c.State.Store != StoreFile, c.Workload.CheckpointAPI,
		c.Workload.UnfencedState == UnfencedAccept:
		return nil
	}
	return fmt.Errorf("workload: %w", errUnfenced)
}

// isCanary recognises our own canary, which keeps its checkpoints fenced in every
// store.
func isCanary(command []string) bool {
	return len(command) > 1 && filepath.Base(command[0]) == "sf2loki-ha" && command[1] == "canary"
}

var errUnfenced = errors.New("with state.store file nothing stops a stale command from overwriting the checkpoints of its successor; " +
	"use s3 or gcs, or workload.checkpoint_api: true if the command can keep its checkpoints through the socket, " +
	"or workload.unfenced_state: accept if the guard alone is enough")
