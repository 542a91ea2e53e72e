package linkfile

import (
	"fmt"

	"github.com/sf2loki/sf2loki-ha/cas/internal/posix"
)

// alien is what a register knows of another program at its path.
type alien struct {
	last string // identity of the foreign content seen last
	said bool   // Changing was called for it
}

// isForeign tells whether what was read from the file at path was written by
// another program, and notices when that changes while we watch.
func (r *register) isForeign(c posix.Content, err error) bool {
	foreign := err == nil && r.opts.Foreign != nil && r.opts.Foreign(c.Data)
	if err != nil && !harmless(err) {
		return foreign // no news about it
	}
	r.mu.Lock()
	was := r.alien
	switch {
	case !foreign:
		r.alien = alien{}
	default:
		r.alien.last = identity(c)
		r.alien.said = was.said || was.last != "" && was.last != r.alien.last
	}
	news := r.alien.said && !was.said
	r.mu.Unlock()
	if news && r.opts.Changing != nil {
		r.opts.Changing(r.failed("load", fmt.Errorf("it keeps changing: %w", foreignError{r.path})))
	}
	return foreign
}

// intruder returns the identity of the foreign content at path, or "" if there
// is none. An error means that the file cannot be read.
func (r *register) intruder() (string, error) {
	if r.opts.Foreign == nil {
		return "", nil
	}
	c, err := r.sys.read(r.path)
	switch {
	case r.isForeign(c, err):
		return identity(c), nil
	case err != nil && !harmless(err):
		return "", err
	}
	return "", nil
}
