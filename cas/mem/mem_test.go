package mem_test

import (
	"testing"

	"github.com/sf2loki/sf2loki-ha/cas"
	"github.com/sf2loki/sf2loki-ha/cas/castest"
	"github.com/sf2loki/sf2loki-ha/cas/mem"
)

func TestConformance(t *testing.T) {
	store := mem.New()
	open := func(t *testing.T) cas.Bucket { return store.Open() }
	castest.Run(t, open)
	castest.Exact(t, open)
}

func TestDataIsCopiedInAndOut(t *testing.T) {
	r := mem.New().Open().Register("x")
	in := []byte("abc")
	if _, err := r.Create(t.Context(), in); err != nil {
		t.Fatal(err)
	}
	in[0] = 'X'
	v, err := r.Load(t.Context())
	if err != nil || string(v.Data) != "abc" {
		t.Fatalf("load after changing the written slice: %q, %v", v.Data, err)
	}
	v.Data[0] = 'Y'
	if v, err = r.Load(t.Context()); err != nil || string(v.Data) != "abc" {
		t.Fatalf("load after changing the loaded slice: %q, %v", v.Data, err)
	}
}

func TestRemovedObjectIsAbsentAndItsVersionNeverComesBack(t *testing.T) {
	s := mem.New()
	r := s.Open().Register("x")
	old, err := r.Create(t.Context(), []byte("a"))
	if err != nil {
		t.Fatal(err)
	}
	s.Remove("x")
	if _, err := r.Load(t.Context()); cas.ClassOf(err) != cas.NotFound {
		t.Errorf("load = %v, want not found", err)
	}
	if _, err := r.Replace(t.Context(), []byte("b"), old); cas.ClassOf(err) != cas.Conflict {
		t.Errorf("replace = %v, want conflict", err)
	}
	again, err := r.Create(t.Context(), []byte("a"))
	if err != nil || again == old {
		t.Errorf("create = %q, %v; the first version was %q", again, err, old)
	}
}
