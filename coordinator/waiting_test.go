package coordinator

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// The first start over a lease that somebody left behind takes a window: the
// operator is told whose it is and how long that lasts, once.
func TestTheWaitForALeaseThatWasLeftBehindIsExplainedOnce(t *testing.T) {
	for name, c := range map[string]struct {
		before *Record
		says   []string
	}{
		"nothing there":          {nil, []string{"lease absent", "claim_in=6s"}},
		"of a former deployment": {ptr(held(7, "gone")), []string{"lease observed", "holder=other", "epoch=7", "claim_in=6s"}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var out bytes.Buffer
				w := newWorld(t)
				if c.before != nil {
					w.put(text(t, *c.before))
				}
				a := w.replica("a", fast, WithObserver(LogTo(slog.New(slog.NewTextHandler(&out, nil))))).run()
				sleep(5 * time.Second)
				log := out.String()
				for _, want := range c.says {
					if strings.Count(log, want) != 1 {
						t.Errorf("%q is not said once:\n%s", want, log)
					}
				}
				if strings.Contains(log, "kill_in") || strings.Contains(log, "level=WARN") || strings.Contains(log, "level=ERROR") {
					t.Errorf("an ordinary wait looks like trouble:\n%s", log)
				}
				a.stop()
			})
		})
	}
}
