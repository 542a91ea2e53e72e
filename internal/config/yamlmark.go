package config

import (
	"fmt"
	"reflect"
	"regexp"
	"strconv"

	"go.yaml.in/yaml/v3"
)

// syntaxPlace finds where the YAML library stopped, and what it was reading.
//
// The library's errors hold a line that is missing on the first line and often
// one off, and no column; its parser knows both exactly. They are read, never
// written, by reflection from fields that are not part of its interface. If
// another version lays them out differently, the place falls back to the line
// of the message: a worse message, not a failure. A test pins the places.
func syntaxPlace(decoder *yaml.Decoder, file string, err error) (at origin, context string) {
	at.file = file
	composer := field(field(reflect.ValueOf(decoder).Elem(), "parser"), "")
	scanner := field(composer, "parser")
	mark := field(scanner, "problem_mark")
	kind := field(scanner, "error")
	if kind.IsValid() && kind.CanInt() && kind.Int() == 0 {
		// The tokens were fine and the document is not: an unknown anchor.
		mark = field(field(composer, "event"), "start_mark")
	}
	line, column := number(mark, "line"), number(mark, "column")
	if line < 0 || column < 0 {
		at.line, at.column = messageLine(err), 1
		return at, ""
	}
	at.line, at.column = line+1, column+1

	// The beginning of what was never finished is where the mistake is.
	begin, what := field(scanner, "context_mark"), field(scanner, "context")
	if what.IsValid() && what.Kind() == reflect.String && what.Len() > 0 {
		if l, c := number(begin, "line"), number(begin, "column"); l >= 0 && (l != line || c != column) {
			context = fmt.Sprintf(", %s that begins at %d:%d", what.String(), l+1, c+1)
		}
	}
	return at, context
}

// field returns a field of a struct, following a pointer; the zero Value if
// there is none. An empty name only follows the pointer.
func field(v reflect.Value, name string) reflect.Value {
	if v.IsValid() && v.Kind() == reflect.Pointer {
		v = v.Elem()
	}
	if name == "" || !v.IsValid() {
		return v
	}
	if v.Kind() != reflect.Struct {
		return reflect.Value{}
	}
	return v.FieldByName(name)
}

func number(v reflect.Value, name string) int {
	f := field(v, name)
	if !f.IsValid() || !f.CanInt() {
		return -1
	}
	return int(f.Int())
}

var lineInMessage = regexp.MustCompile(`line ([0-9]+)`)

func messageLine(err error) int {
	if m := lineInMessage.FindStringSubmatch(err.Error()); m != nil {
		if n, err := strconv.Atoi(m[1]); err == nil {
			return n
		}
	}
	return 1
}
