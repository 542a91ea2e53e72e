package cas

import (
	"bytes"
	"context"
	"fmt"
	"sync"
)

// raceCreators lets concurrent writers create one absent object.
func (p *prober) raceCreators(ctx context.Context, o *probeObject) error {
	return p.race(ctx, o, "creators of one object", Value{}, func(ctx context.Context, r Register, data []byte) (Version, error) {
		return r.Create(ctx, data)
	})
}

// raceReplacers lets concurrent writers replace one version.
func (p *prober) raceReplacers(ctx context.Context, o *probeObject) error {
	first, err := p.createAbsent(ctx, o)
	if err != nil {
		return err
	}
	return p.race(ctx, o, "replacers of one version", first, func(ctx context.Context, r Register, data []byte) (Version, error) {
		return r.Replace(ctx, data, first.Version)
	})
}

// writer is one of those that race.
type writer struct {
	data    []byte
	version Version
	err     error
}

// race lets all writers send at once, one write each, on one condition. Only one
// of them can have been applied; more is a fault, however it comes to light.
func (p *prober) race(ctx context.Context, o *probeObject, whom string, before Value, send func(context.Context, Register, []byte) (Version, error)) error {
	if err := o.pace(ctx); err != nil {
		return err
	}
	var (
		writers [probeWriters]writer
		start   = make(chan struct{})
		wg      sync.WaitGroup
	)
	for i := range writers {
		w := &writers[i]
		w.data = o.document()
		wg.Go(func() {
			<-start
			w.version, w.err = o.write(ctx, i, func(ctx context.Context, r Register) (Version, error) { return send(ctx, r, w.data) })
		})
	}
	close(start)
	wg.Wait()
	got, err := o.load(ctx, 0)
	return judgeRace(writers[:], whom, before, got, err)
}

// judgeRace says what a race showed. got and readErr are a read after all of it.
func judgeRace(writers []writer, whom string, before, got Value, readErr error) error {
	// 1. Who was applied for certain? Those that were told so, and the one whose
	// bytes are there, whatever it was told.
	var (
		wins   []int
		shown  = -1
		open   error
		denied error
	)
	for i, w := range writers {
		switch ClassOf(w.err) {
		case "":
			wins = append(wins, i)
		case Conflict, Contended:
			// A refusal. Many stores answer 409 or 429 to the losers of a race; that
			// it may have been applied after all is what the read looks for.
		case Unsupported:
			denied = w.err
		default:
			open = w.err
		}
		if readErr == nil && bytes.Equal(got.Data, w.data) {
			shown = i
		}
	}
	applied := len(wins)
	if shown >= 0 && ClassOf(writers[shown].err) != "" {
		applied++
	}

	// 2. Two of one condition: no lost answer can make that up.
	switch {
	case applied > 1:
		return &storeFault{FaultRaced, fmt.Sprintf("%d of %d concurrent %s succeeded", applied, len(writers), whom), nil}
	case denied != nil:
		return notSupported(denied)
	// 3. A writer without an answer may have been applied before the winner, unseen.
	case open != nil:
		return open
	// 4. No winner: the refusals say that somebody was faster, and there was nobody.
	case len(wins) == 0:
		for _, w := range writers {
			if ClassOf(w.err) == Contended {
				return fmt.Errorf("of %d concurrent %s none succeeded: %w", len(writers), whom, w.err)
			}
		}
		return fmt.Errorf("of %d concurrent %s none succeeded (%v)", len(writers), whom, writers[0].err)
	}
	// 5. One winner, and it is what everybody reads.
	w := writers[wins[0]]
	return shows(got, readErr, Value{Data: w.data, Version: w.version}, before)
}
