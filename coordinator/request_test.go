package coordinator

import (
	"strings"
	"testing"
	"time"
)

func TestWhatARequestDocumentAsksFor(t *testing.T) {
	for name, c := range map[string]struct {
		document string
		hold     time.Duration // 0: none
		stepDown bool
		handover bool
		problem  string // "": none
	}{
		"nothing":                             {document: `{}`},
		"a hold":                              {document: `{"version":1,"hold":{"id":"a","for_ms":60000}}`, hold: time.Minute},
		"a part that is null":                 {document: `{"hold":null}`},
		"a step-down by term":                 {document: `{"step_down":{"id":"a","target":{"epoch":3,"term":"t"}}}`, stepDown: true},
		"a step-down by incarnation":          {document: `{"step_down":{"id":"a","target":{"incarnation":"i"}}}`, stepDown: true},
		"a handover":                          {document: `{"handover":{"id":"a","incarnation":"i","revision":"r","target":{"epoch":3,"term":"t"}}}`, handover: true},
		"unknown fields":                      {document: `{"hold":{"id":"a","for_ms":1000,"colour":"red"},"mood":"calm"}`, hold: time.Second},
		"a hold longer than the longest":      {document: `{"hold":{"id":"a","for_ms":9223372036854775807}}`, hold: MaxHold},
		"not JSON":                            {document: `hold!`, problem: "not a JSON object"},
		"null":                                {document: `null`, problem: "not a JSON object"},
		"a list":                              {document: `[]`, problem: "not a JSON object"},
		"empty":                               {document: ``, problem: "not a JSON object"},
		"not UTF-8":                           {document: "{\"hold\":\"\xff\"}", problem: "not UTF-8"},
		"huge":                                {document: `{"x":"` + strings.Repeat("x", maxRequest) + `"}`, problem: "more than"},
		"a hold without an end":               {document: `{"hold":{"id":"a"}}`, problem: `"hold": for_ms is 0`},
		"a hold that ends before it begins":   {document: `{"hold":{"id":"a","for_ms":-5}}`, problem: "for_ms is -5"},
		"a hold without an id":                {document: `{"hold":{"for_ms":1000}}`, problem: `"hold": has no id`},
		"a hold of text":                      {document: `{"hold":"please"}`, problem: `"hold"`},
		"a step-down for everybody":           {document: `{"step_down":{"id":"a"}}`, problem: "names no target"},
		"a step-down with half a term":        {document: `{"step_down":{"id":"a","target":{"epoch":3}}}`, problem: "names no target"},
		"a handover to nobody":                {document: `{"handover":{"id":"a","revision":"r","target":{"epoch":3,"term":"t"}}}`, problem: `"handover": needs`},
		"a part too large for the record":     {document: `{"step_down":{"id":"` + strings.Repeat("x", maxPart) + `","target":{"incarnation":"i"}}}`, problem: "more than 4096"},
		"one part damaged, the other obeyed":  {document: `{"step_down":{"id":"a"},"hold":{"id":"b","for_ms":1000}}`, hold: time.Second, problem: "names no target"},
		"an epoch that is no number":          {document: `{"step_down":{"id":"a","target":{"epoch":"three","term":"t"}}}`, problem: `"step_down"`},
		"duplicate parts: the last one holds": {document: `{"hold":{"id":"a","for_ms":1000},"hold":{"id":"b","for_ms":2000}}`, hold: 2 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			r, err := ParseRequest([]byte(c.document))
			if c.problem == "" && err != nil || c.problem != "" && (err == nil || !strings.Contains(err.Error(), c.problem)) {
				t.Errorf("problem %v, want %q", err, c.problem)
			}
			hold := time.Duration(0)
			if r.Hold != nil {
				hold = r.Hold.For
			}
			if hold != c.hold || (r.StepDown != nil) != c.stepDown || (r.Handover != nil) != c.handover {
				t.Errorf("hold %v, step-down %v, handover %v", hold, r.StepDown, r.Handover)
			}
		})
	}
}

func TestAPartIsChangedAloneAndUnknownFieldsSurvive(t *testing.T) {
	document := `{"mood":"calm","hold":{"id":"h","for_ms":60000,"colour":"red"},"step_down":{"id":"s","target":{"incarnation":"i"},"shape":"round"}}`
	r, err := ParseRequest([]byte(document))
	if err != nil {
		t.Fatal(err)
	}
	changed := string(r.WithHandover(&Handover{ID: "n", Incarnation: "i2", Revision: "r2", Target: Target{Epoch: 3, Term: "t"}}).Marshal())
	for _, kept := range []string{`"mood":"calm"`, `"colour":"red"`, `"shape":"round"`, `"revision":"r2"`} {
		if !strings.Contains(changed, kept) {
			t.Errorf("%s has lost %s", changed, kept)
		}
	}
	back, err := ParseRequest([]byte(changed))
	if err != nil || back.Handover == nil || back.Handover.Target != (Target{Epoch: 3, Term: "t"}) || back.StepDown.ID != "s" || back.Hold.For != time.Minute {
		t.Errorf("%+v, %v", back, err)
	}
	if gone := string(r.WithHold(nil).WithStepDown(nil).Marshal()); strings.Contains(gone, "hold") || strings.Contains(gone, "step_down") {
		t.Errorf("%s still asks", gone)
	}
	// The original is not touched.
	if r.Handover != nil || strings.Contains(string(r.Marshal()), "handover") {
		t.Error("a change reached the request it was made from")
	}
}

func TestWhatAPersonWroteOrChangedIsToldFromWhatAProgramWrote(t *testing.T) {
	ours := Request{}.WithHold(&Hold{ID: "h", For: time.Minute}).Marshal()
	again, err := ParseRequest(ours)
	if err != nil {
		t.Fatal(err)
	}
	for text, byHand := range map[string]bool{
		string(ours):                  false,
		string(again.Marshal()):       false,
		string((Request{}).Marshal()): false,
		string(ours) + "\n":           true,
		strings.Replace(string(ours), "60000", "90000", 1): true,
		`{"hold":{"id":"h","for_ms":1}}`:                   true,
		``:                                                 true, `{}`: true, "junk": true,
	} {
		if got := WrittenByHand([]byte(text)); got != byHand {
			t.Errorf("%s: %v", text, got)
		}
	}
}

// A hold's time counts from the writing of the document: a rewrite of another
// part must not begin it anew.
func TestRewritingTheDocumentDoesNotProlongAHold(t *testing.T) {
	r := Request{}.WithHold(&Hold{ID: "h", For: time.Minute})
	if got := r.Aged(20 * time.Second).Hold.For; got != 40*time.Second {
		t.Errorf("%v left after 20 s of a minute", got)
	}
	if over := r.Aged(2 * time.Minute); over.Hold != nil || strings.Contains(string(over.Marshal()), "hold") {
		t.Error("a hold that is over was written again")
	}
	if got := (Request{}).Aged(time.Hour); got.Hold != nil {
		t.Error("a hold out of nothing")
	}
}

func TestATargetIsExactlyOneTermOrProcess(t *testing.T) {
	for name, c := range map[string]struct {
		target Target
		want   bool
	}{
		"this term":                      {Target{Epoch: 3, Term: "t"}, true},
		"this process":                   {Target{Incarnation: "me"}, true},
		"this term of this process":      {Target{Epoch: 3, Term: "t", Incarnation: "me"}, true},
		"this term of another process":   {Target{Epoch: 3, Term: "t", Incarnation: "other"}, false},
		"another term of this process":   {Target{Epoch: 2, Term: "s", Incarnation: "me"}, false},
		"another term of the same epoch": {Target{Epoch: 3, Term: "s"}, false},
		"the same id of another epoch":   {Target{Epoch: 4, Term: "t"}, false},
		"another process":                {Target{Incarnation: "other"}, false},
		"nobody":                         {Target{}, false},
	} {
		if got := c.target.names(3, "t", "me"); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

func FuzzParseRequest(f *testing.F) {
	f.Add([]byte(`{"hold":{"id":"a","for_ms":60000},"x":1}`))
	f.Add([]byte(`{"step_down":{"id":"a","target":{"epoch":3,"term":"t"}}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		r, _ := ParseRequest(data)
		again, err := ParseRequest(r.WithHandover(nil).Marshal())
		if len(data) < maxRequest/8 && (again.Hold == nil) != (r.Hold == nil) {
			t.Errorf("%q is not read back: %v", data, err)
		}
	})
}
