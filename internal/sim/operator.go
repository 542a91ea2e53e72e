package sim

import (
	"fmt"
	"strings"
	"time"

	"github.com/sf2loki/sf2loki-ha/checkpoint"
	"github.com/sf2loki/sf2loki-ha/coordinator"
)

// meddle is an operator with another tool, and the lease.
func (w *world) meddle() {
	g := w.groups[0]
	r := w.bucket.open(g.lease)
	w.byHand(g)
	o, what := object{}, "deletes it"
	switch k := w.rng.IntN(11); {
	case k < 4 || len(r.past) == 0:
	case k < 8:
		o, what = r.past[w.rng.IntN(len(r.past))], "restores an old version"
	case k < 9:
		o, what = object{exists: true, data: []byte("junk")}, "overwrites it with junk"
	case k < 10:
		data := fmt.Sprintf(`{"holder":"upstream","expires_at":"2026-01-01T00:00:00Z","epoch":%d}`, w.rng.IntN(4))
		o, what = object{exists: true, data: []byte(data)}, "overwrites it with a record of sf2loki's file lease"
	default:
		if rec := r.now.rec; r.now.exists && r.now.corrupt == nil {
			rec.Lease, rec.State, rec.Incarnation, rec.Epoch = "sim://elsewhere", coordinator.Released, "elsewhere", rec.Epoch+w.rng.Int64N(3)
			rec.Term, rec.WriteID = fmt.Sprint("elsewhere.", r.n), fmt.Sprint("elsewhere.", r.n)
			data, _ := rec.Marshal()
			o, what = object{exists: true, data: data}, "copies what another lease has released there"
		}
	}
	if o.exists {
		o.rec, o.corrupt = coordinator.ParseRecord(o.data)
	}
	w.write(r, o)
	w.note("operator", "%s: %s, now %s", g.lease, what, r.now.version)
}

// byHand notes that somebody writes the lease of a group who is no replica.
func (w *world) byHand(g *group) {
	w.replaced(w.bucket.open(g.lease), "")
	for _, l := range w.terms {
		if l.g == g {
			l.touched, l.byHand = true, true
		}
	}
	g.touched = true
}

// rollBack is the end of a deployment of a newer program: it led last, all of it
// is gone, and ours come back. Its record has fields that nobody here knows, and
// may say that readers of our version must not take it over.
func (w *world) rollBack() {
	g := w.groups[0]
	for _, r := range w.replicas {
		if r.g == g {
			r.kill(true)
			w.after(w.upTo(5*time.Second), r.boot)
		}
	}
	w.byHand(g)
	g.epochs = max(g.epochs, w.document.fence.Epoch) + 1
	state, least, term := "held", w.rng.IntN(3), fmt.Sprint("newer.", g.epochs)
	if w.oneIn(2) {
		state = "released"
	}
	o := object{exists: true, data: fmt.Appendf(nil,
		`{"holder":"newer","epoch":%d,"version":2,"min_version":%d,"lease":"sim://%s","incarnation":"newer","term":%q,"write_id":%q,"ttl_ms":9000,"state":%q,"quorum":{"of":3}}`,
		g.epochs, least, g.lease, term, term, state)}
	if o.rec, o.corrupt = coordinator.ParseRecord(o.data); o.corrupt != nil {
		panic(o.corrupt)
	}
	w.write(w.bucket.open(g.lease), o)
	w.note("operator", "%s: rolls back from version 2 with min_version %d, %s at epoch %d", g.lease, least, state, g.epochs)
}

// tamper is the same with the checkpoint document.
func (w *world) tamper() {
	r := w.bucket.open(documentName)
	if !r.now.exists {
		return
	}
	o, what := object{}, "deletes it"
	switch w.rng.IntN(5) {
	case 0:
	case 1:
		o, what = object{exists: true, data: []byte(`{"position":"3","__fence__":`)}, "cuts it off"
	case 2:
		text := strings.Replace(string(r.now.data), `"__fence_epoch__": "`, `"__fence_epoch__": "-`, 1)
		o, what = object{exists: true, data: []byte(text)}, "damages its fence"
	case 3:
		o, what = object{exists: true, data: []byte(`{"position":"2"}`)}, "puts one of sf2loki's there"
	default:
		o, what = r.past[w.rng.IntN(len(r.past))], "restores an old version"
	}
	w.replaceDocument(o, what)
}

// replaceDocument is a write of the document by hand. What the work had reached
// is not lost by the pair then, and the fence is what the operator says it is.
func (w *world) replaceDocument(o object, what string) {
	d := &w.document
	if d.read(&o); o.corrupt != nil {
		w.complaints = 0
	}
	d.tampered, d.byHand, d.reached = true, true, max(d.reached, d.done)
	d.fence, d.by, d.done = o.fence, o.fence.Term, o.done
	w.write(w.bucket.open(documentName), o)
	w.note("operator", "%s: %s, now %s", documentName, what, w.bucket.open(documentName).now.version)
}

// repair is what the messages of the pair ask an operator for, once the faults
// have stopped: a document that cannot be read is brought back, or deleted, and
// so is a lease that keeps readers of our version away.
func (w *world) repair() {
	if w.broken != "" {
		return
	}
	for _, g := range w.groups {
		r := w.bucket.open(g.lease)
		if !r.now.exists || r.now.corrupt != nil || r.now.rec.MinVersion <= coordinator.RecordVersion {
			continue
		}
		// Nobody else may lead, however long it takes.
		before := r.now.version
		w.run(w.now + int64(30*time.Second))
		w.require(r.now.version == before, "claims a record that is for newer readers alone")
		w.note("operator", "%s: deletes what is for newer readers", g.lease)
		w.write(r, object{})
	}
	if r := w.bucket.open(documentName); r.now.corrupt != nil {
		// The pair has to say so, and to leave it as it is.
		end := w.now + int64(w.bound())
		for w.complaints == 0 && w.now < end {
			w.run(w.now + int64(100*time.Millisecond))
		}
		w.require(w.complaints > 0, "nobody says that the document is damaged")
		o := object{}
		for _, past := range r.past {
			if past.exists && past.corrupt == nil && past.fence.Epoch >= o.fence.Epoch {
				o = past
			}
		}
		w.replaceDocument(o, "repairs it")
	}
}

// read takes in what an object of the document says.
func (d *sealing) read(o *object) {
	if !o.exists {
		return
	}
	var doc *checkpoint.Document
	if doc, o.corrupt = checkpoint.ParseDocument(o.data); o.corrupt == nil {
		o.fence, o.corrupt = doc.Fence()
		o.done = position(doc.Get)
	}
}
