package cas

import (
	"context"
	"errors"
	"strings"
)

// scratchSuffix is what the name of an object is extended by to name its
// scratch area.
const scratchSuffix = ".probe/"

// MaxScratchName is how many bytes the names of an object's scratch area are
// longer than the object's own name, at most.
const MaxScratchName = 64

// ScratchPrefix is what the name of every object in the scratch area of object
// begins with: what a policy has to grant, and what a lifecycle rule may clean.
func ScratchPrefix(object string) string { return object + scratchSuffix }

// Scratch is the area beside one object in which objects may be removed. It
// exists for the probe: what the probe writes must not stay for ever.
//
// It is a type of its own so that nothing else can be removed. It reaches names
// below ScratchPrefix only, and there is no way from a Register to a delete: a
// lease or a checkpoint document stays as long as the store keeps it.
type Scratch interface {
	// Register returns the object of that name in the area. It sends no request.
	Register(name string) Register
	// Remove deletes the object of that name in the area, whatever its version.
	// An object that does not exist is removed already. A name is made of lower
	// case letters, digits and "-"; with any other, nothing is sent.
	Remove(ctx context.Context, name string) error
	// Describe names the area for people, without credentials.
	Describe() string
}

// ScratchBucket is a Bucket whose objects have scratch areas. Every backend of
// this module is one.
type ScratchBucket interface {
	Bucket
	// Scratch returns the area beside the object of that name. It sends no
	// request.
	Scratch(object string) Scratch
}

// NewScratch is for backends: the scratch area of object in b, in which remove
// deletes an object by its full name. Names that leave the area never reach it.
func NewScratch(b Bucket, object string, remove func(ctx context.Context, name string) error) Scratch {
	return &scratch{bucket: b, prefix: ScratchPrefix(object), remove: remove}
}

type scratch struct {
	bucket Bucket
	prefix string
	remove func(ctx context.Context, name string) error
}

func (s *scratch) Register(name string) Register { return s.bucket.Register(s.prefix + name) }

func (s *scratch) Describe() string { return s.bucket.Register(s.prefix).Describe() }

func (s *scratch) Remove(ctx context.Context, name string) error {
	// A store in front of a file system may resolve "..", so the area is left by
	// none of these characters.
	if name == "" || len(scratchSuffix)+len(name) > MaxScratchName || strings.Trim(name, "abcdefghijklmnopqrstuvwxyz0123456789-") != "" {
		return &Error{Class: Denied, Op: opRemove, Object: s.prefix + name,
			Err: errors.New("a name in a scratch area is made of lower case letters, digits and hyphens"), Hint: "choose another name"}
	}
	return s.remove(ctx, s.prefix+name)
}

// opRemove is the Op of errors of Scratch.Remove.
const opRemove = "remove"
