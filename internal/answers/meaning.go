package answers

import "github.com/sf2loki/sf2loki-ha/cas"

// Meaning is a row of the table: what an answer says. Load, Create and Replace
// are its classes by what was asked, as in design.md section 6; "" is success.
type Meaning struct {
	Name                  string
	Load, Create, Replace cas.Class
}

// The rows that the tests of elections use.
const (
	Success        = "success"
	NoVersion      = "success without a version"
	NoKey          = "no such key"
	NoBucket       = "no such bucket"
	ConditionFalse = "the condition is false"
	Elsewhere      = "something else about the object changed"
	GaveUp         = "the store gave up on concurrent requests"
	TooMany        = "too many requests"
	InternalError  = "an internal error"
	Unavailable    = "unavailable, or slow down"
	ResetBefore    = "reset before the request was read"
	ResetAfter     = "reset after the request was read"
	NoAnswer       = "no answer until the deadline"
	Late           = "a success after the deadline"
	NotAllowed     = "not allowed"
)

func same(name string, c cas.Class) Meaning { return Meaning{name, c, c, c} }

// Meanings are the rows of the table.
var Meanings = []Meaning{
	// 1. Done: 2xx and a version.
	{Success, "", "", ""},
	same(NoVersion, cas.Ambiguous),
	same("a success with nothing in it", cas.Ambiguous),
	same("a success of something else", cas.Ambiguous),
	same("accepted, not done", cas.Ambiguous),

	// 2. Something is not there. Only the store's own word about this very key is
	// absence: it can be claimed, and to a holder it is a loss.
	{NoKey, cas.NotFound, cas.Ambiguous, cas.Conflict},
	same(NoBucket, cas.NoBucket),
	{"not found, without saying what", cas.NotFound, cas.NoBucket, cas.NoBucket},
	same("a 404 that is not the store's", cas.Ambiguous),
	same("half of a 404", cas.Ambiguous),

	// 3. The condition. A read sends none.
	{ConditionFalse, cas.Ambiguous, cas.Conflict, cas.Conflict},
	{"the condition is false, with status 200", cas.Ambiguous, cas.Conflict, cas.Conflict},
	{"the object exists, with status 304", cas.Ambiguous, cas.Conflict, cas.Ambiguous},
	{"half of a conflict", cas.Ambiguous, cas.Conflict, cas.Conflict},
	{Elsewhere, "", "", ""},

	// 4. Contended: may have been applied.
	same(GaveUp, cas.Contended),
	same(TooMany, cas.Contended),

	// 5. No definite answer.
	same(InternalError, cas.Ambiguous),
	same("an internal error with status 200", cas.Ambiguous),
	same("a bad gateway", cas.Ambiguous),
	same(Unavailable, cas.Ambiguous),
	same("a gateway's timeout", cas.Ambiguous),
	same("the request came too slowly", cas.Ambiguous),
	same(ResetBefore, cas.Ambiguous),
	same(ResetAfter, cas.Ambiguous),
	same("half of the headers", cas.Ambiguous),
	same("half of the body", cas.Ambiguous),
	same("half of the body, then a reset", cas.Ambiguous),
	same("a chunked body without its end", cas.Ambiguous),
	same("a body that does not fit its checksum", cas.Ambiguous),
	same("garbage instead of a document", cas.Ambiguous),
	same("a refusal that nobody knows", cas.Ambiguous),
	same(NoAnswer, cas.Ambiguous),
	same(Late, cas.Ambiguous),

	// 6. The object is not ours.
	{"an object that is no record", cas.Corrupt, "", ""},
	{"an epoch out of range", cas.Corrupt, "", ""},
	{"an object too large", cas.Corrupt, "", ""},

	// 7. Refused: certainly not applied.
	same("not authenticated", cas.Denied),
	same(NotAllowed, cas.Denied),
	same("credentials that have expired or are wrong", cas.Denied),
	same("a key for encryption that refuses", cas.Denied),
	same("a policy that forbids this write", cas.Denied),

	// 8. The configuration is wrong.
	same("a redirect", cas.NoBucket),
	same("another region, said with a 400", cas.NoBucket),
	same("an impossible name", cas.NoBucket),

	// 9. The store cannot carry a lease.
	same("not implemented", cas.Unsupported),
	same("not implemented, said with a 400", cas.Unsupported),
}

// silent rows answer nothing while the caller waits.
var silent = map[string]bool{NoAnswer: true, Late: true}
