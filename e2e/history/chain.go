package history

import (
	"cmp"
	"slices"

	"github.com/sf2loki/sf2loki-ha/e2e/faultproxy"
)

// learn completes writes whose fate the proxy did not learn, from loads that show
// them.
func learn(all []faultproxy.Exchange) []faultproxy.Exchange {
	all = slices.Clone(all)
	made := map[string]bool{}
	for _, x := range all {
		if x.Applied == faultproxy.Yes {
			made[x.Key+"\x00"+x.Version] = true
		}
	}
	for i, w := range all {
		if w.Applied != faultproxy.Unknown || w.Document == nil || w.Document.WriteID == "" {
			continue
		}
		for _, l := range all {
			if l.Op == faultproxy.Load && l.Key == w.Key && l.Document != nil && l.Document.WriteID == w.Document.WriteID && !made[l.Key+"\x00"+l.Version] {
				all[i].Applied, all[i].Version = faultproxy.Yes, l.Version
				made[l.Key+"\x00"+l.Version] = true
				break
			}
		}
	}
	return all
}

// chain returns the accepted writes of an object, each made on the version of the
// one before. Where there is no such order it is a problem, and the order is that
// of the answers.
func (j *judgement) chain(key string) []faultproxy.Exchange {
	var accepted []faultproxy.Exchange
	on := map[string][]faultproxy.Exchange{} // by the version they were made on
	sound := true
	broken := func(x faultproxy.Exchange, format string, args ...any) {
		sound = false
		j.problem("order", x.Answered, format, args...)
	}
	for _, x := range j.exchanges {
		if x.Key != key || x.Applied != faultproxy.Yes {
			continue
		}
		accepted = append(accepted, x)
		if x.Condition == "" || x.Op == faultproxy.Delete {
			broken(x, "%s accepted %s of %s, which nobody may send: %s", x.Replica, x.Op, key, brief(x))
			continue
		}
		on[x.Condition] = append(on[x.Condition], x)
		if len(on[x.Condition]) == 2 {
			broken(x, "two writes of %s were accepted on the version %s: %s, and %s", key, x.Condition, brief(on[x.Condition][0]), brief(x))
		}
	}
	var ordered []faultproxy.Exchange
	for version := faultproxy.Absent; sound && len(on[version]) > 0 && len(ordered) < len(accepted); {
		next := on[version][0]
		ordered = append(ordered, next)
		version = next.Version
	}
	if sound && len(ordered) < len(accepted) {
		reached := map[int]bool{}
		for _, x := range ordered {
			reached[x.ID] = true
		}
		for _, x := range accepted {
			if !reached[x.ID] {
				broken(x, "a write of %s was accepted on the version %s, which no accepted write had made: %s", key, x.Condition, brief(x))
				break
			}
		}
	}
	if !sound {
		slices.SortStableFunc(accepted, func(a, b faultproxy.Exchange) int { return cmp.Compare(a.Answered, b.Answered) })
		return accepted
	}
	return ordered
}
