package history

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/sf2loki/sf2loki-ha/e2e/faultproxy"
	"github.com/sf2loki/sf2loki-ha/internal/boottime"
)

// brief is an exchange in one line.
func brief(x faultproxy.Exchange) string {
	var b strings.Builder
	fmt.Fprintf(&b, "#%d %s %s %s", x.ID, x.Replica, x.Op, x.Key)
	if x.Of != 0 {
		fmt.Fprintf(&b, " (again #%d)", x.Of)
	}
	if x.Condition != "" {
		fmt.Fprintf(&b, " on %.8s", x.Condition)
	}
	if d := x.Document; d != nil {
		fmt.Fprintf(&b, " {epoch %d, term %.6s, write %.6s", d.Epoch, d.Term, d.WriteID)
		if d.State != "" {
			fmt.Fprintf(&b, ", %s", d.State)
		}
		if d.Position != nil {
			fmt.Fprintf(&b, ", record %d of epoch %d", d.Position.N, d.Position.Epoch)
		}
		b.WriteString("}")
	}
	fmt.Fprintf(&b, " -> %d %s %.8s", x.Status, x.Code, x.Version)
	if x.Applied != "" {
		fmt.Fprintf(&b, ", applied %s", x.Applied)
	}
	if x.Told == 0 && x.Of == 0 {
		b.WriteString(", caller not told")
	}
	if x.Fault != "" {
		fmt.Fprintf(&b, " [%s]", x.Fault)
	}
	return b.String()
}

// Timeline is what happened to the lease, the document and the replicas around an
// instant, one line each.
func (h *History) Timeline(around boottime.Instant, before, after time.Duration) string {
	type entry struct {
		at   boottime.Instant
		text string
	}
	var all []entry
	for _, e := range h.Events {
		what := e.What
		if e.Whole {
			what += " (whole)"
		}
		all = append(all, entry{e.At, strings.TrimSpace(fmt.Sprintf("%s %s %s", e.Replica, what, e.Detail))})
	}
	for _, x := range h.Exchanges {
		if x.Key == h.Run.Lease || x.Key == h.Run.Checkpoints {
			took := "lost"
			if x.Answered != 0 {
				took = "answered after " + x.Answered.Sub(x.Arrived).Round(time.Millisecond).String()
			}
			all = append(all, entry{x.Arrived, brief(x) + ", " + took})
		}
	}
	spans := map[process][2]int{}
	for i, a := range h.Acts {
		p := processOf(a)
		s, ok := spans[p]
		if !ok {
			s = [2]int{i, i}
		}
		if a.Boot < h.Acts[s[0]].Boot {
			s[0] = i
		}
		if a.Boot > h.Acts[s[1]].Boot {
			s[1] = i
		}
		spans[p] = s
	}
	for p, s := range spans {
		for k, which := range []string{"first", "last"} {
			a := h.Acts[s[k]]
			all = append(all, entry{boottime.Instant(a.Boot), fmt.Sprintf("%s %s act as epoch %d: record %d (process %d)", p.replica, which, p.epoch, a.N, p.pid)})
		}
	}
	slices.SortStableFunc(all, func(a, b entry) int { return cmp.Compare(a.at, b.at) })
	var b strings.Builder
	for _, e := range all {
		if d := e.at.Sub(around); d >= -before && d <= after {
			fmt.Fprintf(&b, "%+9.3fs  %s\n", d.Seconds(), e.text)
		}
	}
	return b.String()
}
