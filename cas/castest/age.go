package castest

import (
	"testing"
	"time"

	"github.com/sf2loki/sf2loki-ha/cas"
)

const (
	// apart is how far the clocks of one store's servers may be.
	apart = 5 * time.Second
	// second is how coarse HTTP shows a clock.
	second = time.Second
)

// aged loads r and returns its age and what has passed since begun, by our clock.
func aged(t *testing.T, r cas.Register, begun time.Time) (age, passed time.Duration) {
	t.Helper()
	v, err := r.Load(bounded(t))
	if err != nil {
		t.Fatalf("load: %v", err)
	}
	if v.Age < 0 {
		t.Fatalf("age %v is negative", v.Age)
	}
	return v.Age, time.Since(begun)
}

// An age that is too large ends a hold that somebody relies on.
func ageIsNotTooLarge(t *testing.T, s *suite) {
	r := s.register(t)
	begun := time.Now()
	v := mustCreate(t, r, doc("a"))
	for range 2 {
		var last time.Duration
		for range 5 {
			age, passed := aged(t, r, begun)
			if age > passed+apart {
				t.Fatalf("age %v, %v after the write began", age, passed)
			}
			if age < last-second {
				t.Fatalf("age %v, after %v for the same version", age, last)
			}
			last = age
		}
		begun = time.Now()
		v = mustReplace(t, r, doc("b"), v)
	}
	if age, passed := aged(t, r, begun); age > passed+apart {
		t.Fatalf("age %v, %v after the replace began", age, passed)
	}
}

func ageGrows(t *testing.T, s *suite) {
	key := s.fresh()
	r, other := s.bucket(t).Register(key), s.bucket(t).Register(key)
	begun := time.Now()
	v := mustCreate(t, r, doc("a"))
	written := time.Now()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for last := time.Duration(0); last < 2*second; <-tick.C {
		atLeast := time.Since(written) - 2*second // servers may show a Date of the last second
		age, passed := aged(t, other, begun)
		if age < last {
			t.Fatalf("age %v, after %v for the same version", age, last)
		}
		if age < atLeast || age > passed+second {
			t.Fatalf("age %v, %v after the write began", age, passed)
		}
		last = age
	}
	begun = time.Now()
	mustReplace(t, r, doc("b"), v)
	if age, passed := aged(t, other, begun); age > passed+second {
		t.Fatalf("age %v, %v after the replace began", age, passed)
	}
}
