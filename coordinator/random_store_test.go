package coordinator

import (
	"errors"
	"fmt"
	"time"

	"github.com/sf2loki/sf2loki-ha/cas"
)

// object is one state of the lease object in the simulated store.
type object struct {
	exists  bool
	version cas.Version
	rec     Record
	corrupt error
}

// lineage is what the store knows about a term, which no replica knows: what
// really landed, and who else touched the object since.
type lineage struct {
	epoch     int64
	landed    bool
	landedAt  int64   // real time of the acquisition
	counts    Instant // send of the latest write that landed, holder's clock
	touched   bool    // another term's write or an operator's hit the object
	byHand    bool    // an operator's did
	sentAt    map[string]Instant
	forgiven  bool  // rules 10 and 11 let this claim overlap another term
	usurped   bool  // such a claim has landed over this term
	firstSeen int64 // real time of the sighting it was claimed on
}

// objectStore is a linearizable conditional object and the checkpoint
// document's fence beside it.
type objectStore struct {
	s       *sim
	now     object
	past    []object
	n       int
	terms   map[string]*lineage
	epochs  int64 // highest epoch that ever landed
	touched bool  // an operator has interfered in this history

	doc     Fence
	docTerm string

	requests requestObject
	led      map[string]bool // revisions
}

func (st *objectStore) lease() (Lease, error) {
	if !st.now.exists {
		return Lease{}, cas.NotFound
	}
	return Lease{Version: st.now.version, Record: st.now.rec, Corrupt: st.now.corrupt}, nil
}

// apply is the instant at which a write meets the object.
func (st *objectStore) apply(r *simReplica, process int, a action) (cas.Version, error) {
	if a.cond.absent == st.now.exists || (!a.cond.absent && a.cond.version != st.now.version) {
		return "", cas.Conflict
	}
	l := st.terms[a.rec.Term]
	first := !l.landed
	if first {
		st.s.claimLands(r, process, a, l)
	}
	st.replaced(a.rec.Term, false)
	st.put(object{exists: true, rec: a.rec})
	if at, ok := l.sentAt[a.rec.WriteID]; ok {
		l.counts = max(l.counts, at)
	}
	if first {
		st.led[a.rec.Revision] = true
		l.landed, l.landedAt = true, st.s.now
		st.epochs = max(st.epochs, a.rec.Epoch)
	}
	if st.s.logging {
		st.s.note(r.name, "    landed %s: %s epoch %d term %s write %s", st.now.version, a.rec.State, a.rec.Epoch, a.rec.Term, a.rec.WriteID)
	}
	return st.now.version, nil
}

// replaced marks the term whose record goes away.
func (st *objectStore) replaced(by string, hand bool) {
	if l := st.terms[st.now.rec.Term]; st.now.exists && l != nil && st.now.rec.Term != by {
		l.touched = true
	}
	if hand {
		for _, l := range st.terms {
			l.touched, l.byHand = true, true
		}
		st.touched = true
	}
}

func (st *objectStore) put(o object) {
	st.n++
	if o.exists {
		o.version = cas.Version(fmt.Sprint("v", st.n))
	}
	st.past = append(st.past, o)
	st.now = o
}

var errJunk = errors.New("junk")

// meddle is an operator with another tool.
func (st *objectStore) meddle() {
	st.replaced("", true)
	what := "deleted"
	switch k := st.s.rng.IntN(10); {
	case k < 4 || len(st.past) == 0:
		st.put(object{})
	case k < 8:
		old := st.past[st.s.rng.IntN(len(st.past))]
		st.put(old)
		what = fmt.Sprintf("restored (%s epoch %d ttl %v)", old.rec.State, old.rec.Epoch, old.rec.TTL)
	case k < 9:
		st.put(object{exists: true, corrupt: errJunk})
		what = "overwritten with junk"
	default:
		st.put(object{exists: true, rec: Record{Holder: "upstream", Epoch: st.s.rng.Int64N(4)}})
		what = "overwritten by upstream"
	}
	st.s.note("operator", "lease %s -> %s", what, st.now.version)
}

// seal is what package checkpoint does before the work acts: the document
// accepts a higher epoch, or the same term again.
func (st *objectStore) seal(epoch int64, term string, ttl time.Duration) (floor int64, ok bool) {
	if epoch < st.doc.Epoch || (epoch == st.doc.Epoch && term != st.docTerm) {
		return st.doc.Epoch, false
	}
	st.doc, st.docTerm = Fence{Epoch: epoch, TTL: ttl, Found: true}, term
	return 0, true
}

// fate is what the network does to one request.
type fate struct {
	applied bool
	applyIn time.Duration // from the send
	answers bool          // the store's own answer comes back ...
	backIn  time.Duration // ... so long after it was applied
	class   cas.Class     // else, if not "", this class comes instead, after backIn
}

func (s *sim) fate(r *simReplica) fate {
	quick := func() time.Duration {
		return time.Millisecond + time.Duration(s.rng.Int64N(int64(15*time.Millisecond)))
	}
	f := fate{applied: true, applyIn: quick(), answers: true, backIn: quick()}
	if s.now < r.cutUntil {
		return fate{class: s.pick(cas.Ambiguous, cas.Ambiguous, ""), backIn: quick()}
	}
	if s.rng.Float64() >= s.trouble {
		return f
	}
	slow := func(limit time.Duration) time.Duration { return time.Duration(s.rng.Int64N(int64(limit))) }
	switch s.rng.IntN(7) {
	case 0: // the request is lost
		return fate{class: s.pick(cas.Ambiguous, ""), backIn: quick()}
	case 1: // refused, never applied
		return fate{class: s.pick(cas.Contended, cas.Denied, cas.Ambiguous, cas.NoBucket), backIn: quick()}
	case 2: // applied, the answer is lost
		f.answers, f.class = false, s.pick(cas.Ambiguous, cas.Contended, "")
	case 3: // lands long after its caller gave up
		f.applyIn = min(slow(20*time.Second), time.Duration(max(s.end-s.now, 0)))
		f.answers, f.class = false, ""
	case 4: // slow on the way there
		f.applyIn = slow(2 * time.Second)
	case 5: // slow on the way back
		f.backIn = slow(2 * time.Second)
	case 6: // two attempts in one: applied, and an error comes first
		f.answers, f.class, f.backIn = false, cas.Ambiguous, 0
		f.applyIn = slow(time.Second)
	}
	return f
}

func (s *sim) pick(of ...cas.Class) cas.Class { return of[s.rng.IntN(len(of))] }

// request carries one request of a replica to the store and back.
func (s *sim) request(r *simReplica, a action) {
	process, f := r.process, s.fate(r)
	answer := func(in input) {
		in.kind, in.op = inResult, a.op
		if r.process == process {
			r.feed(in)
		}
	}
	if f.applied {
		s.after(f.applyIn, func() {
			in := input{}
			switch a.kind {
			case doRead:
				in.lease, in.err = s.store.lease()
			case doAsk:
				in.fence, in.request = s.store.doc, s.store.requests.read(s.now)
			case doRequest:
				in.err = s.store.requests.write(s.now, a.request, a.cond.version)
			case doWrite:
				in.version, in.err = s.store.apply(r, process, a)
			}
			if f.answers {
				s.after(f.backIn, func() { answer(in) })
			}
		})
	}
	if !f.answers && f.class != "" {
		s.after(f.backIn, func() { answer(input{err: f.class}) })
	}
	if s.rng.IntN(4) > 0 { // the call keeps its deadline; else the machine gives up
		s.after(time.Duration(float64(a.timeout)/r.rate), func() { answer(input{err: cas.Ambiguous}) })
	}
}
