package faultproxy

import (
	"slices"

	"github.com/sf2loki/sf2loki-ha/internal/boottime"
)

// Op is what a request wants.
type Op string

// The operations.
const (
	Load    Op = "load"
	Create  Op = "create"  // a write on condition that the object is absent
	Replace Op = "replace" // a write on condition of a version
	Put     Op = "put"     // a write without a condition
	Delete  Op = "delete"
	List    Op = "list"
	Stat    Op = "stat" // of an object, without its data
	Other   Op = "other"
)

// Writes reports whether the operation changes an object.
func (o Op) Writes() bool { return o == Create || o == Replace || o == Put || o == Delete }

// Absent is the version of an object that does not exist.
const Absent = "absent"

// Request is a request as rules see it.
type Request struct {
	Replica string `json:"replica"`
	Method  string `json:"method"`
	Op      Op     `json:"op"`
	Key     string `json:"key"`
	// Condition is the version that the caller made its write depend on, or
	// Absent; "" is no condition.
	Condition string `json:"condition,omitempty"`
}

// Applied says what a write did to the store.
type Applied string

// The outcomes of a write.
const (
	Yes     Applied = "yes"
	No      Applied = "no"
	Unknown Applied = "unknown" // the store gave no answer
)

// Exchange is a request and what became of it. Instants are those of
// internal/boottime; 0 is never.
type Exchange struct {
	ID int `json:"id"`
	// Of is the exchange that this one replays, or 0.
	Of int `json:"of,omitempty"`
	Request

	// Arrived at the door, Sent to the store, Answered by it, Told to the caller,
	// who may have given up in the same moment.
	Arrived  boottime.Instant `json:"arrived"`
	Sent     boottime.Instant `json:"sent,omitempty"`
	Answered boottime.Instant `json:"answered,omitempty"`
	Told     boottime.Instant `json:"told,omitempty"`

	// Status is the store's, or that of the refusal, Code its error code.
	Status int    `json:"status,omitempty"`
	Code   string `json:"code,omitempty"`
	// Version is what the store says it has now (a write) or had (a load): Absent
	// where it says that there is nothing, "" where it does not say.
	Version string `json:"version,omitempty"`
	// Applied is set for writes, as soon as it is known.
	Applied Applied `json:"applied,omitempty"`
	// Document is what the body says of itself: the one sent by a write, the one
	// got by a load.
	Document *Document `json:"document,omitempty"`
	// Fault is what was done to it; "" is nothing.
	Fault string `json:"fault,omitempty"`
}

// exchange is one under way.
type exchange struct {
	Exchange
	fault Fault
}

// note adds an exchange.
func (p *Proxy) note(x *exchange) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.exchanges = append(p.exchanges, x)
	x.ID = len(p.exchanges)
}

// change changes an exchange.
func (p *Proxy) change(x *exchange, how func(*Exchange)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	how(&x.Exchange)
}

// Exchanges returns a copy of all of them so far, in the order in which they
// arrived.
func (p *Proxy) Exchanges() []Exchange {
	p.mu.Lock()
	defer p.mu.Unlock()
	all := make([]Exchange, len(p.exchanges))
	for i, x := range p.exchanges {
		all[i] = x.Exchange
	}
	slices.SortStableFunc(all, func(a, b Exchange) int { return int(a.Arrived - b.Arrived) })
	return all
}
