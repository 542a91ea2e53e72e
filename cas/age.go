package cas

import "time"

// maxAge is the largest age there is: more than any request or lease is good for,
// and so little that an age plus what has passed since is still a duration.
const maxAge = 10 * 365 * 24 * time.Hour

// AgeOf is how long before date the time modified was, both read off one clock: a
// store's Date and Last-Modified. It is 0 if one of them is missing or 1970, which
// is what a store says that does not know, or if modified is the later one; and it
// is never more than ten years.
func AgeOf(date, modified time.Time) time.Duration {
	if date.Unix() <= 0 || modified.Unix() <= 0 {
		return 0
	}
	return min(max(0, date.Sub(modified)), maxAge)
}

// AgedBucket is a bucket whose registers leave Value.Age out where it costs a
// request of its own, unless they are asked for it.
type AgedBucket interface {
	Bucket
	// Aged is Register, except that a Load may send one more request to find out
	// the age. It sends no request itself.
	Aged(name string) Register
}

// Aged returns the register of that name, whose Loads say the age if the store
// can be brought to say it. It is meant for objects whose age matters and that
// change rarely; everything else is opened by Bucket.Register.
func Aged(b Bucket, name string) Register {
	if a, ok := b.(AgedBucket); ok {
		return a.Aged(name)
	}
	return b.Register(name)
}
