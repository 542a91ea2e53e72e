package canary

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sf2loki/sf2loki-ha/cas"
	"github.com/sf2loki/sf2loki-ha/checkpoint"
	"github.com/sf2loki/sf2loki-ha/internal/faultcas"
)

func push(o *Options) { o.PushURL = "http://loki.invalid" }

func TestNoGapWhereverTheProcessIsKilled(t *testing.T) {
	for name, change := range map[string]func(*Options){"output": nil, "output and endpoint": push} {
		t.Run(name, func(t *testing.T) {
			deaths := 0
			for killAt := 1; ; killAt++ {
				alive := 0
				for _, after := range []bool{false, true} {
					synctest.Test(t, func(t *testing.T) {
						w := newWorld()
						_ = w.run(t, 1, 400*time.Millisecond, killAt, after, change)
						if !w.dead {
							alive++
						}
						// The next one is killed early, when little is committed.
						_ = w.run(t, 2, time.Second, 1+killAt%9, !after, change)
						first := len(records(w.lines))
						if err := w.run(t, 3, 300*time.Millisecond, 0, false, change); err != nil {
							t.Fatalf("last run: %v", err)
						}
						what := fmt.Sprintf("killed at effect %d, after=%v", killAt, after)
						noGap(t, what+", output", records(w.lines))
						noGap(t, what+", endpoint", records(w.pushed))
						if len(records(w.lines)) < first+10 {
							t.Errorf("%s: the last run wrote %d records", what, len(records(w.lines))-first)
						}
						reportsAreTrue(t, what, w.lines)
					})
					if t.Failed() {
						t.FailNow()
					}
				}
				if alive == 2 {
					break
				}
				deaths++
			}
			if deaths < 20 {
				t.Errorf("only %d points to die at", deaths)
			}
		})
	}
}

// reportsAreTrue compares what every start announced with what happened.
func reportsAreTrue(t *testing.T, what string, lines []Line) {
	t.Helper()
	var high int64
	for i, l := range lines {
		switch l.Event {
		case EventRecord:
			high = max(high, l.N)
		case EventResumed:
			repeated := high - (l.First - 1)
			if l.MissingAtMost != 0 || l.Verdict == Gap {
				t.Errorf("%s, line %d: reports a gap: %+v", what, i, l.Report)
			}
			if repeated > l.RepeatedAtMost || repeated < l.RepeatedAtLeast {
				t.Errorf("%s, line %d: %d records occur twice, reported %d to %d (%s)", what, i, repeated, l.RepeatedAtLeast, l.RepeatedAtMost, l.Verdict)
			}
			if (l.Verdict == First || l.Verdict == Clean) && repeated != 0 {
				t.Errorf("%s, line %d: verdict %s, and %d records are repeated", what, i, l.Verdict, repeated)
			}
		}
	}
}

func TestPlannedStopRepeatsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		for epoch := range int64(4) {
			if err := w.run(t, epoch+1, 530*time.Millisecond, 0, false, push); err != nil {
				t.Fatal(err)
			}
		}
		for i, n := range records(w.lines) {
			if n != int64(i)+1 {
				t.Fatalf("record %d is number %d", i+1, n)
			}
		}
		resumed := events(w.lines, EventResumed)
		if resumed[0].Verdict != First {
			t.Errorf("first start: %+v", resumed[0].Report)
		}
		for i, l := range resumed[1:] {
			p := l.Predecessor
			if l.Verdict != Clean || l.RepeatedAtMost != 0 || p.Epoch != int64(i)+1 || p.Identity != fmt.Sprintf("replica-%d", i+1) || p.Term != fmt.Sprintf("term-%d", i+1) || p.SameTerm {
				t.Errorf("start %d: %+v, predecessor %+v", i+2, l.Report, p)
			}
		}
		for _, l := range events(w.lines, EventStopped) {
			if l.Flushed == nil || !*l.Flushed || l.N != l.Committed || l.Error != "" {
				t.Errorf("last line: %+v", l)
			}
		}
	})
}

func TestCleanStartFollowedByACrashIsNotReportedCleanAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		if err := w.run(t, 1, 300*time.Millisecond, 0, false, nil); err != nil {
			t.Fatal(err)
		}
		// resumed, the commit that raises the intent, three records, dead.
		_ = w.run(t, 2, time.Second, 5, true, nil)
		_ = w.run(t, 3, 100*time.Millisecond, 0, false, nil)
		resumed := events(w.lines, EventResumed)
		if resumed[1].Verdict != Clean || resumed[2].Verdict != Duplicates {
			t.Errorf("verdicts %s, %s, %s", resumed[0].Verdict, resumed[1].Verdict, resumed[2].Verdict)
		}
		reportsAreTrue(t, "", w.lines)
	})
}

func TestSmallerIntentHoldsWhileItsCommitIsUnderWay(t *testing.T) {
	// The predecessor was allowed to run far ahead, this one is not. Its commit
	// lowers the intent in the document long before the answer is here.
	for killAt := 2; killAt < 40; killAt++ {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld()
			_ = w.run(t, 1, time.Second, 20, false, func(o *Options) { o.Ahead = 5 * time.Second })
			_ = w.run(t, 2, time.Second, killAt, false, func(o *Options) {
				o.Ahead = 100 * time.Millisecond
				o.Checkpoint = faultcas.Wrap(o.Checkpoint, func(op faultcas.Op, _ int) faultcas.Fault {
					if op == faultcas.Replace {
						return faultcas.Fault{Late: 500 * time.Millisecond}
					}
					return faultcas.Fault{}
				})
			})
			_ = w.run(t, 3, 200*time.Millisecond, 0, false, nil)
			noGap(t, "output", records(w.lines))
			reportsAreTrue(t, fmt.Sprintf("killed at %d", killAt), w.lines)
		})
	}
}

func TestFirstRecordFollowsTheStartAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		slow := func(o *Options) {
			o.Interval = time.Second
			o.Checkpoint = faultcas.Wrap(o.Checkpoint, func(faultcas.Op, int) faultcas.Fault { return faultcas.Fault{Delay: 15 * time.Millisecond} })
		}
		for i, c := range []struct {
			epoch  int64
			killAt int
			within time.Duration
		}{
			// A read and the commit that raises the intent.
			{1, 6, 30 * time.Millisecond},
			// After a crash the predecessor's intent still stands: a read.
			{2, 0, 15 * time.Millisecond},
			// After a clean stop again both.
			{3, 0, 30 * time.Millisecond},
		} {
			start, seen := time.Now(), len(w.lines)
			_ = w.run(t, c.epoch, 5*time.Second, c.killAt, false, slow)
			first := events(w.lines[seen:], EventRecord)[0]
			if took := first.At.Sub(start); took != c.within {
				t.Errorf("run %d: first record after %v, want %v", i+1, took, c.within)
			}
		}
	})
}

func TestRecordsKeepTheirIntervalWhileCommitsAreSlow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		err := w.run(t, 1, 5*time.Second, 0, false, func(o *Options) {
			o.Checkpoint = faultcas.Wrap(o.Checkpoint, func(op faultcas.Op, n int) faultcas.Fault {
				if n < 3 {
					return faultcas.Fault{}
				}
				return faultcas.Fault{Delay: 400 * time.Millisecond}
			})
		})
		if err != nil {
			t.Fatal(err)
		}
		lines := events(w.lines, EventRecord)
		for i := 1; i < len(lines); i++ {
			if gap := lines[i].At.Sub(lines[i-1].At); gap != 20*time.Millisecond {
				t.Fatalf("record %d came %v after the one before", lines[i].N, gap)
			}
		}
		if len(lines) < 240 {
			t.Errorf("%d records in 5 s", len(lines))
		}
	})
}

func TestCommitsKeepTheirDistance(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		var writes []time.Time
		err := w.run(t, 1, 10*time.Second+time.Millisecond, 0, false, func(o *Options) {
			o.CommitInterval = time.Second
			o.MinWriteInterval = time.Second
			o.Checkpoint = faultcas.Wrap(o.Checkpoint, func(op faultcas.Op, _ int) faultcas.Fault {
				if op == faultcas.Replace {
					writes = append(writes, time.Now())
				}
				return faultcas.Fault{Delay: 30 * time.Millisecond}
			})
		})
		if err != nil {
			t.Fatal(err)
		}
		if len(writes) < 8 || len(writes) > 12 {
			t.Errorf("%d writes in 10 s", len(writes))
		}
		for i := 1; i < len(writes); i++ {
			if gap := writes[i].Sub(writes[i-1]); gap < time.Second {
				t.Errorf("write %d came %v after the one before", i, gap)
			}
		}
	})
}

func TestPausesWhenItCannotCommitAndGoesOnAfterwards(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		begin := time.Now()
		outage := func(faultcas.Op, int) faultcas.Fault {
			if at := time.Since(begin); at > time.Second && at < 20*time.Second {
				return faultcas.Fault{Refuse: cas.Ambiguous}
			}
			return faultcas.Fault{}
		}
		err := w.run(t, 1, 40*time.Second, 0, false, func(o *Options) { o.Checkpoint = faultcas.Wrap(o.Checkpoint, outage) })
		if err != nil {
			t.Fatal(err)
		}
		paused := events(w.lines, EventPaused)
		if len(paused) != 1 {
			t.Fatalf("%d pauses", len(paused))
		}
		// Ahead is ten commit intervals: 1 s, 50 records.
		if open := paused[0].N - paused[0].Committed; open != 50 {
			t.Errorf("paused with %d records uncommitted, want 50", open)
		}
		if len(events(w.lines, EventCommitFailed)) == 0 {
			t.Error("the failed commits were not reported")
		}
		noGap(t, "output", records(w.lines))
		if n := records(w.lines); int64(len(n)) != n[len(n)-1] || len(n) < 900 {
			t.Errorf("%d records, the last is %d", len(n), n[len(n)-1])
		}
	})
}

func TestFencedCommitEndsTheRunWithItsOwnError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		done := make(chan error, 1)
		go func() { done <- w.run(t, 1, time.Minute, 0, false, nil) }()
		<-time.After(310 * time.Millisecond)
		successor := &envTerm{epoch: 2, id: "successor"}
		if _, err := checkpoint.Open(w.document(), checkpoint.WithLease("lease", time.Second)).Seal(t.Context(), successor); err != nil {
			t.Fatal(err)
		}
		err := <-done
		var fenced *checkpoint.FencedError
		if !errors.Is(err, ErrFenced) || !errors.As(err, &fenced) || fenced.Epoch != 2 {
			t.Errorf("error %v", err)
		}
		last := w.lines[len(w.lines)-1]
		if last.Event != EventFenced || last.Error == "" || last.Epoch != 1 {
			t.Errorf("last line %+v", last)
		}
	})
}

func TestStaleCanaryNeverStarts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		if err := w.run(t, 5, 100*time.Millisecond, 0, false, nil); err != nil {
			t.Fatal(err)
		}
		before := len(records(w.lines))
		err := Main(t.Context(), Options{Checkpoint: w.document(), Term: &envTerm{epoch: 4, id: "old"}, Out: w})
		if !errors.Is(err, ErrFenced) || len(records(w.lines)) != before {
			t.Errorf("error %v, %d records", err, len(records(w.lines))-before)
		}
	})
}

func TestOwnDocumentIsSealedByTheCanary(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		for epoch := range int64(3) {
			ctx, cancel := context.WithTimeout(t.Context(), 2500*time.Millisecond)
			err := Main(ctx, Options{Checkpoint: w.document(), Term: &envTerm{epoch: epoch + 1, id: "x"}, Lease: "l", TTL: time.Second, Out: w})
			cancel()
			if err != nil {
				t.Fatal(err)
			}
		}
		noGap(t, "output", records(w.lines))
		f, err := checkpoint.Open(w.document()).Fence(t.Context())
		if err != nil || f.Epoch != 3 || f.Lease != "l" {
			t.Errorf("fence %+v, %v", f, err)
		}
	})
}

func TestStoreThatIsDownAtStartIsWaitedFor(t *testing.T) {
	for _, class := range []cas.Class{cas.Ambiguous, cas.Denied, cas.NoBucket} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld()
			begin := time.Now()
			err := w.run(t, 1, time.Minute, 0, false, func(o *Options) {
				o.Checkpoint = faultcas.Wrap(o.Checkpoint, func(faultcas.Op, int) faultcas.Fault {
					if time.Since(begin) < 20*time.Second {
						return faultcas.Fault{Refuse: class}
					}
					return faultcas.Fault{}
				})
			})
			if err != nil {
				t.Fatal(err)
			}
			if len(events(w.lines, EventLoadFailed)) == 0 || len(records(w.lines)) < 100 {
				t.Errorf("%s: %d failures, %d records", class, len(events(w.lines, EventLoadFailed)), len(records(w.lines)))
			}
		})
	}
}

func TestStopBeforeTheStartIsNoFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		err := w.run(t, 1, 3*time.Second, 0, false, func(o *Options) {
			o.Checkpoint = faultcas.Wrap(o.Checkpoint, func(faultcas.Op, int) faultcas.Fault { return faultcas.Fault{Delay: time.Hour} })
		})
		if err != nil || len(events(w.lines, EventStopped)) != 1 || len(records(w.lines)) != 0 {
			t.Errorf("error %v, lines %+v", err, w.lines)
		}
	})
}

func TestStopIsBoundedByTheFlushTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		begin := time.Now()
		err := w.run(t, 1, time.Second, 0, false, func(o *Options) {
			o.FlushTimeout = 2 * time.Second
			o.Checkpoint = faultcas.Wrap(o.Checkpoint, func(op faultcas.Op, n int) faultcas.Fault {
				if op == faultcas.Replace && n > 3 {
					return faultcas.Fault{Delay: time.Hour}
				}
				return faultcas.Fault{}
			})
		})
		if took := time.Since(begin); err != nil || took != 3*time.Second {
			t.Errorf("error %v after %v", err, took)
		}
		last := w.lines[len(w.lines)-1]
		if last.Event != EventStopped || last.Flushed == nil || *last.Flushed || last.Error == "" {
			t.Errorf("last line %+v", last)
		}
	})
}

func TestDocumentThatCannotBeTrustedEndsTheRun(t *testing.T) {
	for name, text := range map[string]string{
		"not a document":    `[]`,
		"both keys damaged": `{"canary:position": "x", "canary:intent": "y"}`,
		"negative position": `{"canary:position": "{\"n\": -1}"}`,
	} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld()
			if _, err := w.document().Create(t.Context(), []byte(text)); err != nil {
				t.Fatal(err)
			}
			err := Main(t.Context(), Options{Checkpoint: w.document(), Term: &envTerm{epoch: 4, id: "t"}, Out: w})
			if err == nil || errors.Is(err, ErrFenced) || len(records(w.lines)) != 0 {
				t.Errorf("%s: error %v, %d records", name, err, len(records(w.lines)))
			}
		})
	}
}
