package linkfile

import (
	"errors"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

const (
	// keep is how many versions stay at least. At one write every 10 s a process
	// must stand still for more than ten minutes to find its number free again.
	keep = 64
	// abandoned is how much older than a write that has just been made an
	// unfinished one must be to be removed. Both times are the file server's.
	abandoned = 10 * time.Minute
	// firstMark replaces the content of number 1 when it is old: the name stays,
	// so that the object is created only once.
	firstMark = "the first version of this lease; the name is kept so that the lease is created only once\n"
)

// tidy does what a write that landed leaves to do. All of it may fail: the next
// write does it again.
func (r *register) tidy(c *commit) {
	if !c.copied {
		_ = r.copyTo(c.data)
	}
	_ = r.sys.remove(c.temp)
	r.prune(c.version.seq - r.keep)
	r.sweep(c.info.ModTime().Add(-abandoned))
}

// copyTo makes data the content of the file at path.
func (r *register) copyTo(data []byte) error { return r.overwrite(r.path, data, false) }

// overwrite gives path another content, whole or not at all.
func (r *register) overwrite(path string, data []byte, sync bool) error {
	temp := r.temp()
	err := r.writeFile(temp, data, sync)
	if err == nil {
		err = r.sys.rename(temp, path)
	}
	if err != nil {
		_ = r.sys.remove(temp)
	}
	return err
}

// prune removes the versions up to last, in ascending order, and stops where it
// fails: a version that is there while its successor is gone would vouch for
// whoever takes the successor's number.
func (r *register) prune(last int64) {
	if last < 1 {
		return
	}
	numbers, err := r.numbers()
	if err != nil {
		return
	}
	for _, n := range numbers {
		if n > last {
			return
		}
		if n == 1 {
			// Its name stays, its content goes, before number 2 is free.
			if slices.Contains(numbers, 2) {
				err = r.overwrite(r.slot(1), []byte(firstMark), true)
			}
		} else {
			err = r.sys.remove(r.slot(n))
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return
		}
	}
}

// sweep removes what processes that were killed left behind. Should the writer
// only have been stopped, its link finds no file and the write has failed, which
// takes nothing from anybody; a version keeps its content under its own name.
func (r *register) sweep(before time.Time) {
	dir := filepath.Dir(r.path)
	names, err := r.sys.list(dir)
	if err != nil {
		return
	}
	for _, name := range names {
		suffix, ok := strings.CutPrefix(name, filepath.Base(r.path))
		if !ok || !isTemp(suffix) {
			continue
		}
		path := filepath.Join(dir, name)
		if info, err := r.sys.stat(path); err == nil && info.ModTime().Before(before) {
			_ = r.sys.remove(path)
		}
	}
}
