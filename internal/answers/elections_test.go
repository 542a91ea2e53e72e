package answers

import "github.com/sf2loki/sf2loki-ha/internal/wiretest"

// What a replica is about when it meets an answer: the columns of the second
// table.
const (
	claimAbsent = "claim of an absent lease"
	claimStale  = "claim of a stale lease"
	renewal     = "renewal"
	releasing   = "release"
	stopping    = "stop during a claim"
)

var situations = []string{claimAbsent, claimStale, renewal, releasing, stopping}

// reply is a row of it: what happens to the writes, in order. After that the store
// tells the truth.
type reply struct {
	name string
	plan func(s Service, situation string) []step
}

type saying = func(w *world, truth wiretest.Answer, s Sent) wiretest.Answer

// cell answers with a cell of the first table.
func cell(meaning string) saying {
	return func(w *world, _ wiretest.Answer, s Sent) wiretest.Answer {
		request := s.Op
		if w.service == K8s && s.Op == Replace {
			request = Update
		}
		return Say(w.service, request, meaning)
	}
}

func reset(*world, wiretest.Answer, Sent) wiretest.Answer { return wiretest.ResetAfterRequest() }

func silence(*world, wiretest.Answer, Sent) wiretest.Answer { return wiretest.Hang() }

func tooLate(_ *world, truth wiretest.Answer, _ Sent) wiretest.Answer {
	return truth.After(callTime + callTime/4)
}

func half(_ *world, truth wiretest.Answer, _ Sent) wiretest.Answer { return truth.CutHead(40) }

// always is the same plan in every situation.
func always(plan ...step) func(Service, string) []step {
	return func(Service, string) []step { return plan }
}

// taken: another replica was faster.
func taken(w *world) {
	r := stranger()
	r.Holder, r.Incarnation, r.Epoch, r.WriteID = "thief", "inc-9", 20, "w20"
	w.put(r)
}

func deleted(w *world) { w.states = append(w.states, state{}) }

// touched: somebody's label changed the resourceVersion.
func touched(w *world) { w.now().touched++ }

var replies = []reply{
	{"success", always()},
	{"lost after it was applied", always(step{say: reset})},
	{"lost before it was applied", always(step{lose: true, say: reset})},
	{"contended, contended, success", func(s Service, situation string) []step {
		if s == K8s && situation != claimAbsent { // where there is nothing, nothing is touched
			return []step{{before: touched}, {before: touched}}
		}
		return []step{{lose: true, say: cell(GaveUp)}, {lose: true, say: cell(GaveUp)}}
	}},
	{"too many, too many, success", always(step{lose: true, say: cell(TooMany)}, step{lose: true, say: cell(TooMany)})},
	{"contended, though it was applied", always(step{say: cell(GaveUp)})},
	{"a clean conflict", always(step{before: taken})},
	{"a conflict after a lost answer", func(_ Service, situation string) []step {
		if situation == stopping { // there is no second write
			return []step{{lose: true, say: reset, after: taken}}
		}
		return []step{{lose: true, say: reset}, {before: taken}}
	}},
	{"not allowed, then success", always(step{lose: true, say: cell(NotAllowed)})},
	{"the lease is gone", always(step{before: deleted})},
	{"an internal error, not applied", always(step{lose: true, say: cell(InternalError)})},
	{"an internal error, though it was applied", always(step{say: cell(InternalError)})},
	{"a success after the deadline", always(step{say: tooLate})},
	{"a success without a version", always(step{say: cell(NoVersion)})},
	{"half an answer", always(step{say: half})},
	{"no answer, and applied later", func(_ Service, situation string) []step {
		if situation == stopping {
			return []step{{land: true, loads: 2, say: silence}}
		}
		return []step{{land: true, say: silence}}
	}},
}

// outcome is what comes of it.
type outcome string

const (
	wins   outcome = "wins"       // it leads a new term, and goes on
	stays  outcome = "stays"      // it leads on, in the same term
	loses  outcome = "loses"      // its work is told that the lease is lost
	waits  outcome = "waits"      // it is a standby, as before
	gives  outcome = "gives back" // it has ended, and the lease is released
	leaves outcome = "leaves"     // it has ended, and the lease is not released
	unsure outcome = "gives up"   // likewise, after it read in vain for as long as it may
)

// want is a cell of the second table.
type want struct {
	outcome outcome
	// requests are those from the first write on; of a leader up to the first
	// renewal after it, of a standby up to its next poll. "@2" is the second state
	// of the lease, "@2'" the same after something else about the object changed.
	requests string
	// settled: only a read told what had become of the write.
	settled bool
	// k8s is what comes of it there, where it is not the same with a load in front
	// of each update.
	k8s *want
	// never is why there is no such case.
	never string
}

func (w want) but(k8s want) want {
	w.k8s = &k8s
	return w
}

// A write that landed without an answer that tells: the same in each row.
var (
	createdUnheard = want{outcome: wins, settled: true, requests: "create, load, replace @1"}
	claimedUnheard = want{outcome: wins, settled: true, requests: "replace @1, load, replace @2"}
	renewedUnheard = want{outcome: stays, settled: true, requests: "replace @2, replace @2, load, replace @3"}.
			but(want{outcome: stays, settled: true, requests: "replace @2, load, replace @3"})
	releasedUnheard = want{outcome: gives, settled: true, requests: "release @3, release @3, load"}.
			but(want{outcome: gives, settled: true, requests: "release @3, load"})
	stoppedUnheard = want{outcome: gives, settled: true, requests: "replace @1, load, release @2"}
)

var elections = map[string]map[string]want{
	claimAbsent: {
		"success":                                  {outcome: wins, requests: "create, replace @1"},
		"lost after it was applied":                createdUnheard,
		"lost before it was applied":               {outcome: wins, requests: "create, load, create, replace @1"},
		"contended, contended, success":            {outcome: wins, requests: "create, load, create, load, create, replace @1"},
		"too many, too many, success":              {outcome: wins, requests: "create, load, create, load, create, replace @1"},
		"contended, though it was applied":         createdUnheard,
		"a clean conflict":                         {outcome: waits, requests: "create, load"},
		"a conflict after a lost answer":           {outcome: waits, requests: "create, load, create, load"},
		"not allowed, then success":                {outcome: wins, requests: "create, load, create, replace @1"},
		"the lease is gone":                        {never: "what is absent cannot vanish"},
		"an internal error, not applied":           {outcome: wins, requests: "create, load, create, replace @1"},
		"an internal error, though it was applied": createdUnheard,
		"a success after the deadline":             createdUnheard,
		"a success without a version":              createdUnheard,
		"half an answer":                           createdUnheard,
		"no answer, and applied later":             {outcome: wins, settled: true, requests: "create, load, create, load, replace @1"},
	},
	claimStale: {
		"success":                    {outcome: wins, requests: "replace @1, replace @2"},
		"lost after it was applied":  claimedUnheard,
		"lost before it was applied": {outcome: wins, requests: "replace @1, load, replace @1, replace @2"},
		"contended, contended, success": want{outcome: wins, requests: "replace @1, load, replace @1, load, replace @1, replace @2"}.
			but(want{outcome: wins, requests: "replace @1, load, replace @1', load, replace @1'', load, replace @2"}),
		"too many, too many, success":              {outcome: wins, requests: "replace @1, load, replace @1, load, replace @1, replace @2"},
		"contended, though it was applied":         claimedUnheard.but(want{outcome: wins, requests: claimedUnheard.requests}), // the same call asks and is told
		"a clean conflict":                         {outcome: waits, requests: "replace @1, load"},
		"a conflict after a lost answer":           {outcome: waits, requests: "replace @1, load, replace @1, load"},
		"not allowed, then success":                {outcome: wins, requests: "replace @1, load, replace @1, replace @2"},
		"the lease is gone":                        {outcome: waits, requests: "replace @1, load"},
		"an internal error, not applied":           {outcome: wins, requests: "replace @1, load, replace @1, replace @2"},
		"an internal error, though it was applied": claimedUnheard,
		"a success after the deadline":             claimedUnheard,
		"a success without a version":              claimedUnheard,
		"half an answer":                           claimedUnheard,
		"no answer, and applied later":             {outcome: wins, settled: true, requests: "replace @1, load, replace @1, load, replace @2"},
	},
	renewal: {
		"success":                    {outcome: stays, requests: "replace @2, replace @3"},
		"lost after it was applied":  renewedUnheard,
		"lost before it was applied": {outcome: stays, requests: "replace @2, replace @2, replace @3"},
		"contended, contended, success": want{outcome: stays, requests: "replace @2, replace @2, load, replace @2, replace @3"}.
			but(want{outcome: stays, requests: "replace @2, load, replace @2', load, replace @2'', load, replace @3"}),
		"too many, too many, success":              {outcome: stays, requests: "replace @2, replace @2, load, replace @2, replace @3"},
		"contended, though it was applied":         renewedUnheard.but(want{outcome: stays, requests: "replace @2, load, replace @3"}),
		"a clean conflict":                         {outcome: loses, requests: "replace @2, load"},
		"a conflict after a lost answer":           {outcome: loses, requests: "replace @2, replace @2, load"},
		"not allowed, then success":                {outcome: stays, requests: "replace @2, replace @2, replace @3"},
		"the lease is gone":                        {outcome: loses, requests: "replace @2, load"},
		"an internal error, not applied":           {outcome: stays, requests: "replace @2, replace @2, replace @3"},
		"an internal error, though it was applied": renewedUnheard,
		"a success after the deadline":             renewedUnheard,
		"a success without a version":              renewedUnheard,
		"half an answer":                           renewedUnheard,
		"no answer, and applied later": want{outcome: stays, settled: true, requests: "replace @2, replace @2, load, replace @3"}.
			but(want{outcome: stays, settled: true, requests: "replace @2, load, replace @2, load, replace @3"}),
	},
	releasing: {
		"success":                    {outcome: gives, requests: "release @3"},
		"lost after it was applied":  releasedUnheard,
		"lost before it was applied": {outcome: gives, requests: "release @3, release @3"},
		"contended, contended, success": want{outcome: gives, requests: "release @3, release @3, load, release @3"}.
			but(want{outcome: gives, requests: "release @3, load, release @3', load, release @3''"}),
		"too many, too many, success":              {outcome: gives, requests: "release @3, release @3, load, release @3"},
		"contended, though it was applied":         releasedUnheard.but(want{outcome: gives, requests: "release @3, load"}),
		"a clean conflict":                         want{outcome: leaves, requests: "release @3"}.but(want{outcome: leaves, requests: "release @3, load"}),
		"a conflict after a lost answer":           {outcome: leaves, requests: "release @3, release @3, load"},
		"not allowed, then success":                {outcome: gives, requests: "release @3, release @3"},
		"the lease is gone":                        want{outcome: leaves, requests: "release @3"}.but(want{outcome: leaves, requests: "release @3, load"}),
		"an internal error, not applied":           {outcome: gives, requests: "release @3, release @3"},
		"an internal error, though it was applied": releasedUnheard,
		"a success after the deadline":             releasedUnheard,
		"a success without a version":              releasedUnheard,
		"half an answer":                           releasedUnheard,
		"no answer, and applied later":             {outcome: gives, settled: true, requests: "release @3, release @3, load"},
	},
	// The stop comes while the claim has no answer yet. The work never starts.
	stopping: {
		"success":                    {outcome: gives, requests: "replace @1, release @2"},
		"lost after it was applied":  stoppedUnheard,
		"lost before it was applied": {outcome: unsure, requests: "replace @1, load"},
		"contended, contended, success": want{outcome: unsure, requests: "replace @1, load"}.
			but(want{outcome: gives, requests: "replace @1, load, replace @1', load, replace @1'', load, release @2"}),
		"too many, too many, success":              {outcome: unsure, requests: "replace @1, load"},
		"contended, though it was applied":         stoppedUnheard.but(want{outcome: gives, requests: stoppedUnheard.requests}),
		"a clean conflict":                         want{outcome: leaves, requests: "replace @1"}.but(want{outcome: leaves, requests: "replace @1, load"}),
		"a conflict after a lost answer":           {outcome: leaves, requests: "replace @1, load"},
		"not allowed, then success":                {outcome: leaves, requests: "replace @1"},
		"the lease is gone":                        want{outcome: leaves, requests: "replace @1"}.but(want{outcome: leaves, requests: "replace @1, load"}),
		"an internal error, not applied":           {outcome: unsure, requests: "replace @1, load"},
		"an internal error, though it was applied": stoppedUnheard,
		"a success after the deadline":             stoppedUnheard,
		"a success without a version":              stoppedUnheard,
		"half an answer":                           stoppedUnheard,
		"no answer, and applied later":             stoppedUnheard,
	},
}
