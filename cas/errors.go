package cas

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// Class says what an answer of a store means for the caller. It is itself an
// error, so that errors.Is(err, cas.Conflict) asks for a class through any
// wrapping. Its text is also the label of metrics.
type Class string

// The classes. "May have been applied" is about writes only; a read with that
// class simply has no answer yet.
const (
	// NotFound: the key definitely does not exist (read only).
	NotFound Class = "not_found"
	// Conflict: the condition was false; nothing was applied by this request.
	Conflict Class = "conflict"
	// Contended: the store gave up because of concurrent or too frequent
	// requests (409, 429). The write may have been applied.
	Contended Class = "contended"
	// Ambiguous: no definite answer (timeout, reset, 5xx, success without a
	// version). The write may have been applied, or may yet be.
	Ambiguous Class = "ambiguous"
	// Denied: the store refused the credentials or the permission (401, 403).
	Denied Class = "denied"
	// NoBucket: the bucket does not exist.
	NoBucket Class = "no_bucket"
	// Unsupported: the store does not implement conditional requests.
	Unsupported Class = "unsupported"
	// Corrupt: the object exists and is not a document of ours.
	Corrupt Class = "corrupt"
)

// Classes lists every class, in the order of the table in docs/errors.md.
func Classes() []Class {
	return []Class{NotFound, Conflict, Contended, Ambiguous, Denied, NoBucket, Unsupported, Corrupt}
}

// Error makes a Class usable as the target of errors.Is.
func (c Class) Error() string { return strings.ReplaceAll(string(c), "_", " ") }

// Definite reports whether a write that failed with this class certainly was
// not applied and never will be. Only Contended and Ambiguous are not definite.
func (c Class) Definite() bool { return c != Ambiguous && c != Contended }

// Error is the error of every backend.
type Error struct {
	// Class is the meaning of the answer.
	Class Class
	// Op is what was attempted: load, create, replace.
	Op string
	// Object is Register.Describe.
	Object string
	// Status is the HTTP status, or 0 where there was none.
	Status int
	// Code is the service's own error code, such as NoSuchKey, or "".
	Code string
	// Hint tells the operator what to do, or "".
	Hint string
	// Err is the cause, or nil. Its text carries no credentials.
	Err error
}

// Error reads "op object: class (status code): cause; hint".
func (e *Error) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s: %s", e.Op, e.Object, e.Class.Error())
	switch {
	case e.Status != 0 && e.Code != "":
		b.WriteString(" (" + strconv.Itoa(e.Status) + " " + e.Code + ")")
	case e.Status != 0:
		b.WriteString(" (" + strconv.Itoa(e.Status) + ")")
	case e.Code != "":
		b.WriteString(" (" + e.Code + ")")
	}
	if e.Err != nil {
		b.WriteString(": " + e.Err.Error())
	}
	if e.Hint != "" {
		b.WriteString("; " + e.Hint)
	}
	return b.String()
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// Is reports whether target is the error's class.
func (e *Error) Is(target error) bool {
	c, ok := target.(Class)
	return ok && c == e.Class
}

// ClassOf returns the class of err, through any wrapping. An error without a
// class is Ambiguous: not knowing what happened is the safe reading, because
// the caller then finds out by asking the store. ClassOf(nil) is "".
func ClassOf(err error) Class {
	if err == nil {
		return ""
	}
	var e *Error
	if errors.As(err, &e) {
		return e.Class
	}
	var c Class
	if errors.As(err, &c) {
		return c
	}
	return Ambiguous
}
