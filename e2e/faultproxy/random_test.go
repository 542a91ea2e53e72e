package faultproxy

import (
	"fmt"
	"testing"
	"time"
)

func everything(seed uint64, p float64) *Random {
	return &Random{Seed: seed, LoseRequest: p, LoseAnswer: p, LateRequest: p, LateAnswer: p, HoldBack: p, Replay: p, Refuse: p, MaxDelay: time.Second}
}

func TestASeedDecidesTheNthRequestOfAKindInAnyOrder(t *testing.T) {
	kinds := []Request{{Replica: "A", Op: Replace, Key: "k"}, {Replica: "B", Op: Replace, Key: "k"}, {Replica: "A", Op: Load, Key: "k"}, {Replica: "A", Op: Replace, Key: "l"}}
	decisions := func(seed uint64, order []int) map[string]string {
		p := open(t, Config{Store: "http://127.0.0.1:1", Random: everything(seed, 0.2)})
		got, counts := map[string]string{}, map[int]int{}
		for range 50 {
			for _, k := range order {
				got[fmt.Sprint(k, counts[k])] = p.decide(kinds[k]).String()
				counts[k]++
			}
		}
		return got
	}
	one, other, third := decisions(1, []int{0, 1, 2, 3}), decisions(1, []int{3, 1, 0, 2}), decisions(2, []int{0, 1, 2, 3})
	same, perKind := 0, 0
	for what, fault := range one {
		if other[what] != fault {
			t.Errorf("request %s: %q or %q", what, fault, other[what])
		}
		if third[what] == fault {
			same++
		}
	}
	for n := range 50 {
		if one[fmt.Sprint(0, n)] == one[fmt.Sprint(1, n)] {
			perKind++
		}
	}
	if same > len(one)/2 || perKind > 25 {
		t.Errorf("%d of %d decisions are those of another seed, %d of 50 those of another replica", same, len(one), perKind)
	}
}

func TestEachFaultIsAsFrequentAsItsProbability(t *testing.T) {
	const n, p = 20000, 0.1
	r := everything(3, p)
	counts := map[string]int{}
	for i := range n {
		f := r.Fault(Request{Op: Replace, Key: "k"}, i)
		for kind, yes := range map[string]bool{
			"late request": f.LateRequest > 0, "late answer": f.LateAnswer > 0, "held back": f.HoldBack > 0, "replayed": f.Replay > 0,
			"lost request": f.LoseRequest != Delivered, "lost answer": f.LoseAnswer != Delivered, "refused": f.Refuse == 503,
			"silent": f.LoseRequest == Silence, "closed": f.LoseRequest == Reset,
		} {
			if yes {
				counts[kind]++
			}
		}
		if f.LateRequest > r.MaxDelay || f.Replay > r.MaxDelay {
			t.Fatalf("%v is longer than the longest delay", f)
		}
	}
	for kind, count := range counts {
		want := n * p
		if kind == "silent" || kind == "closed" {
			want /= 2
		}
		if got := float64(count); got < 0.9*want || got > 1.1*want {
			t.Errorf("%s: %d of %d, want about %.0f", kind, count, n, want)
		}
	}
	if len(counts) != 9 {
		t.Errorf("kinds %v", counts)
	}
	r.Only = func(q Request) bool { return q.Key != "k" }
	for i := range 100 {
		if f := r.Fault(Request{Op: Replace, Key: "k"}, i); f.String() != "" {
			t.Fatalf("%v to a request that is not to be hit", f)
		}
	}
}
