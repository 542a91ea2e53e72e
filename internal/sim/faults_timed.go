package sim

import (
	"fmt"
	"time"

	"github.com/sf2loki/sf2loki-ha/cas"
	"github.com/sf2loki/sf2loki-ha/coordinator"
)

// strikeFleet is a fault of more than one replica, or one that waits for its
// moment.
func (w *world) strikeFleet(r *replica) {
	length := w.upTo(12 * time.Second)
	switch w.rng.IntN(6) {
	case 0: // a zone, or an image, fails
		w.note("platform", "kills all")
		for _, r := range w.replicas {
			r.kill(true)
			w.after(length+w.upTo(time.Second), r.boot)
		}
	case 1:
		w.deploy()
	case 2:
		w.succeed(r)
	case 3:
		r.trap = []string{"renewal", "seal"}[w.rng.IntN(2)]
		w.note(r.name, "will be frozen around its next %s", r.trap)
	case 4:
		w.stopFrozen(r, length)
	default:
		if !w.calm {
			w.rollBack()
		}
	}
}

// deploy replaces every replica by another one, which starts before the old one
// is asked to end, or with it (at most 200 % and 100 % of the pair).
func (w *world) deploy() {
	if len(w.replicas) > 3 {
		return // one is under way
	}
	w.note("platform", "deploys")
	surge := w.oneIn(2)
	for i, old := range w.replicas {
		r := old.copy(string(rune('d' + i)))
		w.replicas = append(w.replicas, r)
		begin := w.now + int64(w.upTo(10*time.Second))
		w.at(begin, func() {
			if w.calm {
				return
			}
			old.retired = true
			if surge || old.p == nil {
				r.boot()
			} else {
				old.next = r.boot
			}
			w.after(w.upTo(3*time.Second), func() {
				if old.p != nil && !w.calm {
					old.p.stop()
				}
			})
		})
	}
}

// copy is another machine with the same configuration.
func (r *replica) copy(name string) *replica {
	w := r.w
	n := &replica{w: w, g: r.g, name: name, cfg: r.cfg, rate: w.clockRate(w.rng.IntN(2)), offset: w.rng.Int64N(int64(1000 * time.Hour)), wall: r.wall}
	if w.rolling {
		n.cfg.Revision = fmt.Sprint("r", w.rng.IntN(4))
	}
	return n
}

// succeed lets another replica start in the middle of a handover.
func (w *world) succeed(r *replica) {
	l := w.leader()
	if l == nil || l == r || l.g != r.g {
		return
	}
	w.note(r.name, "starts in the middle of a handover")
	r.kill(true)
	l.p.stop()
	w.after(w.upTo(2*time.Second), r.boot)
}

// spring freezes everything of a replica just when its renewal, or its seal, is
// under way, for about as long as a lease lasts.
func (r *replica) spring(now string) {
	if r.trap != now || r.w.calm {
		return
	}
	r.trap = ""
	w, ttl := r.w, r.cfg.TTL
	w.after(w.upTo(30*time.Millisecond), func() {
		r.freeze("everything", ttl-r.cfg.RenewInterval+w.upTo(2*r.cfg.RenewInterval))
	})
}

// stopFrozen asks a process to end that stands still.
func (w *world) stopFrozen(r *replica, length time.Duration) {
	if l := w.leader(); l != nil {
		r = l
	}
	r.freeze([]string{"supervisor", "everything"}[w.rng.IntN(2)], length)
	if p := r.p; p != nil {
		w.after(w.upTo(length), func() {
			if !w.calm && !p.dead && w.now < p.frozenUntil {
				w.note(r.name, "asked to end while it is frozen")
				p.stop()
			}
		})
	}
}

// outage is a time in which the bucket refuses requests, or does not answer.
type outage struct {
	until int64
	// class is the answer; "" is none, or an answer that tells nothing.
	class cas.Class
	// object and writes narrow it: a permission that is missing.
	object string
	writes bool
}

func (w *world) breakDown() {
	o := outage{until: min(w.end, w.now+int64(w.upTo(15*time.Second)))}
	if w.oneIn(2) {
		o.class = w.pick(cas.Denied, cas.Contended, cas.NoBucket)
		o.object = []string{"", "", w.groups[0].lease, documentName, w.groups[0].lease + coordinator.RequestSuffix}[w.rng.IntN(5)]
		o.writes = w.oneIn(2)
	}
	w.outage = o
	if o.class == "" {
		w.note("bucket", "answers nobody until %.3fs", time.Duration(o.until).Seconds())
		return
	}
	w.note("bucket", "refuses until %.3fs: %s on %q, only writes: %v", time.Duration(o.until).Seconds(), o.class, o.object, o.writes)
}

// hits reports whether the outage is one for this request.
func (o outage) hits(now int64, q request) bool {
	return now < o.until && (o.object == "" || o.object == q.object) && (!o.writes || q.write)
}
