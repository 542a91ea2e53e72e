package statecmd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/sf2loki/sf2loki-ha/cas"
	"github.com/sf2loki/sf2loki-ha/checkpoint"
	"github.com/sf2loki/sf2loki-ha/internal/config"
)

// Command carries out one verb. Use it once.
type Command struct {
	Config *config.Config
	Flags  Flags
	// JSON prints one JSON object in place of text.
	JSON bool
	// Out gets the result, Err notes and warnings.
	Out, Err io.Writer

	warnings []string
	waited   bool
}

// note tells the user something beside the result.
func (c *Command) note(format string, args ...any) {
	fmt.Fprintf(c.Err, "sf2loki-ha: "+format+"\n", args...)
}

// warn is a note that is also part of the result.
func (c *Command) warn(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	c.warnings = append(c.warnings, text)
	c.note("warning: %s", text)
}

// Set stores one value, as it is given.
func (c *Command) Set(ctx context.Context, key, value string) error {
	if err := notReserved(key); err != nil {
		return err
	}
	if problem := shapeProblem(key, value); problem != "" {
		c.warn("%s: %s", printable(key), problem)
	}
	return c.edit(ctx, "set", fmt.Sprintf("%s = %s", printable(key), printable(value)), func(doc *checkpoint.Document) error {
		doc.Set(key, value)
		return nil
	})
}

// Delete removes one key. One that is not there is removed already.
func (c *Command) Delete(ctx context.Context, key string) error {
	if err := notReserved(key); err != nil {
		return err
	}
	return c.edit(ctx, "delete", printable(key), func(doc *checkpoint.Document) error {
		doc.Delete(key)
		return nil
	})
}

// Import stores the keys of a file. With replace the user's keys that are not in
// it go; ifEmpty refuses a document that has any.
func (c *Command) Import(ctx context.Context, name string, in io.Reader, replace, ifEmpty bool) error {
	data, err := io.ReadAll(io.LimitReader(in, cas.MaxSize+1))
	if err != nil {
		return fmt.Errorf("read %s: %w", name, err)
	}
	if len(data) > cas.MaxSize {
		return fmt.Errorf("%s has more than the %d bytes that a document can have: %w; nothing was written: import a part of it", name, cas.MaxSize, checkpoint.ErrTooLarge)
	}
	given, err := checkpoint.ParseDocument(data)
	if err != nil {
		return fmt.Errorf("%s is not a document of checkpoints: %w; nothing was written: it has to be one JSON object of strings, as \"state export\" writes it", name, err)
	}
	for _, key := range given.Keys() {
		if err := notReserved(key); err != nil {
			return fmt.Errorf("%s: %w; \"state export\" leaves such keys out: remove them", name, err)
		}
	}
	c.warnShapes(given)
	return c.edit(ctx, "import", name, func(doc *checkpoint.Document) error {
		if n := len(userKeys(doc)); ifEmpty && n > 0 {
			return fmt.Errorf("it has %d checkpoint(s), and --if-empty was given; nothing was written", n)
		}
		if replace {
			replaceUserKeys(doc, given)
			return nil
		}
		for _, key := range given.Keys() {
			value, _ := given.Get(key)
			doc.Set(key, value)
		}
		return nil
	})
}

// Copy stores the user's keys of one document in another one. One that has any
// is refused unless replace or Flags.Force is set.
func (c *Command) Copy(ctx context.Context, from, to Place, fromAccess, toAccess Access, replace bool) (err error) {
	for p, a := range map[Place]Access{from: fromAccess, to: toAccess} {
		if p.Scheme == schemeFile && a != (Access{}) {
			return usage("%s is a file: an endpoint, a region or credentials mean nothing for it", p)
		}
	}
	if same(from, from.access(c.Config, fromAccess), to, to.access(c.Config, toAccess)) {
		return usage("%s and %s are the same object", from, to)
	}
	source, err := openPlace(ctx, c.Config, from, fromAccess)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, source.Close()) }()
	if err := source.readable(ctx, c.Flags); err != nil {
		return err
	}
	snap, err := c.read(ctx, source)
	if err != nil {
		return err
	}
	if !snap.Found {
		return fmt.Errorf("%s does not exist: nothing was copied; check the name", source.object)
	}
	target, err := openPlace(ctx, c.Config, to, toAccess)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, target.Close()) }()
	result := Result{Action: "copy", Object: target.object, From: source.object}
	return c.editIn(ctx, target, result, func(doc *checkpoint.Document) error {
		if n := len(userKeys(doc)); n > 0 && !replace && !c.Flags.Force {
			return fmt.Errorf("it has %d checkpoint(s) already, nothing was written; --replace puts those of %s in their place", n, source.object)
		}
		replaceUserKeys(doc, snap.Document)
		return nil
	})
}

// edit changes the configured document.
func (c *Command) edit(ctx context.Context, verb, what string, change func(*checkpoint.Document) error) (err error) {
	d, err := openConfigured(ctx, c.Config)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.Close()) }()
	return c.editIn(ctx, d, Result{Action: verb, Object: d.object, what: what}, change)
}

// editIn changes the user's keys of one document and tells the result.
func (c *Command) editIn(ctx context.Context, d *document, result Result, edit func(*checkpoint.Document) error) error {
	out, err := c.apply(ctx, d, change{
		check: func(snap checkpoint.Snapshot, _ []Sight) (bool, error) {
			next, _, err := snap.Edited(edit)
			if err != nil {
				return false, fmt.Errorf("%s: %w", d.object, err)
			}
			result.compare(snap.Document, next)
			return false, nil
		},
		write: func(ctx context.Context, snap checkpoint.Snapshot) (bool, error) {
			return d.store.Edit(ctx, snap, edit)
		},
	})
	if err != nil {
		return err
	}
	result.Waits = out.waits
	return c.tell(result)
}

// read returns a document that is sound.
func (c *Command) read(ctx context.Context, d *document) (checkpoint.Snapshot, error) {
	snap, err := d.store.Snapshot(ctx)
	if err == nil {
		err = snap.Damage
	}
	return snap, err
}

func notReserved(key string) error {
	if !checkpoint.Reserved(key) {
		return nil
	}
	return fmt.Errorf("key %q is reserved: it belongs to the fence, which keeps stale leaders out, and is changed by \"sf2loki-ha state repair-fence\" alone, --force or not: %w", key, checkpoint.ErrReserved)
}

// userKeys are the keys that are not the fence's, in the order of the document.
func userKeys(doc *checkpoint.Document) []string {
	return slices.DeleteFunc(doc.Keys(), checkpoint.Reserved)
}

// replaceUserKeys puts the user's keys of from in place of those of doc, in the
// order of from; the fence stays.
func replaceUserKeys(doc, from *checkpoint.Document) {
	var next checkpoint.Document
	move := func(keys []string, of *checkpoint.Document) {
		for _, key := range keys {
			value, _ := of.Get(key)
			next.Set(key, value)
		}
	}
	move(slices.DeleteFunc(doc.Keys(), func(key string) bool { return !checkpoint.Reserved(key) }), doc)
	move(userKeys(from), from)
	*doc = next
}

// warnShapes warns of the first values that sf2loki would not understand.
func (c *Command) warnShapes(doc *checkpoint.Document) {
	const most = 5
	found := 0
	for _, key := range doc.Keys() {
		value, _ := doc.Get(key)
		if problem := shapeProblem(key, value); problem != "" {
			if found++; found <= most {
				c.warn("%s: %s", printable(key), problem)
			}
		}
	}
	if found > most {
		c.warn("%d more values do not have the shape that sf2loki stores", found-most)
	}
}

// printable is text that leaves a terminal and the lines of an output alone: as it
// is, or quoted if it has a character that cannot be printed.
func printable(text string) string {
	if strings.ContainsFunc(text, unprintable) {
		return fmt.Sprintf("%+q", text)
	}
	return text
}
