package lasting

import "time"

// Repeat is how often an ongoing trouble is said again.
const Repeat = 5 * time.Minute

// Calm is how long nothing may fail for a trouble to be over: a store that
// answers every second request is one trouble, not fifty.
const Calm = 30 * time.Second

// Troubles remembers what was said. The zero value is ready for use.
type Troubles struct {
	now map[string]*trouble
}

type trouble struct {
	said map[string]time.Time // when each kind was said
	last time.Time            // the last failure
}

// News reports whether that kind of trouble with key has to be said at this
// time, and takes it as said if so.
func (t *Troubles) News(key, what string, at time.Time) bool {
	was := t.now[key]
	if was == nil {
		if t.now == nil {
			t.now = map[string]*trouble{}
		}
		was = &trouble{said: map[string]time.Time{}}
		t.now[key] = was
	}
	was.last = at
	if said, ok := was.said[what]; ok && at.Sub(said) < Repeat {
		return false
	}
	was.said[what] = at
	return true
}

// Over forgets the trouble with key and reports whether there was one.
func (t *Troubles) Over(key string) bool {
	_, was := t.now[key]
	delete(t.now, key)
	return was
}

// Calmed is Over for a single good answer at this time: the trouble is forgotten
// only if it has been calm.
func (t *Troubles) Calmed(key string, at time.Time) bool {
	was := t.now[key]
	return was != nil && at.Sub(was.last) >= Calm && t.Over(key)
}
