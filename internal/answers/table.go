package answers

import (
	"fmt"
	"reflect"
	"sync"

	"github.com/sf2loki/sf2loki-ha/cas"
	"github.com/sf2loki/sf2loki-ha/internal/wiretest"
)

// Service is a kind of store.
type Service string

// The services.
const (
	S3  Service = "s3"
	GCS Service = "gcs"
	K8s Service = "k8s"
)

// Services lists them in the order of the columns.
func Services() []Service { return []Service{S3, GCS, K8s} }

// The calls of a lease store.
const (
	Load    = "load"
	Create  = "create"
	Replace = "replace"
)

// Request is a column of the table: one request that a client sends.
type Request struct {
	Service Service
	Name    string
	// Op is the call that it is part of.
	Op string
	// Before are the exchanges of the same call that come before it.
	Before []Exchange
	// Sends is what this request must say.
	Sends string
	// class is what the whole call makes of a row.
	class func(Meaning) cas.Class
}

// Exchange is a request, as [Service.Understand] reads it, with its answer.
type Exchange struct {
	Sends  string
	Answer wiretest.Answer
}

// Cell is what one service says to one request with one meaning.
type Cell struct {
	// Answers are the ways to say it; each is a test.
	Answers []wiretest.Answer
	// Never is why the service never says that. Then there are no answers.
	Never string
	// Class is what the call makes of it, if it is not what the row says, and Why
	// is the reason.
	Class *cas.Class
	Why   string
	// Hint must occur in what the operator is told.
	Hint string
	// Then are the exchanges of the same call that follow.
	Then []Exchange
}

// says is a cell with these answers.
func says(a ...wiretest.Answer) Cell { return Cell{Answers: a} }

// never is a cell that cannot occur.
func never(reason string) Cell { return Cell{Never: reason} }

// is gives the cell another class than its row's.
func (c Cell) is(class cas.Class, why string) Cell {
	c.Class, c.Why = &class, why
	return c
}

func (c Cell) hint(text string) Cell {
	c.Hint = text
	return c
}

// then adds an exchange that follows.
func (c Cell) then(sends string, a wiretest.Answer) Cell {
	c.Then = append(c.Then[:len(c.Then):len(c.Then)], Exchange{sends, a})
	return c
}

// row are the cells of one service in one row, by name of the request.
type row map[string]Cell

// all is a row that says the same to every request of a service.
func all(s Service, c Cell) row {
	r := row{}
	for _, q := range Requests(s) {
		r[q.Name] = c
	}
	return r
}

// but replaces the cells of these requests.
func (r row) but(c Cell, requests ...string) row {
	out := row{}
	for name, cell := range r {
		out[name] = cell
	}
	for _, name := range requests {
		out[name] = c
	}
	return out
}

// Requests are the columns of a service.
func Requests(s Service) []Request {
	switch s {
	case S3:
		return s3Requests
	case GCS:
		return gcsRequests
	default:
		return k8sRequests
	}
}

// tables are the cells of each service, by name of the row.
var tables = map[Service]func() map[string]row{
	S3: sync.OnceValue(s3Rows), GCS: sync.OnceValue(gcsRows), K8s: sync.OnceValue(k8sRows),
}

func rows(s Service) map[string]row { return tables[s]() }

// byOp is the class of a row for a call that consists of one request.
func byOp(op string) func(Meaning) cas.Class {
	return func(m Meaning) cas.Class {
		switch op {
		case Load:
			return m.Load
		case Create:
			return m.Create
		default:
			return m.Replace
		}
	}
}

// ClassOf is what the call that request is part of makes of a cell.
func (q Request) ClassOf(m Meaning, c Cell) cas.Class {
	if c.Class != nil {
		return *c.Class
	}
	return q.class(m)
}

// Case is one answer with what it means.
type Case struct {
	Name   string
	Answer wiretest.Answer
	Class  cas.Class
	Hint   string
}

// Uniform are the answers that the service gives to every request alike and that
// mean the same whatever was asked, except success and silence.
func Uniform(s Service) []Case {
	var out []Case
	for _, m := range Meanings {
		r := rows(s)[m.Name]
		c := r[Load]
		uniform := m.Load != "" && m.Load == m.Create && m.Load == m.Replace && c.Class == nil && !silent[m.Name]
		for _, q := range Requests(s) {
			uniform = uniform && reflect.DeepEqual(r[q.Name], c)
		}
		if !uniform {
			continue
		}
		for i, a := range c.Answers {
			out = append(out, Case{fmt.Sprintf("%s/%d", m.Name, i+1), a, m.Load, c.Hint})
		}
	}
	return out
}

// Say is the first way in which a service gives that answer to a request.
func Say(s Service, request, meaning string) wiretest.Answer {
	return rows(s)[meaning][request].Answers[0]
}
