package statecmd

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Shown is what "state show --json" prints: one object, whose fields stay.
type Shown struct {
	// Object is the document; Found is false if it does not exist.
	Object string `json:"object"`
	Found  bool   `json:"found"`
	// Fence is who sealed it, or null.
	Fence *FenceText `json:"fence"`
	// Count is how many checkpoints match.
	Count       int               `json:"count"`
	Checkpoints map[string]string `json:"checkpoints"`
}

// Show prints the checkpoints whose key matches.
func (c *Command) Show(ctx context.Context, pattern string) (err error) {
	d, err := openConfigured(ctx, c.Config)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.Close()) }()
	if err := d.readable(ctx, c.Flags); err != nil {
		return err
	}
	snap, err := c.read(ctx, d)
	if err != nil {
		return err
	}
	shown := Shown{Object: d.object, Found: snap.Found, Checkpoints: map[string]string{}}
	if snap.Fence.Epoch > 0 || snap.Fence.Term != "" {
		shown.Fence = fenceText(snap.Fence)
	}
	keys := slices.DeleteFunc(userKeys(snap.Document), func(key string) bool { return !glob(pattern, key) })
	slices.Sort(keys)
	for _, key := range keys {
		shown.Checkpoints[key], _ = snap.Document.Get(key)
	}
	shown.Count = len(keys)
	if c.JSON {
		return printJSON(c.Out, shown)
	}
	var b strings.Builder
	for _, key := range keys {
		fmt.Fprintf(&b, "%s\t%s\n", printable(key), printable(shown.Checkpoints[key]))
	}
	switch {
	case len(keys) == 0:
		b.WriteString("(no checkpoints match)\n")
	case pattern == "*":
		fmt.Fprintf(&b, "\n%d checkpoint(s)\n", len(keys))
	default:
		fmt.Fprintf(&b, "\n%d checkpoint(s) matching '%s'\n", len(keys), printable(pattern))
	}
	_, err = fmt.Fprint(c.Out, b.String())
	return err
}

// Export prints the user's keys as one JSON object and nothing else, as sf2loki
// stores them. A document that does not exist is an error: an empty backup that
// nobody notices is worse than none.
func (c *Command) Export(ctx context.Context) (err error) {
	d, err := openConfigured(ctx, c.Config)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.Close()) }()
	if err := d.readable(ctx, c.Flags); err != nil {
		return err
	}
	snap, err := c.read(ctx, d)
	if err != nil {
		return err
	}
	if !snap.Found {
		return fmt.Errorf("%s does not exist: there is nothing to export; check the configuration", d.object)
	}
	doc := snap.Document.Clone()
	for _, key := range doc.Keys() {
		if notReserved(key) != nil {
			doc.Delete(key)
		}
	}
	_, err = fmt.Fprintf(c.Out, "%s\n", doc.Encode())
	return err
}
