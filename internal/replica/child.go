package replica

import (
	"fmt"
	"log/slog"
	"os"
	"time"

	"github.com/sf2loki/sf2loki-ha/internal/childconfig"
)

// childConfig makes the configuration of a command that has {child_config} in an
// argument: a file for each term.
type childConfig struct {
	document []byte // ours
	dir      string // "": where it is possible
	drain    time.Duration
	environ  []string
	log      *slog.Logger
}

// openChild prepares it. What cannot be converted is found here, before the
// election, and not by a leader.
func (r *Replica) openChild(drain time.Duration) error {
	if !childconfig.Wanted(r.opts.Command) {
		return nil
	}
	cfg := r.opts.Config
	c := &childConfig{
		document: cfg.Document(), dir: cfg.Service.RuntimeDir, drain: drain,
		environ: childconfig.Environ(os.Environ()), log: r.log,
	}
	path, err := c.write()
	if err != nil {
		return &SetupError{fmt.Errorf("%s: %w", childconfig.Placeholder, err)}
	}
	c.remove(path)
	r.work.child = c
	return nil
}

// write returns the path of a new file. Its health address is free now; a command
// that finds it taken later ends, and the next term has another one.
func (c *childConfig) write() (string, error) {
	addr, err := childconfig.FreeAddr()
	if err != nil {
		return "", err
	}
	document, err := childconfig.Document(c.document, childconfig.Settings{HealthAddr: addr, Drain: c.drain})
	if err != nil {
		return "", err
	}
	return childconfig.Write(c.dir, document)
}

// remove is called when nobody reads the file any more.
func (c *childConfig) remove(path string) {
	if err := os.Remove(path); err != nil {
		c.log.Warn("configuration of the command is left behind", "error", err.Error())
	}
}
