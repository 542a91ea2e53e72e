package linkfile

import (
	"context"
	"errors"
	"io/fs"
	"path/filepath"
	"strings"

	"github.com/sf2loki/sf2loki-ha/cas"
	"github.com/sf2loki/sf2loki-ha/internal/bounded"
)

var _ cas.ScratchBucket = (*Bucket)(nil)

// Scratch implements cas.ScratchBucket: a directory beside the object. The
// directory itself stays: removing it could pull it away under another probe.
func (b *Bucket) Scratch(object string) cas.Scratch {
	return cas.NewScratch(b, object, func(ctx context.Context, name string) error {
		r := b.register(name)
		if err := r.usable("remove"); err != nil {
			return err
		}
		_, err := bounded.Call(ctx, func(context.Context) (struct{}, error) { return struct{}{}, r.removeAll() })
		return r.failed("remove", err)
	})
}

// removeAll deletes every file of the object, number 1 last: as long as it is
// there, nobody takes the object for one that never existed.
func (r *register) removeAll() error {
	dir, base := filepath.Split(r.path)
	names, err := r.sys.list(filepath.Clean(dir))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	for _, name := range names {
		suffix, ours := strings.CutPrefix(name, base)
		_, isSlot := number(suffix)
		if ours && suffix != ".1" && (suffix == "" || isSlot || isTemp(suffix)) {
			if err := r.sys.remove(filepath.Join(dir, name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return err
			}
		}
	}
	if err := r.sys.remove(r.slot(1)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}
