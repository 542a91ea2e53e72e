package config

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// rootKey stands for the document as a whole.
const rootKey = "<root>"

// Error is everything that is wrong with a configuration. It is permanent: the
// caller prints it and exits with 2.
type Error struct {
	// Problems in the order of the file, then the environment, then what is
	// missing in both. Never empty.
	Problems []Problem
}

// Problem is one thing to fix.
type Problem struct {
	// Key is the dotted key, or <root> for the file as a whole.
	Key string
	// Message says what is wrong, with numbers, and what to do. It is one line
	// and holds no credential.
	Message string
	// File, Line and Column are the place in the file; Line is 0 if the problem
	// has none, such as a key that is missing.
	File         string
	Line, Column int
	// Env is the environment variable that gave the value, if one did.
	Env string
}

// Error has sf2loki's layout: a headline, then one indented line a problem.
func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString("invalid configuration:")
	for _, p := range e.Problems {
		b.WriteString("\n  ")
		b.WriteString(p.String())
	}
	return b.String()
}

// String is the problem on one line: key, message, place. A problem of the file
// as a whole has the form of a compiler's, with the file in place of the key.
func (p Problem) String() string {
	if p.Key == rootKey && p.File != "" && p.Env == "" {
		if p.Line > 0 {
			return fmt.Sprintf("%s:%d:%d: %s", p.File, p.Line, p.Column, p.Message)
		}
		return p.File + ": " + p.Message
	}
	text := p.Key + ": " + p.Message
	switch {
	case p.Env != "":
		return text + " (" + p.Env + ")"
	case p.Line > 0:
		return fmt.Sprintf("%s (%s:%d:%d)", text, p.File, p.Line, p.Column)
	case p.File != "":
		return text + " (" + p.File + ")"
	}
	return text
}

// origin is where a value or a key was given.
type origin struct {
	file         string
	line, column int
	env          string
}

func (o origin) problem(key, format string, args ...any) Problem {
	return Problem{
		Key: key, Message: oneLine(fmt.Sprintf(format, args...)),
		// Names of files and variables may hold anything but zero bytes.
		File: oneLine(o.file), Line: o.line, Column: o.column, Env: hideUserinfo(oneLine(o.env)),
	}
}

// describe names the place inside a message about another place.
func (o origin) describe() string {
	switch {
	case o.env != "":
		return o.env
	case o.line > 0:
		return fmt.Sprintf("line %d", o.line)
	}
	return "a default"
}

// newError orders problems and drops repetitions; nil if there are none. The
// order depends on the input alone, so that two runs can be compared.
func newError(problems []Problem) error {
	if len(problems) == 0 {
		return nil
	}
	sorted := slices.Clone(problems)
	slices.SortStableFunc(sorted, func(a, b Problem) int {
		return cmp.Or(
			cmp.Compare(a.rank(), b.rank()),
			cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column),
			cmp.Compare(a.Env, b.Env), cmp.Compare(a.Key, b.Key), cmp.Compare(a.Message, b.Message),
		)
	})
	return &Error{Problems: slices.Compact(sorted)}
}

func (p Problem) rank() int {
	switch {
	case p.Env != "":
		return 1
	case p.Line > 0:
		return 0
	}
	return 2
}

// quote shows a value in a message. A value may be a credential that went into
// the wrong field, so what looks like one is not shown: everything up to an @
// (userinfo of a URL), and long, structured or multi-line text (a key file
// pasted in place of its path).
func quote(s string) string {
	if strings.ContainsAny(s, "{}\n\r") || strings.Contains(s, "-----") || len(s) > 100 || !utf8.ValidString(s) {
		return fmt.Sprintf("a text of %d bytes", len(s))
	}
	return fmt.Sprintf("%q", hideUserinfo(s))
}

func hideUserinfo(s string) string {
	if at := strings.LastIndexByte(s, '@'); at >= 0 {
		return "..." + s[at:]
	}
	return s
}

// keyName shows a key that the user wrote: it becomes part of a dotted path.
func keyName(s string) string {
	if s == "" {
		return "(an empty key)"
	}
	if len(s) > 64 || strings.ContainsFunc(s, func(r rune) bool { return unicode.IsControl(r) || r == utf8.RuneError || r == '"' }) {
		return fmt.Sprintf("(a key of %d bytes)", len(s))
	}
	return hideUserinfo(s)
}

func oneLine(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, s)
}
