package canary

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/sf2loki/sf2loki-ha/checkpoint"
	"github.com/sf2loki/sf2loki-ha/internal/socketapi"
)

// keeper remembers the progress between two processes.
type keeper interface {
	// load returns what the predecessor left.
	load(ctx context.Context) (progress, error)
	// save stores p as a whole.
	save(ctx context.Context, p progress) error
}

func newKeeper(o Options) keeper {
	switch {
	case o.Socket != "":
		return &socketKeeper{client: socketapi.NewClient(o.Socket, o.Term.Epoch())}
	case o.Checkpoint != nil:
		return &documentKeeper{
			store: checkpoint.Open(o.Checkpoint, checkpoint.WithLease(o.Lease, o.TTL), checkpoint.WithMinWriteInterval(o.MinWriteInterval)),
			term:  o.Term,
		}
	case o.PositionFile != "":
		return &fileKeeper{path: o.PositionFile}
	}
	return nil
}

// documentKeeper keeps the progress in the fenced document.
type documentKeeper struct {
	store   *checkpoint.Store
	term    checkpoint.Term
	session *checkpoint.Session
}

// load joins the term that the supervisor sealed. A document that nobody sealed
// for this term is sealed here: it is the canary's own.
func (k *documentKeeper) load(ctx context.Context) (progress, error) {
	s, err := k.store.Join(ctx, k.term)
	if errors.Is(err, checkpoint.ErrNotSealed) {
		s, err = k.store.Seal(ctx, k.term)
	}
	if err != nil {
		return progress{}, err
	}
	k.session = s
	p, err := readProgress(s.Get)
	if err != nil {
		return progress{}, fmt.Errorf("%s: %w", k.store.Describe(), err)
	}
	return p, nil
}

func (k *documentKeeper) save(ctx context.Context, p progress) error {
	values, err := p.values()
	if err != nil {
		return err
	}
	return k.session.Commit(ctx, values)
}

// socketKeeper lets the supervisor keep the progress in the fenced document.
type socketKeeper struct{ client *socketapi.Client }

func (k *socketKeeper) load(ctx context.Context) (progress, error) {
	all, err := k.client.All(ctx)
	if err != nil {
		return progress{}, err
	}
	return readProgress(func(key string) (string, bool) { v, ok := all[key]; return v, ok })
}

func (k *socketKeeper) save(ctx context.Context, p progress) error {
	values, err := p.values()
	if err != nil {
		return err
	}
	return k.client.Store(ctx, values)
}

// fileKeeper keeps the progress in a local file of the same form. It is not
// fenced, and nothing keeps two processes from using one file.
type fileKeeper struct{ path string }

func (k *fileKeeper) load(context.Context) (progress, error) {
	data, err := os.ReadFile(k.path)
	if errors.Is(err, fs.ErrNotExist) {
		return progress{}, nil
	}
	if err != nil {
		return progress{}, fmt.Errorf("position file: %w", err)
	}
	doc, err := checkpoint.ParseDocument(data)
	if err != nil {
		return progress{}, fmt.Errorf("position file %s: %w; it was left untouched: restore it, or move it aside to begin at record 1", k.path, err)
	}
	p, err := readProgress(doc.Get)
	if err != nil {
		return progress{}, fmt.Errorf("position file %s: %w", k.path, err)
	}
	return p, nil
}

// save replaces the file as a whole and waits for the disk: after a power cut
// there is the old content or the new one.
func (k *fileKeeper) save(_ context.Context, p progress) error {
	values, err := p.values()
	if err != nil {
		return err
	}
	var doc checkpoint.Document
	doc.Set(KeyPosition, values[KeyPosition])
	doc.Set(KeyIntent, values[KeyIntent])
	if err := replaceFile(k.path, doc.Encode()); err != nil {
		return fmt.Errorf("position file: %w", err)
	}
	return nil
}

func replaceFile(path string, data []byte) (err error) {
	dir := filepath.Dir(path)
	tmp, err := os.CreateTemp(dir, filepath.Base(path)+".*.tmp")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = tmp.Close()
			_ = os.Remove(tmp.Name())
		}
	}()
	if _, err := tmp.Write(data); err != nil {
		return err
	}
	if err := tmp.Sync(); err != nil {
		return err
	}
	if err := tmp.Close(); err != nil {
		return err
	}
	if err := os.Rename(tmp.Name(), path); err != nil {
		return err
	}
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
