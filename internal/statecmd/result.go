package statecmd

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"

	"github.com/sf2loki/sf2loki-ha/checkpoint"
)

// Result is what a verb that writes prints with --json: one object, whose fields
// stay.
type Result struct {
	// Action is the verb, Object the document, From the source of a copy.
	Action string `json:"action"`
	Object string `json:"object"`
	From   string `json:"from,omitempty"`
	// DryRun: nothing was written. Changed and the numbers say what would be.
	DryRun bool `json:"dry_run"`
	// Changed is false if everything was there already: nothing was written.
	Changed bool `json:"changed"`
	// Checkpoints is how many the document has now; the others say how many of
	// them are new, have another value, and how many went.
	Checkpoints int `json:"checkpoints"`
	Added       int `json:"added"`
	Updated     int `json:"updated"`
	Removed     int `json:"removed"`
	// Fence is what repair-fence and adopt wrote.
	Fence *FenceText `json:"fence,omitempty"`
	// Waits is why a dry run would have waited.
	Waits string `json:"waits,omitempty"`
	// Warnings were printed to standard error as well.
	Warnings []string `json:"warnings"`

	what string
}

// FenceText is a fence in JSON.
type FenceText struct {
	Epoch     int64  `json:"epoch"`
	Term      string `json:"term"`
	Lease     string `json:"lease"`
	TTLMillis int64  `json:"ttl_ms"`
}

func fenceText(f checkpoint.Fence) *FenceText {
	return &FenceText{Epoch: f.Epoch, Term: f.Term, Lease: f.Lease, TTLMillis: f.TTL.Milliseconds()}
}

// compare counts what is different.
func (r *Result) compare(was, is *checkpoint.Document) {
	r.Added, r.Updated, r.Removed = 0, 0, 0
	for _, key := range userKeys(is) {
		now, _ := is.Get(key)
		switch before, ok := was.Get(key); {
		case !ok:
			r.Added++
		case before != now:
			r.Updated++
		}
	}
	for _, key := range userKeys(was) {
		if _, ok := is.Get(key); !ok {
			r.Removed++
		}
	}
	r.Checkpoints = len(userKeys(is))
	// Another order alone is a difference too: the bytes differ.
	r.Changed = r.Added+r.Updated+r.Removed > 0 || !slices.Equal(userKeys(was), userKeys(is))
}

// tell prints the result.
func (c *Command) tell(r Result) error {
	r.DryRun = c.Flags.DryRun
	if r.Waits != "" {
		c.note("would wait: %s", r.Waits)
	}
	if c.JSON {
		r.Warnings = append([]string{}, c.warnings...)
		return printJSON(c.Out, r)
	}
	_, err := fmt.Fprintf(c.Out, "sf2loki: %s\n", r.sentence())
	return err
}

func (r Result) sentence() string {
	done := func(past, verb string) string {
		if r.DryRun {
			return "would " + verb
		}
		return past
	}
	switch r.Action {
	case "set":
		return done("set", "set") + " " + r.what
	case "delete":
		text := done("deleted", "delete") + " " + r.what
		if r.Removed == 0 {
			text += " (it was not there)"
		}
		return text
	case "import":
		return fmt.Sprintf("%s %s into %s: %d added, %d updated, %d removed, %d checkpoint(s) now", done("imported", "import"), printable(r.what), r.Object, r.Added, r.Updated, r.Removed, r.Checkpoints)
	case "copy":
		return fmt.Sprintf("%s %d checkpoint(s) from %s to %s", done("copied", "copy"), r.Checkpoints, r.From, r.Object)
	}
	if !r.Changed {
		return r.what
	}
	return fmt.Sprintf("%s of %s: epoch %d, lease %s%s", done("wrote the fence", "write the fence"), r.Object, r.Fence.Epoch, orNone(r.Fence.Lease), r.what)
}

// printJSON prints one line. HTML is none of its readers.
func printJSON(out io.Writer, v any) error {
	enc := json.NewEncoder(out)
	enc.SetEscapeHTML(false)
	return enc.Encode(v)
}
