package linkfile

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"github.com/sf2loki/sf2loki-ha/cas"
	"github.com/sf2loki/sf2loki-ha/cas/internal/posix"
)

// create makes version 1.
func (r *register) create(ctx context.Context, data []byte) (*commit, error) {
	switch _, err := r.look(ctx); {
	case err == nil, errors.Is(err, posix.ErrIrregular):
		return nil, cas.Conflict
	case !errors.Is(err, fs.ErrNotExist):
		return nil, err
	}
	if err := r.sys.makeDir(filepath.Dir(r.path)); err != nil {
		return nil, err
	}
	return r.commit(ctx, data, version{})
}

// replace makes the version after old.
func (r *register) replace(ctx context.Context, data []byte, text cas.Version) (*commit, error) {
	old, ok := parse(text)
	if !ok {
		return nil, cas.Conflict
	}
	// 1. A version this process knew to be the last a moment ago is worth a try;
	// of any other one it has to find out. The link would find that out too,
	// except that the number of a version that is old enough is free again.
	if !r.fresh(text) || old.copy != "" {
		switch s, err := r.look(ctx); {
		case errors.Is(err, fs.ErrNotExist), errors.Is(err, posix.ErrIrregular):
			return nil, cas.Conflict
		case err != nil:
			return nil, err
		case s.version != old && s.version.copy != "" && s.version.seq > 0:
			return nil, foreignError{r.path}
		case s.version != old:
			return nil, cas.Conflict
		}
	} else if intruder, _ := r.intruder(); intruder != "" {
		// 2. Another program has written its own lease over ours. It may act
		// already, and it will not look at a condition: give way. A file that
		// cannot be read does not stop a leader: its lease is in the numbered ones.
		return nil, foreignError{r.path}
	}
	return r.commit(ctx, data, old)
}

// fresh tells whether this register read or wrote the version not long ago.
func (r *register) fresh(v cas.Version) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.known.version == v && r.now().Sub(r.known.at) < r.opts.MaxReadAge
}

// commit is a write that landed.
type commit struct {
	version version
	data    []byte
	temp    string      // the private file
	info    fs.FileInfo // of the private file, when it had one name
	copied  bool        // the file at path has it already
}

// commit writes data as the version after old.
func (r *register) commit(ctx context.Context, data []byte, old version) (_ *commit, err error) {
	start := r.now()
	c := &commit{version: version{seq: old.seq + 1, sum: posix.Sum(data)}, data: data, temp: r.temp()}
	defer func() {
		if err != nil {
			_ = r.sys.remove(c.temp)
		}
	}()

	// 1. The whole content, on the disk, under a name nobody else uses.
	if err := r.writeFile(c.temp, data, true); err != nil {
		return nil, err
	}
	if c.info, err = r.sys.stat(c.temp); err != nil {
		return nil, err
	}

	// 2. Nobody waits any more? Then leave it: a write that lands later than its
	// caller gave up is allowed, but none is better.
	if err := ctx.Err(); err != nil {
		return nil, err
	}

	// 3. The commit point.
	if err := r.linked(c, r.sys.link(c.temp, r.slot(c.version.seq))); err != nil {
		return nil, err
	}

	// 4. The name, on the disk. From here on every error is one of a write that
	// may stand.
	if err := r.sys.syncDir(filepath.Dir(r.path)); err != nil {
		return nil, unsure{fmt.Errorf("sync directory: %w", err)}
	}

	// 5. Was the number ever used before, and is it the last?
	if err := r.confirm(ctx, c, old); err != nil {
		return nil, unsure{err}
	}
	r.know(c.version.text(), start)
	return c, nil
}

// writeFile makes the file with this content.
func (r *register) writeFile(path string, data []byte, sync bool) (err error) {
	f, err := r.sys.create(path)
	if err != nil {
		return err
	}
	defer func() {
		if cerr := f.Close(); err == nil {
			err = cerr // NFS writes on close, so that is where it reports a full disk
		}
	}()
	if _, err := f.Write(data); err != nil {
		return err
	}
	if !sync {
		return nil
	}
	return f.Sync()
}

// linked decides what became of a link that was answered with err: nil if it
// landed, otherwise an error with the class of a write that did not, or unsure.
func (r *register) linked(c *commit, err error) error {
	if err == nil {
		return nil
	}
	// 1. The private file had one name. With two, the second is ours, and the
	// error is about a request that was sent twice or an answer that was lost.
	info, serr := r.sys.stat(c.temp)
	switch {
	case serr == nil && links(info) >= 2:
		return nil
	case errors.Is(serr, fs.ErrNotExist), serr == nil && links(info) == 0:
		// Somebody tidied it away after or before the link, or links are not
		// counted here. The content tells: no two writes have the same.
		if s, err := r.at(c.version.seq); err == nil && s.version.sum == c.version.sum {
			return nil
		}
		return unsure{err}
	case serr != nil:
		return unsure{fmt.Errorf("%w; and then: %w", err, serr)}
	}
	// 2. It has one name. If another file has the number, we lost.
	switch {
	case errors.Is(err, fs.ErrExist):
		if _, serr := r.sys.stat(r.slot(c.version.seq)); serr != nil && !errors.Is(serr, posix.ErrIrregular) {
			// Nobody has it any more: ours may have landed and been removed with
			// the old versions while this process stood still.
			return unsure{err}
		}
		return cas.Conflict
	case linkless(err):
		return fmt.Errorf("%w: %w", errNoLinks, err)
	case errors.Is(err, fs.ErrPermission), errors.Is(err, syscall.EROFS):
		return err
	}
	// 3. Anything else (I/O error, timeout, stale handle) may be a request that
	// the server has yet to carry out. Removing the private file, which comes
	// next, makes that fail.
	return unsure{err}
}

// confirm decides whether a link that landed counts.
func (r *register) confirm(ctx context.Context, c *commit, old version) error {
	// 1. The version it replaces. Old versions go in ascending order, so as long
	// as this one is there its successor was never removed, and the number was
	// never anybody else's. Only a definite answer takes the name back.
	if old.seq > 0 {
		before, err := r.at(old.seq)
		switch {
		case errors.Is(err, fs.ErrNotExist), err == nil && before.version.sum != old.sum:
			r.withdraw(c)
			return errRecycled
		case err != nil:
			return err
		}
	}
	// 2. Nothing after it. Had it been used before, there would be; and what was
	// superseded already must not be taken for the last word. The name stays:
	// somebody may have built on it.
	top, err := r.top(ctx)
	if err != nil {
		return err
	}
	if top.version.seq != c.version.seq || top.version.sum != c.version.sum {
		return errSuperseded
	}
	// 3. Another program. Where its record is what was replaced, it has to go
	// before the write counts, because it hides the write from every reader.
	intruder, err := r.intruder()
	switch {
	case err != nil && old.copy != "":
		return fmt.Errorf("find out whether another program still uses the path: %w", err)
	case intruder == "":
	case intruder != old.copy:
		return foreignError{r.path}
	default:
		if err := r.copyTo(c.data); err != nil {
			return fmt.Errorf("replace the record of another program: %w", err)
		}
		c.copied = true
	}
	return nil
}

// withdraw takes back a name that was somebody else's before, if it still is
// ours. Nobody has built on it: it is older than the oldest version that is kept.
func (r *register) withdraw(c *commit) {
	name := r.slot(c.version.seq)
	info, err := r.sys.stat(name)
	if err == nil && os.SameFile(info, c.info) {
		_ = r.sys.remove(name)
	}
}
