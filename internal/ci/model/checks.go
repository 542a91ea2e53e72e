package main

import "strings"

// check is one search of one model.
type check struct {
	model   string // the .pml in docs/model
	name    string
	defines string
	// found is the invariant that has to be violated, or "" if none may be.
	found string
	deep  bool // only on request
	// heavy: it takes more than half of the memory, so that no other runs beside it.
	heavy bool
}

// kind is what a check is for: the protocol, a mutant of it, a documented limit,
// or a witness that a situation occurs at all.
func (c check) kind() string {
	switch {
	case c.found == "":
		return "protocol"
	case c.found == witnessed:
		return "witness"
	case strings.Contains(c.defines, "LIMIT_"):
		return "limit"
	}
	return "mutant"
}

// replicas is N of the model; guard has one.
func (c check) replicas() int {
	switch {
	case c.model == "guard":
		return 1
	case strings.Contains(c.defines, "N=3"):
		return 3
	}
	return 2
}

// row is what docs/model/README.md says of a check; for the protocol the figures
// that were measured follow.
func (c check) row() string {
	defines := strings.ReplaceAll(strings.Join(strings.Fields(c.defines), "` `"), "WITNESS=", "")
	row := "| " + c.model + " | " + c.name + " | `" + defines + "` |"
	switch c.kind() {
	case "mutant", "limit":
		row += " " + c.found + " |"
	}
	return row
}

// Invariants, as docs/testing.md and the models cite them, and rules by number.
const (
	i1        = "I1"
	i2        = "I2"
	i3        = "I3"
	i4        = "I4"
	i5        = "I5"
	i6        = "I6"
	i7        = "I7"
	rule6     = "rule 6"
	rule8     = "rule 8"
	bound     = "bound"
	witnessed = "occurs"
)

// assertions tell which invariant an assertion of a model stands for, by what
// the generated program prints of it. The first that fits counts.
var assertions = map[string][]struct{ text, invariant string }{
	"lease": {
		{"acting[i]", i1}, {"highest", i2}, {"calmTicks", i5}, {"owner[store]", i7}, {"(j>0)", rule6},
		{"moves<", bound}, {"i<=", bound},
	},
	"fence": {{">docEpoch", i2}, {"==sealed", i3}, {">=docCp", i6}},
	"guard": {{"deadline>0", i4}, {"child", rule8}},
}

// The searches. Bounds not given are those at the top of a model.
const (
	document = "DOC FORMER "
	fleet    = "N=3 TTL=2 LATE=0 "
)

var checks = []check{
	// The protocol holds.
	{model: "lease", name: "three replicas", defines: "N=3 LATE=0", heavy: true},
	{model: "lease", name: "three replicas, lease deleted", defines: fleet + document + "DELETES=1", heavy: true},
	{model: "lease", name: "three replicas, old tombstone restored", defines: fleet + document + "RESTORES=1"},
	{model: "lease", name: "lost and late answers, freezes, stops", defines: "EPOCHS=3"},
	{model: "lease", name: "two late writes of one process", defines: "LATE=2"},
	{model: "lease", name: "reads that take long", defines: "SLOWREAD"},
	{model: "lease", name: "clocks of different rates", defines: "DRIFT TTL=4"},
	{model: "lease", name: "crash and restart", defines: "CRASHES=1"},
	{model: "lease", name: "lease deleted, no document", defines: "DELETES=1"},
	{model: "lease", name: "lease deleted, with document", defines: document + "EPOCHS=3 DELETES=1 LATE=0"},
	{model: "lease", name: "lease deleted, with a document of its own", defines: "DOC DELETES=1 LATE=0"},
	{model: "lease", name: "old tombstone restored", defines: document + "EPOCHS=3 RESTORES=1 LATE=0"},
	{model: "lease", name: "different ttls, lease deleted", defines: document + "EPOCHS=3 DELETES=1 LATE=0 MIXED"},
	{model: "lease", name: "leader within ttl + 1", defines: "LIVE"},
	{model: "lease", name: "leader within ttl + 1, after a crash", defines: "LIVE CRASHES=1 LATE=0"},
	{model: "lease", name: "leader within ttl + 1, lease deleted", defines: "LIVE " + document + "DELETES=1 LATE=0"},
	{model: "lease", name: "leader within ttl + 1, three replicas", defines: "LIVE N=3 EPOCHS=1 LATE=0"},
	{model: "fence", name: "seal and commit", defines: "EPOCHS=3 STEPS=3"},
	{model: "fence", name: "seal, and a child of its own store", defines: "EPOCHS=3 STEPS=3 CHILD"},
	{model: "fence", name: "seal and commit, three replicas", defines: "N=3 STEPS=2"},
	{model: "fence", name: "seal, and a child, three replicas", defines: "N=3 STEPS=2 CHILD"},
	{model: "guard", name: "guard, supervisor, tree", defines: "LIFE=4"},

	// Wider.
	{model: "lease", name: "four terms", defines: "EPOCHS=4", deep: true},
	{model: "lease", name: "ttl of five ticks", defines: "TTL=5 EPOCHS=3", deep: true},
	{model: "lease", name: "lease deleted, with document, late writes", defines: document + "EPOCHS=3 DELETES=1", deep: true},
	{model: "lease", name: "the same, a document of its own", defines: "DOC DELETES=1", deep: true},
	{model: "lease", name: "old tombstone restored, late writes", defines: document + "EPOCHS=3 RESTORES=1", deep: true},
	{model: "lease", name: "leader within ttl + 1, old tombstone restored", defines: "LIVE " + document + "EPOCHS=3 RESTORES=1 LATE=0", deep: true},
	{model: "lease", name: "leader within ttl + 1, three replicas, a crash", defines: "LIVE N=3 EPOCHS=1 CRASHES=1 LATE=0", deep: true},
	{model: "lease", name: "leader within ttl + 1, three, after a former", defines: "LIVE N=3 " + document + "LATE=0", deep: true},
	{model: "lease", name: "three replicas, late writes", defines: "N=3", deep: true},
	{model: "lease", name: "three replicas, three terms", defines: fleet + "EPOCHS=3", deep: true},
	{model: "fence", name: "three replicas, three epochs", defines: "N=3 EPOCHS=3 STEPS=3", deep: true},
	{model: "fence", name: "the same with a child", defines: "N=3 EPOCHS=3 STEPS=3 CHILD", deep: true},
	{model: "guard", name: "longer lease", defines: "LIFE=8", deep: true},
	// Replicas are not sorted: that saves states and must change nothing else.
	{model: "lease", name: "two replicas as they are", defines: "EPOCHS=3 UNSORTED", deep: true},
	{model: "lease", name: "three replicas as they are", defines: fleet + "UNSORTED", deep: true},
	{model: "fence", name: "three replicas as they are", defines: "N=3 STEPS=2 UNSORTED", deep: true},
	{model: "lease", name: "restore, if the lease were read after the seal", defines: document + "EPOCHS=3 RESTORES=1 LATE=0 LIMIT_UNSEALED READ_AFTER_SEAL", deep: true},
	{model: "lease", name: "deletion, if the lease were read after the seal", defines: document + "EPOCHS=3 DELETES=1 LATE=0 MIXED LIMIT_UNSEALED READ_AFTER_SEAL", deep: true},

	// Mutants are found.
	{model: "lease", name: "412 always lost", defines: "MUT_412_ALWAYS_LOST", found: i7},
	{model: "lease", name: "412 always questioned", defines: "MUT_412_ALWAYS_QUESTIONED DELETES=1", found: rule6},
	{model: "lease", name: "no answer, or 409, is a refusal", defines: "MUT_NO_ANSWER_IS_A_REFUSAL", found: i7},
	{model: "lease", name: "a read of the old version settles", defines: "MUT_OLD_VERSION_SETTLES", found: i7},
	{model: "lease", name: "every read starts staleness anew", defines: "MUT_EVERY_READ_RESTARTS LIVE", found: i5},
	{model: "lease", name: "count from receive", defines: "MUT_COUNT_FROM_RECEIVE", found: i1},
	{model: "lease", name: "settled write counts from the latest send", defines: "MUT_SETTLE_AS_LATEST", found: i1},
	{model: "lease", name: "observer counts from send", defines: "MUT_OBSERVER_FROM_SEND", found: i1},
	{model: "lease", name: "wall-clock expiry", defines: "MUT_WALL_CLOCK", found: i1},
	{model: "lease", name: "missing = free at once", defines: "MUT_MISSING_IS_FREE DELETES=1", found: i1},
	{model: "lease", name: "absence dated from an older record", defines: "MUT_ABSENCE_FROM_RECORD DELETES=1", found: i1},
	{model: "lease", name: "absence counts on over a new seal", defines: "MUT_ABSENCE_KEEPS_COUNTING DOC DELETES=1", found: i1},
	{model: "lease", name: "tombstone always trusted", defines: "MUT_TOMBSTONE_TRUSTED " + document + "EPOCHS=3 RESTORES=1", found: i1},
	{model: "lease", name: "window = own ttl", defines: "MUT_OWN_TTL_ONLY MIXED", found: i1},
	{model: "lease", name: "release before stop", defines: "MUT_RELEASE_BEFORE_STOP", found: i1},
	{model: "lease", name: "delete on release", defines: "MUT_DELETE_ON_RELEASE", found: i2},
	{model: "lease", name: "no allowance for drift", defines: "MUT_NO_DRIFT_ALLOWANCE DRIFT TTL=4", found: i1},
	{model: "lease", name: "killed by the supervisor", defines: "MUT_GUARD_BY_SUPERVISOR", found: i1},
	{model: "fence", name: "no seal", defines: "MUT_NO_SEAL", found: i3},
	{model: "fence", name: "seal at equal epoch", defines: "MUT_SEAL_AT_EQUAL_EPOCH", found: i2},
	{model: "fence", name: "seal without version condition", defines: "MUT_SEAL_WITHOUT_CONDITION", found: i2},
	{model: "fence", name: "no seal at a restart of the work", defines: "MUT_NO_SEAL_AT_RESTART", found: i6},
	{model: "fence", name: "unanswered seal taken for landed", defines: "MUT_LOST_SEAL_COUNTS", found: i3},
	{model: "fence", name: "commit without version condition", defines: "MUT_COMMIT_WITHOUT_CONDITION", found: i3},
	{model: "fence", name: "the same of a child", defines: "MUT_COMMIT_WITHOUT_CONDITION CHILD", found: i3},
	{model: "fence", name: "conflict merged without looking at the fence", defines: "MUT_NO_JUDGE", found: i3},
	{model: "guard", name: "guard timed by supervisor", defines: "MUT_TIMED_BY_SUPERVISOR", found: i4},
	{model: "guard", name: "fork before the instant", defines: "MUT_FORK_BEFORE_THE_INSTANT", found: i4},
	{model: "guard", name: "instant as a duration", defines: "MUT_RELATIVE_INSTANT", found: i4},
	{model: "guard", name: "timer stands still in a suspend", defines: "MUT_TIMER_STANDS_STILL", found: i4},
	{model: "guard", name: "no kill margin", defines: "MUT_NO_MARGIN", found: i4},
	{model: "guard", name: "instant counted from receive", defines: "MUT_COUNT_FROM_RECEIVE", found: i4},
	{model: "guard", name: "release before the tree is gone", defines: "MUT_RELEASE_BEFORE_GONE", found: rule8},
	{model: "guard", name: "no sweep after the guard's death", defines: "MUT_NO_SWEEP", found: rule8},

	// Limits are real: without the exclusion that README.md states, this happens.
	{model: "lease", name: "two absences that look like one", defines: "LIMIT_TWO_ABSENCES DELETES=1", found: i1},
	{model: "lease", name: "the same, with document", defines: "LIMIT_TWO_ABSENCES DELETES=1 DOC LATE=0", found: i1},
	{model: "lease", name: "restore over a term that has not sealed", defines: "LIMIT_UNSEALED " + document + "EPOCHS=3 RESTORES=1 LATE=0", found: i1},
	{model: "lease", name: "deletion of such a term, different ttls", defines: "LIMIT_UNSEALED " + document + "EPOCHS=3 DELETES=1 LATE=0 MIXED", found: i1},
	{model: "fence", name: "child that loads after a later seal", defines: "LIMIT_LOADS_LATE CHILD", found: i3},

	// What the searches are about does occur in them.
	{model: "lease", name: "claim settled by a read", defines: "WITNESS=CLAIM_SETTLED_BY_READ", found: witnessed},
	{model: "lease", name: "renewal settled by a read", defines: "WITNESS=RENEWAL_SETTLED_BY_READ", found: witnessed},
	{model: "lease", name: "release settled by a read", defines: "WITNESS=RELEASE_SETTLED_BY_READ", found: witnessed},
	{model: "lease", name: "loss settled by a read", defines: "WITNESS=LOST_BY_READ", found: witnessed},
	{model: "lease", name: "loss by a clean conflict", defines: "WITNESS=LOST_BY_CLEAN_CONFLICT", found: witnessed},
	{model: "lease", name: "tombstone claimed at once", defines: "WITNESS=TOMBSTONE_CLAIMED", found: witnessed},
	{model: "lease", name: "late write of a process that moved on", defines: "WITNESS=LATE_WRITE_LANDS", found: witnessed},
	{model: "lease", name: "work in the last epoch", defines: "WITNESS=LAST_EPOCH_ACTS EPOCHS=3", found: witnessed},
	{model: "lease", name: "tombstone distrusted by the fence", defines: "WITNESS=TOMBSTONE_DISTRUSTED " + document + "EPOCHS=3 RESTORES=1", found: witnessed},
	{model: "lease", name: "absence counts anew over a new seal", defines: "WITNESS=ABSENCE_COUNTS_ANEW DOC DELETES=1", found: witnessed},
	{model: "lease", name: "seal refused", defines: "WITNESS=SEAL_REFUSED " + document + "RESTORES=1 LIMIT_UNSEALED", found: witnessed},
	{model: "fence", name: "seal settled by a read", defines: "WITNESS=SEAL_SETTLED_BY_READ", found: witnessed},
	{model: "fence", name: "commit settled by a read", defines: "WITNESS=COMMIT_SETTLED_BY_READ", found: witnessed},
	{model: "fence", name: "commit fenced", defines: "WITNESS=COMMIT_FENCED", found: witnessed},
	{model: "fence", name: "commit merged", defines: "WITNESS=COMMIT_MERGED", found: witnessed},
	{model: "fence", name: "late seal", defines: "WITNESS=LATE_SEAL_LANDS", found: witnessed},
	{model: "fence", name: "late commit", defines: "WITNESS=LATE_COMMIT_LANDS", found: witnessed},
	{model: "fence", name: "last step in the last epoch", defines: "WITNESS=LAST_STEP", found: witnessed},
	{model: "guard", name: "instant moved on", defines: "WITNESS=PROLONGED", found: witnessed},
	{model: "guard", name: "instant that has passed", defines: "WITNESS=NEVER_FORKS", found: witnessed},
	{model: "guard", name: "tree killed while the supervisor is frozen", defines: "WITNESS=KILLED_WHILE_FROZEN", found: witnessed},
	{model: "guard", name: "frozen guard replaced by the supervisor", defines: "WITNESS=TAKEN_OVER", found: witnessed},
	{model: "guard", name: "tree killed after a freeze of everything", defines: "WITNESS=DIES_AFTER_A_FREEZE", found: witnessed},
}
