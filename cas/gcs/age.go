package gcs

import (
	"context"
	"sync"
	"time"

	"github.com/sf2loki/sf2loki-ha/cas"
)

var _ cas.AgedBucket = (*Bucket)(nil)

// Aged implements cas.AgedBucket.
func (b *Bucket) Aged(name string) cas.Register {
	return &register{bucket: b, name: name, dates: &dates{}}
}

// dates is when the generation that was seen last was written, by the service's
// clock.
type dates struct {
	mu         sync.Mutex
	generation int64
	written    time.Time
}

// age is the age of the generation that a download showed.
func (r *register) age(ctx context.Context, download *attempt, generation int64) time.Duration {
	date, modified := download.times()
	if modified.IsZero() && !date.IsZero() && r.dates != nil {
		modified = r.written(ctx, generation)
	}
	return cas.AgeOf(date, modified)
}

// written asks for the metadata of a generation that was not seen before. It
// returns zero if there is no answer, and asks again the next time.
func (r *register) written(ctx context.Context, generation int64) time.Time {
	d := r.dates
	d.mu.Lock()
	known, at := d.generation == generation, d.written
	d.mu.Unlock()
	if known {
		return at
	}
	// The download succeeded, and a second request must not cost the call that
	// answer: it gets half of the time that is left.
	if end, ok := ctx.Deadline(); ok {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, time.Until(end)/2)
		defer cancel()
	}
	ctx, _ = newAttempt(ctx)
	attrs, err := r.object().Attrs(ctx)
	if err != nil || attrs.Generation != generation {
		return time.Time{}
	}
	// Metadata that somebody patched makes it younger, as Last-Modified would.
	at = attrs.Created
	if attrs.Updated.After(at) {
		at = attrs.Updated
	}
	d.mu.Lock()
	d.generation, d.written = generation, at
	d.mu.Unlock()
	return at
}
