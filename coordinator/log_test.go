package coordinator

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/sf2loki/sf2loki-ha/cas"
	"github.com/sf2loki/sf2loki-ha/internal/lasting"
)

func TestALastingFaultIsOneLine(t *testing.T) {
	var out bytes.Buffer
	observe := LogTo(slog.New(slog.NewTextHandler(&out, nil)))
	denied := &cas.Error{Class: cas.Denied, Op: "load", Object: "s3://b/k", Hint: "grant s3:GetObject"}
	at := time.Now()
	for range 100 {
		at = at.Add(time.Second)
		observe(Event{Kind: Requested, Op: "read", Class: cas.Denied, Err: denied, At: at})
		observe(Event{Kind: StoreFailed, Op: "read", Class: cas.Denied, Err: denied, At: at})
		// Another kind of request that works does not end it.
		observe(Event{Kind: Requested, Op: "fence", At: at})
	}
	if n := strings.Count(out.String(), "store_failed"); n != 1 {
		t.Errorf("%d lines, want 1:\n%s", n, out.String())
	}
	if !strings.Contains(out.String(), "grant s3:GetObject") || !strings.Contains(out.String(), "ERROR") {
		t.Errorf("the line carries no fix, or is no error: %s", out.String())
	}
	observe(Event{Kind: Requested, Op: "read", At: at.Add(time.Second)})
	if strings.Contains(out.String(), "store recovered") {
		t.Error("one answer is no recovery")
	}
	observe(Event{Kind: Requested, Op: "read", At: at.Add(lasting.Calm)})
	if !strings.Contains(out.String(), "store recovered") {
		t.Error("the end of the fault is not said")
	}
}

func TestAnExpectedConflictIsCalm(t *testing.T) {
	var out bytes.Buffer
	observe := LogTo(slog.New(slog.NewTextHandler(&out, nil)))
	observe(Event{Kind: Requested, Op: "create", Class: cas.Conflict, Err: cas.Conflict})
	observe(Event{Kind: ClaimLost, Epoch: 4})
	if out.Len() != 0 {
		t.Errorf("a lost race is logged: %s", out.String())
	}
}

func TestAStoreThatFailsEverySecondTimeIsOneLinePerClass(t *testing.T) {
	var out bytes.Buffer
	observe := LogTo(slog.New(slog.NewTextHandler(&out, nil)))
	at := time.Now()
	for i := range 100 {
		at = at.Add(time.Second)
		class := []cas.Class{cas.Ambiguous, cas.Contended}[i%2]
		observe(Event{Kind: WriteInDoubt, Op: "replace", Class: class, Err: class, At: at})
		observe(Event{Kind: Requested, Op: "replace", At: at})
	}
	if n := strings.Count(out.String(), "\n"); n != 2 {
		t.Errorf("%d lines, want one per class:\n%s", n, out.String())
	}
}
