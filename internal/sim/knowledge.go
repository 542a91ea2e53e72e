package sim

import (
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/sf2loki/sf2loki-ha/cas"
	"github.com/sf2loki/sf2loki-ha/checkpoint"
	"github.com/sf2loki/sf2loki-ha/coordinator"
)

// knowledge is what one process has been told, kept apart from the election so
// that its decisions can be judged without it.
type knowledge struct {
	versions map[condition]bool // of the lease, that were read or written
	terms    map[string]bool    // whose records were read
	doubts   map[condition]bool // conditions with an attempt without a definite answer
	epoch    int64
	ttl      time.Duration
	heldBy   string // incarnation of the held record of heldAt
	heldAt   int64

	known     bool
	lease     object
	since     coordinator.Instant
	sinceReal int64

	// Read since the last claim.
	fence     *checkpoint.Fence
	fenceAt   int64
	requestAt int64 // real time of the request object that was read
	request   *coordinator.Request
	holdOf    cas.Version // the request document that was read last
	holdEnd   coordinator.Instant
	obeyed    map[string]bool
	// said is the request that was obeyed in a term, for its next record.
	said, saidOf string

	// The term whose work was told to end, and when; and the one it was late in.
	toldOf, overran string
	toldAt          coordinator.Instant
	// failed are the failures of the work of a term that the election was told of.
	failed   int
	failedOf string
	// stayOut is the end of a stay-out after failed terms in a row.
	stayOut coordinator.Instant
	strikes int
	// renewed: the last write of the lease was a success.
	renewed bool

	ops       map[string]int // requests by their names
	lastWrite coordinator.Instant
	writes    int
	requests  []coordinator.Instant
	idle      int // steps in a row that did nothing and want another at once
}

// loaded is a definite answer to a read.
type loaded struct {
	object string
	state  object
	at     int64 // in real time
}

// leaseWrite is a write of a lease.
type leaseWrite struct {
	on      condition
	rec     coordinator.Record
	version cas.Version // that the answer gave
}

func newKnowledge() knowledge {
	return knowledge{versions: map[condition]bool{}, terms: map[string]bool{}, doubts: map[condition]bool{}, obeyed: map[string]bool{}, ops: map[string]int{}}
}

// made is how many requests of each name it has made.
func (k *knowledge) made() map[string]int { return maps.Clone(k.ops) }

// learn takes the answer that the election takes.
func (p *process) learn(t *task, err error) {
	k, at, g := &p.k, p.r.Now(), p.r.g
	for _, l := range t.loads {
		switch {
		case l.object == g.lease:
			k.learnLease(l.state, at, p.r.w.now)
			if rec := l.state.rec; rec.Incarnation == p.m.Incarnation() && rec.Epoch >= k.heldAt {
				k.heldAt, k.heldBy = rec.Epoch, rec.Incarnation // it knows what it held itself
			}
		case err != nil:
			// Of two that were asked one did not answer.
		case l.object == documentName:
			f := l.state.fence
			k.fence, k.fenceAt = &f, l.at
			k.ttl = max(k.ttl, min(f.TTL, coordinator.MaxTTL))
		case l.object == g.requests():
			k.learnRequest(l.state, at, p.r.w.now)
			k.requestAt = l.at
		}
	}
	if t.write == nil {
		return
	}
	switch class := cas.ClassOf(err); {
	case class == "":
		k.renewed = true
		k.learnLease(object{exists: true, version: t.write.version, rec: t.write.rec}, at, p.r.w.now)
	case !class.Definite():
		k.doubts[t.write.on] = true
	}
}

func (k *knowledge) learnLease(o object, at coordinator.Instant, real int64) {
	if !k.known || o.exists != k.lease.exists || o.version != k.lease.version {
		k.known, k.lease, k.since, k.sinceReal = true, o, at, real
		k.fence, k.request = nil, nil // they were read for another attempt
	}
	if !o.exists {
		return
	}
	k.versions[condition(o.version)] = true
	if o.corrupt != nil {
		return
	}
	k.terms[o.rec.Term] = true
	k.epoch, k.ttl = max(k.epoch, o.rec.Epoch), max(k.ttl, o.rec.TTL)
	if o.rec.State != coordinator.Released && o.rec.Epoch >= k.heldAt {
		k.heldAt, k.heldBy = o.rec.Epoch, o.rec.Incarnation
	}
}

func (k *knowledge) learnRequest(o object, at coordinator.Instant, now int64) {
	r := coordinator.Request{}
	if o.exists {
		r, _ = coordinator.ParseRequest(o.data)
	}
	end := coordinator.Instant(0)
	if h := r.Hold; h != nil {
		end = at.Add(h.For - time.Duration(now-o.written))
		if k.holdOf == o.version {
			end = min(end, k.holdEnd) // the earliest that one document gave
		}
	}
	k.request, k.holdOf, k.holdEnd = &r, o.version, end
}

// pause is how long the crash back-off of a record makes a process wait.
func pause(r coordinator.Record, incarnation string) time.Duration {
	if slices.Contains(r.Work.Incarnations, incarnation) {
		return r.Work.Backoff
	}
	return 0
}

// note counts a failure of the work that the election is told of.
func (k *knowledge) note(w *work) { k.failed, k.failedOf = w.failures, w.term.ID() }

// worked learns from the end of the work of a term.
func (k *knowledge) worked(w *work, err error) {
	if f := (*checkpoint.FencedError)(nil); errors.As(err, &f) {
		k.epoch = max(k.epoch, f.Epoch)
	}
	switch {
	case w.p.m.State().Phase != "leading", errors.Is(err, coordinator.ErrCrashLoop):
	case err == nil:
		k.strikes = 0
	default:
		if k.strikes++; w.p.r.w.now-w.began >= int64(time.Minute) {
			k.strikes = 1
		}
		k.stayOut = w.p.r.Now().Add(min(time.Minute, w.p.r.cfg.TTL<<min(k.strikes, 6)))
	}
}
