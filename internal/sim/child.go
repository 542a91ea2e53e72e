package sim

import (
	"context"
	"errors"
	"strconv"
	"time"

	"github.com/sf2loki/sf2loki-ha/cas"
	"github.com/sf2loki/sf2loki-ha/checkpoint"
)

// child is the work itself: it acts, and commits how far it has come.
type child struct {
	g       *guardian
	term    string
	lineage *lineage

	alive       bool
	dying       bool
	draining    bool
	stubborn    bool // it does not end by itself
	frozenUntil int64
	thawed      int64 // end of the last freeze of the whole replica
	own         *process
	position    int64
	version     cas.Version // of the document, for work that writes it itself
	doc         *checkpoint.Document
	busy        bool // a commit is under way
}

// start is the exec of the work.
func (c *child) start() {
	if c.dying {
		return
	}
	w := c.g.r.w
	w.note(c.g.r.name, "work of term %s starts", c.term)
	c.alive = true
	switch {
	case c.g.w.session == nil:
		c.act()
	case w.socket:
		c.position = position(c.g.w.session.Get)
		c.act()
	default:
		c.load()
	}
	c.misfortune()
}

// position is how far the work has come, by the document.
func position(get func(string) (string, bool)) int64 {
	text, _ := get(positionKey)
	n, _ := strconv.ParseInt(text, 10, 64)
	return n
}

// load is what sf2loki does once at its start: it keeps the whole document and
// its version, and rewrites it from then on.
func (c *child) load() {
	t := &task{term: c.term, loose: true, timeout: time.Second}
	c.own = &process{r: c.g.r, name: c.g.w.p.name + " work", frozenUntil: c.frozenUntil}
	c.own.spawn(t, func() {
		v, err := door{c.own, documentName}.Load(context.Background())
		if t.dead {
			return
		}
		c.g.r.w.after(0, func() {
			if !c.alive {
				return
			}
			if err != nil {
				c.exit()
				return
			}
			doc, err := checkpoint.ParseDocument(v.Data)
			if err != nil {
				c.exit()
				return
			}
			c.version, c.doc, c.position = v.Version, doc, position(doc.Get)
			c.judgeLoad()
			c.act()
		})
	})
}

// act is one protected act, a push of one record, and the plan of the next.
func (c *child) act() {
	w := c.g.r.w
	if !c.alive {
		return
	}
	if w.now < c.frozenUntil {
		w.at(c.frozenUntil, c.act)
		return
	}
	if c.draining {
		return
	}
	c.judgeAct()
	c.position++
	if !c.busy {
		c.commit(c.position, nil)
	}
	w.after(50*time.Millisecond+w.upTo(800*time.Millisecond), c.act)
}

// commit writes a position.
func (c *child) commit(n int64, then func()) {
	switch {
	case c.g.w.session == nil, c.own != nil && c.doc == nil:
		if then != nil {
			then() // there is nothing to write
		}
	case c.own != nil:
		c.busy = true
		c.rewrite(n, then)
	default:
		c.busy = true
		c.ask(n, then)
	}
}

// ask commits through the supervisor, whose session is fenced.
func (c *child) ask(n int64, then func()) {
	p, session := c.g.w.p, c.g.w.session
	t := &task{term: c.term, timeout: 2 * time.Second}
	p.deliver(func() {
		p.spawn(t, func() {
			err := session.Commit(context.Background(), map[string]string{positionKey: strconv.FormatInt(n, 10)})
			if !t.dead {
				c.committed(n, err, then)
			}
		})
	})
}

// rewrite writes the document that was loaded, with the position in it, on the
// version that is known.
func (c *child) rewrite(n int64, then func()) {
	t := &task{term: c.term, loose: true, timeout: time.Second}
	c.doc.Set(positionKey, strconv.FormatInt(n, 10))
	data := c.doc.Encode()
	c.own.spawn(t, func() {
		v, err := door{c.own, documentName}.Replace(context.Background(), data, c.version)
		if t.dead {
			return
		}
		c.g.r.w.after(0, func() {
			if err == nil {
				c.version = v
			}
			c.committed(n, err, then)
			if c.alive && err != nil && cas.ClassOf(err) != cas.Contended {
				c.exit() // it cannot know what became of it
			}
		})
	})
}

// committed is what the work is told of a commit.
func (c *child) committed(n int64, err error, then func()) {
	c.busy = false
	w := c.g.r.w
	if err == nil {
		d := &w.document
		w.require(n <= max(d.done, d.reached), "I6: a commit of %d is confirmed, the document is at %d", n, d.done)
		c.lineage.told = max(c.lineage.told, n)
	}
	fenced, vanished := (*checkpoint.FencedError)(nil), (*checkpoint.VanishedError)(nil)
	if errors.As(err, &fenced) {
		w.tally.Fenced++
	}
	if fenced != nil || errors.As(err, &vanished) || cas.ClassOf(err) == cas.Corrupt {
		w.after(0, c.exit) // it was told that its term, or its document, is over
	}
	if then != nil {
		w.after(0, then)
	}
}

// drain is a SIGTERM: work ends at once, slowly, after a last commit, or never by
// itself.
func (c *child) drain() {
	w := c.g.r.w
	if !c.alive {
		c.g.fire(false)
		return
	}
	c.draining = true
	end := func() {
		if c.alive {
			c.exit()
		}
	}
	how := w.rng.IntN(5)
	if c.stubborn {
		how = 0
	}
	switch how {
	case 0:
	case 1:
		w.after(w.upTo(8*time.Second), end)
	case 2:
		if c.busy {
			w.after(w.upTo(time.Second), end)
			return
		}
		c.commit(c.position, end)
	default:
		w.after(w.upTo(50*time.Millisecond), end)
	}
}

// exit is the work ending by itself.
func (c *child) exit() {
	w := c.g.r.w
	if w.now < c.frozenUntil {
		w.at(c.frozenUntil, c.exit)
		return
	}
	if c.alive {
		c.gone()
		c.g.deliver(func() { c.g.fire(!c.draining) })
	}
}

// die is a SIGKILL of the tree: it takes a moment, and then says so.
func (c *child) die(then func()) {
	w := c.g.r.w
	c.dying = true
	delay := time.Duration(0)
	if c.alive {
		delay = w.upTo(10 * time.Millisecond)
	}
	w.after(delay, func() {
		c.gone()
		then()
	})
}

// gone is the end of it.
func (c *child) gone() {
	c.alive, c.dying = false, true
	if c.own != nil && !c.own.dead {
		c.own.dead, c.busy = true, false
		c.own.end()
	}
}

// freeze stops the work together with its guard and supervisor, as a suspended
// machine does.
func (c *child) freeze(until int64) {
	c.frozenUntil, c.thawed = until, until
	if c.own != nil {
		c.own.frozenUntil = until
		c.g.r.w.at(until, c.own.thawWork)
	}
}

// misfortune lets work fail by itself.
func (c *child) misfortune() {
	w := c.g.r.w
	if w.calm || !w.oneIn(4) {
		return
	}
	w.after(w.upTo(20*time.Second), func() {
		if c.alive && !w.calm {
			w.note(c.g.r.name, "work fails")
			c.exit()
		}
	})
}
