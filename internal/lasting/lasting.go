package lasting

import "time"

// Repeat is how often an ongoing trouble is said again.
const Repeat = 5 * time.Minute

// Troubles remembers what was said. The zero value is ready for use.
type Troubles struct {
	said map[string]trouble
}

type trouble struct {
	what string
	at   time.Time
}

// News reports whether that kind of trouble with key has to be said at this
// time, and takes it as said if so.
func (t *Troubles) News(key, what string, at time.Time) bool {
	if was, ok := t.said[key]; ok && was.what == what && at.Sub(was.at) < Repeat {
		return false
	}
	if t.said == nil {
		t.said = map[string]trouble{}
	}
	t.said[key] = trouble{what, at}
	return true
}

// Over forgets the trouble with key. It returns what was said last, and whether
// there was anything.
func (t *Troubles) Over(key string) (what string, was bool) {
	last, was := t.said[key]
	delete(t.said, key)
	return last.what, was
}
