package coordinator

import (
	"encoding/json"
	"testing"
	"time"
)

// A record is rewritten by whichever binary leads, during a rolling upgrade too:
// what a newer one put there is still there after an older one has claimed,
// renewed and released it. What names the successor of a former term is not.
func TestATermKeepsTheFieldsOfNewerWritersAndForgetsTheSuccessorOfTheLastTerm(t *testing.T) {
	tomb, err := ParseRecord([]byte(`{"holder":"x","epoch":3,"version":1,"incarnation":"x","term":"t","write_id":"w","ttl_ms":6000,
		"state":"released","lease":"mem://lease","successor":"own","obeyed":"o","of_tomorrow":{"a":[1]}}`))
	if err != nil {
		t.Fatal(err)
	}
	b := newBench(t, fast, true)
	b.tick(0)
	b.reads(Lease{Version: "v1", Record: tomb})
	b.answer(input{fence: Fence{Epoch: 3, Found: true}})
	check := func(what string) {
		t.Helper()
		a, ok := b.request()
		if !ok || a.kind != doWrite {
			t.Fatalf("%s: no write, %+v", what, b.last)
		}
		data, err := a.rec.Marshal()
		if err != nil {
			t.Fatal(err)
		}
		var fields map[string]json.RawMessage
		if err := json.Unmarshal(data, &fields); err != nil {
			t.Fatal(err)
		}
		if string(fields["of_tomorrow"]) != `{"a":[1]}` || string(fields["obeyed"]) != `"o"` {
			t.Errorf("%s: a field was lost: %s", what, data)
		}
		if s, ok := fields["successor"]; ok {
			t.Errorf("%s: names the successor %s of the term before", what, s)
		}
	}
	check("acquisition")
	b.answer(input{version: "v2"})
	b.until(doWrite, 3*time.Second)
	check("renewal")
	b.answer(input{version: "v3"})
	b.step(input{kind: inStop, reason: "test"})
	check("announcement")
	b.answer(input{version: "v4"})
	b.step(input{kind: inWorkEnded})
	b.tick(0)
	check("tombstone")
}

// Whom a lease was handed over to once is not whom the next term is handed to.
func TestATermThatEndsOtherwiseNamesNoSuccessorThoughTheTermBeforeItDid(t *testing.T) {
	b := askedBench(t, false)
	b.leads()
	h := handover("next", "r3")
	h.Handover.Target.Term = b.m.term.id
	b.until(doAsk, 3*time.Second)
	b.answer(input{request: RequestState{Request: h, Version: "q"}})
	b.answer(input{version: "v8"}) // announced
	b.step(input{kind: inWorkEnded})
	b.tick(0)
	tomb, _ := b.request()
	if tomb.rec.Successor != "next" {
		t.Fatalf("handed over to %q", tomb.rec.Successor)
	}
	b.answer(input{version: "v9"})
	// Nobody came.
	if a, ok := b.watch(Lease{Version: "v9", Record: tomb.rec}, RequestState{}, 20*time.Second); !ok || a.kind != doWrite {
		t.Fatal("it never came back")
	}
	b.answer(input{version: "v10"})
	b.step(input{kind: inStop, reason: "test"})
	b.answer(input{version: "v11"})
	b.step(input{kind: inWorkEnded})
	b.tick(0)
	if a, ok := b.request(); !ok || a.rec.State != Released || a.rec.Successor != "" {
		t.Errorf("released to %q: %+v", a.rec.Successor, b.last)
	}
}
