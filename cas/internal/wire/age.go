package wire

import (
	"net/http"
	"time"
)

const lastModified = "Last-Modified"

// TakeTimes returns the server's clock and when it wrote the object that its
// answer shows: Date and Last-Modified, of which cas.AgeOf makes an age. A time
// the answer does not say is zero. Last-Modified is taken out of the headers: both
// client libraries fail a good answer whose Last-Modified they cannot read, and an
// age is no reason to lose a lease.
func TakeTimes(h http.Header) (date, modified time.Time) {
	date, modified = timeIn(h, "Date"), timeIn(h, lastModified)
	h.Del(lastModified)
	return date, modified
}

// timeIn reads a header that is there once and in HTTP's own form. The older forms
// are not read: one of them has two digits for the year and a zone that Go takes
// for UTC if it does not know it, which would make an object hours too old.
func timeIn(h http.Header, name string) time.Time {
	if v := h.Values(name); len(v) == 1 {
		if t, err := time.Parse(http.TimeFormat, v[0]); err == nil {
			return t
		}
	}
	return time.Time{}
}
