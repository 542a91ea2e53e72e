package cas

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
)

// The checks, in the order in which they are reported. The order is also which
// fault is named first: what explains the others comes before them.
const (
	checkCreate = iota
	checkRead
	checkReplace
	checkVersions
	checkCreateExisting
	checkReplaceStale
	checkReplaceAbsent
	checkReplaceMadeUp
	checkCreateRace
	checkReplaceRace
)

var probeChecks = []string{
	checkCreate:         "an absent object can be created",
	checkRead:           "other connections read what was written",
	checkReplace:        "the current version can be replaced",
	checkVersions:       "every write has a version of its own",
	checkCreateExisting: "creating an object that exists is refused",
	checkReplaceStale:   "replacing a stale version is refused",
	checkReplaceAbsent:  "replacing an absent object is refused",
	checkReplaceMadeUp:  "replacing a version that never was is refused",
	checkCreateRace:     "of concurrent creators one wins",
	checkReplaceRace:    "of concurrent replacers one wins",
}

var (
	errNoProbeVersion = errors.New("success without a version")
	errFreshRefused   = errors.New("creating an object under a name that nobody else can know was refused")
	errAppliedRefused = errors.New("a write whose condition was true was refused, and is there: something between here and the store repeats requests")
	errWeakRefused    = errors.New("the version that a write returned is refused, the one that a read shows is accepted: something between here and the store rewrites versions")
	errOtherVersion   = errors.New("a read shows the write with another version than the write returned")
	errStaleRead      = errors.New("a read after a confirmed write shows what was there before; the store, or a cache in front of it, is not consistent (a bucket in one region is)")
	errChanged        = errors.New("the object is not what the probe wrote; somebody else changed or removed it meanwhile")
)

// createAbsent makes a legal create.
func (p *prober) createAbsent(ctx context.Context, o *probeObject) (Value, error) {
	data := o.document()
	v, err := o.create(ctx, 0, data)
	switch ClassOf(err) {
	case Unsupported:
		err = notSupported(err)
	case Conflict:
		err = fmt.Errorf("%w (%v)", errFreshRefused, err)
	}
	return Value{Data: data, Version: v}, err
}

// readByOthers reads through every other client at once, which also opens their
// connections before the races need them.
func (p *prober) readByOthers(ctx context.Context, o *probeObject, want Value) error {
	errs := make([]error, len(p.clients))
	var wg sync.WaitGroup
	for i := 1; i < len(p.clients); i++ {
		wg.Go(func() {
			got, err := o.load(ctx, i)
			errs[i] = shows(got, err, want, Value{})
		})
	}
	wg.Wait()
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// shows judges a read after a confirmed write. None of its errors is a store's
// fault for good: two leaders need a write that is accepted, not a read.
func shows(got Value, err error, want, before Value) error {
	switch {
	case ClassOf(err) == NotFound:
		return fmt.Errorf("%w (%v)", errChanged, err)
	case err != nil:
		return err
	case bytes.Equal(got.Data, want.Data) && got.Version == want.Version:
		return nil
	case bytes.Equal(got.Data, want.Data):
		return errOtherVersion
	case before.Data != nil && bytes.Equal(got.Data, before.Data):
		return errStaleRead
	}
	return errChanged
}

// replaceTwice makes a legal replace, and then one on the version it replaced.
func (p *prober) replaceTwice(ctx context.Context, o *probeObject, first Value) {
	second, err := p.replaceCurrent(ctx, o, first)
	p.result(checkReplace, err)
	if err != nil {
		return
	}
	if second.Version == first.Version {
		// A claim on the version of a former write would be accepted.
		p.result(checkVersions, &storeFault{FaultSameVersion, fmt.Sprintf("two writes of different bytes both have version %q", first.Version), nil})
		return
	}
	p.result(checkVersions, nil)
	p.result(checkReplaceStale, p.illegal(ctx, o, second, "a replace on a stale version", func(data []byte) (Version, error) {
		return o.replace(ctx, 2, data, first.Version)
	}))
}

// replaceCurrent makes a legal replace and reads it through another client.
func (p *prober) replaceCurrent(ctx context.Context, o *probeObject, first Value) (Value, error) {
	data := o.document()
	v, err := o.replace(ctx, 1, data, first.Version)
	second := Value{Data: data, Version: v}
	switch ClassOf(err) {
	case "":
		got, err := o.load(ctx, 2)
		return second, shows(got, err, second, first)
	case Unsupported:
		return second, notSupported(err)
	case Conflict:
		return second, p.whyRefused(ctx, o, first, second)
	}
	return second, err
}

// whyRefused finds out why a store refused a write whose condition was true.
// Only what is read decides: a refusal alone may be the echo of a write that
// something on the way sent twice.
func (p *prober) whyRefused(ctx context.Context, o *probeObject, first, second Value) error {
	// 1. What is there?
	now, err := o.load(ctx, 2)
	switch {
	case err != nil:
		return err
	case bytes.Equal(now.Data, second.Data):
		return errAppliedRefused
	case !bytes.Equal(now.Data, first.Data):
		return errChanged
	}
	// 2. The same object, untouched. Once more, with the version just read.
	data := o.document()
	_, err = o.replace(ctx, 1, data, now.Version)
	switch ClassOf(err) {
	case "":
		if now.Version == first.Version {
			return errChanged // refused once, accepted once: not a rule of this store
		}
		return errWeakRefused
	case Unsupported:
		return notSupported(err)
	case Conflict:
	default:
		return err
	}
	// 3. Refused twice, and still untouched: nothing can be renewed here.
	again, err := o.load(ctx, 2)
	switch {
	case err != nil:
		return err
	case bytes.Equal(again.Data, data):
		return errAppliedRefused
	case !bytes.Equal(again.Data, first.Data) || again.Version != now.Version:
		return errChanged
	}
	return &storeFault{FaultNeverMatches, fmt.Sprintf("the object stands unchanged at version %s, and a replace on it is refused", now.Version), nil}
}

func (p *prober) createExisting(ctx context.Context, o *probeObject) error {
	first, err := p.createAbsent(ctx, o)
	if err != nil {
		return err
	}
	return p.illegal(ctx, o, first, "a create of an object that exists", func(data []byte) (Version, error) {
		return o.create(ctx, 1, data)
	})
}

func (p *prober) replaceMadeUp(ctx context.Context, o *probeObject) error {
	first, err := p.createAbsent(ctx, o)
	if err != nil {
		return err
	}
	if err := p.illegal(ctx, o, first, "a replace on a version that never was", func(data []byte) (Version, error) {
		return o.replace(ctx, 1, data, madeUp(first.Version))
	}); err != nil {
		return err
	}
	// No store sees this one: a backend must not send what has no condition.
	_, err = o.regs[1].Replace(ctx, o.document(), "")
	switch ClassOf(err) {
	case "":
		return notEnforced("a replace without a version")
	case Conflict:
		return nil
	}
	return err
}

// madeUp is a version in the form of v that the object never had.
func madeUp(v Version) Version {
	const hexDigits = "0123456789abcdef"
	at := strings.LastIndexAny(string(v), hexDigits)
	if at < 0 {
		return v + "0"
	}
	// Digits stay digits, and never become 0, so that a number stays a number of
	// the same length and a hash a hash.
	b := []byte(v)
	switch c := b[at]; {
	case c == '9' || c == '0':
		b[at] = '1'
	case c == 'f':
		b[at] = 'a'
	default:
		b[at] = c + 1
	}
	return Version(b)
}

func (p *prober) replaceAbsent(ctx context.Context, o *probeObject, other Version) error {
	_, err := o.replace(ctx, 0, o.document(), other)
	switch ClassOf(err) {
	case "":
		return notEnforced("a replace of an object that does not exist")
	case Conflict: // 404 or 412: stores differ, and both are refusals
		return nil
	case Unsupported:
		return notSupported(err)
	}
	return err
}

// illegal makes a write whose condition is false and judges by the answer and by
// what is there afterwards: a write that is there was accepted, whatever was
// answered, and one without an answer that is not there may come yet.
func (p *prober) illegal(ctx context.Context, o *probeObject, before Value, what string, write func([]byte) (Version, error)) error {
	data := o.document()
	_, answer := write(data)
	switch ClassOf(answer) {
	case "":
		return notEnforced(what)
	case Unsupported:
		return notSupported(answer)
	}
	got, err := o.load(ctx, 3)
	switch {
	case err == nil && bytes.Equal(got.Data, data):
		return notEnforced(what + " (answered with an error)")
	case ClassOf(answer) != Conflict:
		return answer
	case err != nil:
		return err
	case !bytes.Equal(got.Data, before.Data):
		return errChanged
	}
	return nil
}
