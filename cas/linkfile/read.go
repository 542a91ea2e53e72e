package linkfile

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/sf2loki/sf2loki-ha/cas"
	"github.com/sf2loki/sf2loki-ha/cas/internal/posix"
	"github.com/sf2loki/sf2loki-ha/internal/boottime"
)

// mostLooks is how often a read starts again: because the file that a listing
// showed last was gone (64 writes have passed meanwhile, or the listing comes out
// of a cache that is out of date), or because a write landed while it looked.
const mostLooks = 8

var errUnsettled = errors.New("the directory changes faster than it can be read, or a cache shows files that are gone")

// state is the object at one moment.
type state struct {
	version version
	data    []byte
	written time.Time // by the file server's clock
	err     error     // why there is no data though there is a version
}

// load reads the object. Its age is by this machine's wall clock, since a file
// server does not say what its clock shows now: it is off by what the two differ,
// and 0 where the server's is ahead by more. The time is the private file's, which
// was written just before it was linked.
func (r *register) load(ctx context.Context) (cas.Value, error) {
	start := r.now()
	s, err := r.look(ctx)
	if err != nil {
		return cas.Value{}, err
	}
	v := cas.Value{Data: s.data, Version: s.version.text(), Age: cas.AgeOf(time.Now(), s.written)}
	r.know(v.Version, start)
	return v, s.err
}

// look finds out what the object is now. An object that does not exist is
// fs.ErrNotExist.
func (r *register) look(ctx context.Context) (state, error) {
	for range mostLooks {
		// 1. The highest number, of which content and version come from one file.
		top, err := r.top(ctx)
		absent := errors.Is(err, fs.ErrNotExist)
		if err != nil && !absent {
			return state{}, err
		}
		// 2. The file at path: the object itself if there is no number, and a
		// sign of another program otherwise.
		if !absent && r.opts.Foreign == nil {
			return top, nil
		}
		c, err := r.sys.read(r.path)
		alien := r.isForeign(c, err)
		switch {
		case absent && err != nil && !errors.Is(err, posix.ErrTooLarge):
			return state{}, err // also: neither of them exists
		case absent, alien:
			top = state{version: version{top.version.seq, top.version.sum, identity(c)}, data: c.Data, written: c.Info.ModTime(), err: err}
		case err != nil && !harmless(err):
			// What cannot be read may be another program's. Not knowing is no
			// reason to claim.
			return state{}, err
		}
		// 3. Between the two reads a write may have landed. Only a state that
		// still is the last is one that was there at one moment.
		_, err = r.sys.stat(r.slot(top.version.seq + 1))
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return top, nil
		case err != nil:
			return state{}, err
		case ctx.Err() != nil:
			return state{}, ctx.Err()
		}
	}
	return state{}, errUnsettled
}

// top reads the numbered file with the highest number.
func (r *register) top(ctx context.Context) (state, error) {
	for range mostLooks {
		// 1. A listing names at least the versions that existed while it was made;
		// one that a cache kept may miss some. Number 1 exists if any does.
		names, err := r.numbers()
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return state{}, err
		}
		n := int64(1)
		if len(names) > 0 {
			n = names[len(names)-1]
		}
		// 2. Read it, and go on to what has come into being since.
		s, err := r.at(n)
		for found := s; err == nil; found, err = r.at(found.version.seq + 1) {
			if err := ctx.Err(); err != nil {
				return state{}, err
			}
			s = found
		}
		switch {
		case !errors.Is(err, fs.ErrNotExist):
			return state{}, err
		case s.version.seq > 0:
			return s, nil
		case len(names) == 0:
			return state{}, err
		}
		// 3. It was listed and is not there: removed meanwhile. Look again.
	}
	return state{}, errUnsettled
}

// at reads version n.
func (r *register) at(n int64) (state, error) {
	c, err := r.sys.read(r.slot(n))
	if err != nil && !errors.Is(err, posix.ErrTooLarge) {
		return state{}, err
	}
	return state{version: version{seq: n, sum: c.Sum}, data: c.Data, written: c.Info.ModTime(), err: err}, nil
}

// numbers lists the versions there are, in ascending order.
func (r *register) numbers() ([]int64, error) {
	names, err := r.sys.list(filepath.Dir(r.path))
	if err != nil {
		return nil, err
	}
	var found []int64
	for _, name := range names {
		if suffix, ok := strings.CutPrefix(name, filepath.Base(r.path)); ok {
			if n, ok := number(suffix); ok {
				found = append(found, n)
			}
		}
	}
	slices.Sort(found)
	return found, nil
}

// know remembers a version for MaxReadAge. It counts from before the read, which
// makes it older than it is.
func (r *register) know(v cas.Version, at boottime.Instant) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.known = sighting{v, at}
}

// identity names one state of the file at path. The time tells a file that was
// written again from one that was not, should its bytes be the same.
func identity(c posix.Content) string {
	return fmt.Sprintf("%x-%s", c.Info.ModTime().UnixNano(), c.Sum)
}
