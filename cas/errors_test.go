package cas

import (
	"context"
	"errors"
	"fmt"
	"testing"
)

func TestTheClassOfAnErrorIsFoundThroughWrapping(t *testing.T) {
	inner := &Error{Class: Denied, Op: "load", Object: "s3://b/k", Status: 403, Code: "AccessDenied", Hint: "grant s3:GetObject", Err: errors.New("no")}
	err := fmt.Errorf("read lease: %w", inner)
	if !errors.Is(err, Denied) || errors.Is(err, NotFound) || ClassOf(err) != Denied {
		t.Errorf("class %q", ClassOf(err))
	}
	if want := "read lease: load s3://b/k: denied (403 AccessDenied): no; grant s3:GetObject"; err.Error() != want {
		t.Errorf("got  %q\nwant %q", err, want)
	}
}

func TestAnErrorWithoutAClassIsAmbiguous(t *testing.T) {
	for _, err := range []error{errors.New("anything"), context.DeadlineExceeded, fmt.Errorf("w: %w", context.Canceled)} {
		if got := ClassOf(err); got != Ambiguous {
			t.Errorf("%v: %q; not knowing is the safe reading", err, got)
		}
	}
	if ClassOf(nil) != "" {
		t.Error("no error has a class")
	}
}

func TestOnlyTwoClassesLeaveAWriteOpen(t *testing.T) {
	for _, c := range Classes() {
		if got, want := c.Definite(), c != Ambiguous && c != Contended; got != want {
			t.Errorf("%s: definite %v, want %v", c, got, want)
		}
	}
}
