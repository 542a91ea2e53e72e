package sim

import (
	"bytes"
	"fmt"
	"slices"
	"time"

	"github.com/sf2loki/sf2loki-ha/cas"
	"github.com/sf2loki/sf2loki-ha/checkpoint"
	"github.com/sf2loki/sf2loki-ha/coordinator"
)

// object is one state of an object.
type object struct {
	exists  bool
	version cas.Version
	data    []byte
	written int64 // real time
	byHand  bool  // by somebody who is no replica

	// What the bytes are, for the judges.
	rec     coordinator.Record // of a lease
	corrupt error
	fence   checkpoint.Fence // of the document
	done    int64            // how far the work has come, by the document
}

// register is a conditional object that applies one request at a time.
type register struct {
	name string
	now  object
	past []object
	n    int
	took int64 // when it last took a write
	// digests: equal bytes have an equal version.
	digests bool
}

// bucket has the objects of a history: a lease for each group, its request object,
// and the checkpoint document.
type bucket struct {
	registers map[string]*register
	digests   bool
}

func (b *bucket) open(name string) *register {
	r := b.registers[name]
	if r == nil {
		r = &register{name: name, took: -int64(time.Hour), digests: b.digests}
		b.registers[name] = r
	}
	return r
}

// put makes o the state of the object. Versions are used once, as those of GCS
// are; or they are a digest of the bytes, as those of S3: whoever puts old bytes
// back brings their version back.
func (r *register) put(now int64, o object) {
	r.n++
	if o.exists {
		o.version, o.written = cas.Version(fmt.Sprint("v", r.n)), now
		if r.digests {
			if i := slices.IndexFunc(r.past, func(p object) bool { return p.exists && bytes.Equal(p.data, o.data) }); i >= 0 {
				o.version = r.past[i].version
			}
		}
	}
	r.past = append(r.past, o)
	r.now = o
	r.took = now
}

// condition is what a write depends on: a version, or "" for absence.
type condition cas.Version

// holds reports whether a write on c is accepted.
func (r *register) holds(c condition) bool {
	if c == "" {
		return !r.now.exists
	}
	return r.now.exists && condition(r.now.version) == c
}

// load answers a read.
func (r *register) load(now int64) answer {
	if !r.now.exists {
		return answer{at: now, err: &cas.Error{Class: cas.NotFound, Op: "load", Object: r.name}}
	}
	return answer{at: now, object: r.now, value: cas.Value{Data: r.now.data, Version: r.now.version, Age: time.Duration(now - r.now.written)}}
}
