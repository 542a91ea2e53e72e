package cas

import (
	"context"
	"time"
)

// MaxSize is the largest object, in bytes, that a Load accepts. A lease is
// about 4 KiB and a large checkpoint document about 1 MiB; anything beyond
// 16 MiB is not one of ours, and reading it would stall the election.
const MaxSize = 16 << 20

// Version is the store's opaque name for one state of an object: an S3 ETag, a
// GCS generation, a file's identity. It comes from a Load or a write and is
// only ever compared for equality and handed back. It is never empty for an
// object that exists.
type Version string

// Value is the content of an object together with the version that had it.
// Both come from one answer of the store.
type Value struct {
	Data    []byte
	Version Version
	// Age is how long ago the store wrote this state, by the store's clock alone
	// and as coarse as that clock is shown: a second in HTTP. It is 0 if the store
	// does not say. Too small is the safe side: a hold whose age is not known
	// lasts longer, never shorter. For that reason a reader that has seen the same
	// version before goes by its own clock since then if that says more.
	Age time.Duration
}

// Register is one object in a store, reached only by conditional requests.
// Implementations are safe for concurrent use. Every method honours its
// context and returns an [*Error].
type Register interface {
	// Load reads the object. An object that definitely does not exist is an
	// error of class NotFound; nothing else is. A Load of an object larger than
	// MaxSize is Corrupt; its Value has the version and no data, so that such an
	// object can be replaced.
	Load(ctx context.Context) (Value, error)

	// Create writes the object only if it does not exist. An object that
	// exists is an error of class Conflict.
	Create(ctx context.Context, data []byte) (Version, error)

	// Replace writes the object only if its version still is old. Another
	// version, or an object that has vanished, is an error of class Conflict.
	Replace(ctx context.Context, data []byte, old Version) (Version, error)

	// Describe names the object for people, without credentials: a URL such
	// as s3://bucket/key, or a path.
	Describe() string
}

// Bucket opens registers that share one client. Close releases the client;
// registers of a closed bucket fail.
type Bucket interface {
	// Register returns the object of that name. It sends no request.
	Register(name string) Register
	// Close releases connections and background work of the client.
	Close() error
}
