package mem_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/sf2loki/sf2loki-ha/cas"
	"github.com/sf2loki/sf2loki-ha/cas/mem"
)

func TestTheAgeIsExactlyWhatPassedSinceTheWrite(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := mem.New().Open().Register("x")
		v, err := r.Create(t.Context(), []byte("a"))
		if err != nil {
			t.Fatal(err)
		}
		age := func(want time.Duration) {
			t.Helper()
			if got, err := r.Load(t.Context()); err != nil || got.Age != want {
				t.Errorf("age %v, %v; want %v", got.Age, err, want)
			}
		}
		age(0)
		<-time.After(90*time.Second + 1)
		age(90*time.Second + 1)
		age(90*time.Second + 1)
		if v, err = r.Replace(t.Context(), []byte("b"), v); err != nil {
			t.Fatal(err)
		}
		age(0)
		<-time.After(time.Hour)
		if _, err := r.Replace(t.Context(), []byte("c"), v+"x"); cas.ClassOf(err) != cas.Conflict {
			t.Fatal(err)
		}
		age(time.Hour) // a write that is refused makes nothing younger
	})
}

func TestAnObjectThatIsTooLargeHasAnAgeToo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := mem.New().Open().Register("x")
		if _, err := r.Create(t.Context(), make([]byte, cas.MaxSize+1)); err != nil {
			t.Fatal(err)
		}
		<-time.After(time.Minute)
		if got, err := r.Load(t.Context()); cas.ClassOf(err) != cas.Corrupt || got.Age != time.Minute {
			t.Errorf("age %v, %v", got.Age, err)
		}
	})
}

// A store may be filled outside of a bubble and read inside, where it is 2000.
func TestAnObjectFromOutsideTheBubbleIsNew(t *testing.T) {
	r := mem.New().Open().Register("x")
	if _, err := r.Create(t.Context(), []byte("a")); err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		if got, err := r.Load(t.Context()); err != nil || got.Age != 0 {
			t.Errorf("age %v, %v", got.Age, err)
		}
	})
}
