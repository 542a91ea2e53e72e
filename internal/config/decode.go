package config

import (
	"fmt"
	"math/big"
	"reflect"
	"strings"
	"time"
)

// decode writes the values of a section into its struct and notes which keys
// were given. What it refuses it reports, marks as bad and leaves at its
// default.
func (l *loader) decode(section *schemaNode, v *value, into reflect.Value, set map[string]origin) {
	for _, e := range v.entries {
		node := section.child(e.key)
		if node == nil {
			message, meant := unknownKey(section, e.key)
			if meant != "" && !v.has(section, meant) {
				// The value of the key that was meant is not really missing.
				l.bad[meant] = true
			}
			l.fail(e.at, join(section.path, keyName(e.key)), "%s", message)
			continue
		}
		set[node.path] = e.value.at
		if e.value.kind == brokenValue {
			l.bad[node.path] = true
			continue
		}
		if node.optional && e.value.kind == nullValue {
			continue
		}
		field := into.Field(node.field)
		if node.kind == sectionField && e.value.kind == mapValue {
			set[node.path] = e.at
			l.decode(node, e.value, field, set)
			continue
		}
		if message := assign(node, e.value, field); message != "" {
			l.bad[node.path] = true
			l.fail(e.value.at, node.path, "%s", message)
		}
	}
}

// has tells whether the mapping of section gives the dotted key itself, too.
func (v *value) has(section *schemaNode, key string) bool {
	for _, e := range v.entries {
		if join(section.path, e.key) == key && section.child(e.key) != nil {
			return true
		}
	}
	return false
}

// assign sets one field, or says why it cannot.
func assign(node *schemaNode, v *value, field reflect.Value) (problem string) {
	switch node.kind {
	case textField:
		if v.kind != textValue {
			return "must be text, but is " + v.describe() + quoteHint(v)
		}
		field.SetString(v.text)
	case boolField:
		truth, ok := v.asBool()
		if !ok {
			return "must be true or false, but is " + v.describe()
		}
		field.SetBool(truth)
	case durationField:
		d, err := v.asDuration()
		if err != nil {
			return err.Error()
		}
		field.SetInt(int64(d))
	case listField:
		return assignList(v, field)
	case opaqueField:
		field.Set(reflect.ValueOf(Opaque{Given: true}))
	case sectionField:
		if v.kind == nullValue {
			return "is an empty section (null); remove the line or put keys below it, indented"
		}
		return fmt.Sprintf("must be a section with keys such as %s, but is %s", firstChild(node), v.describe())
	}
	return ""
}

func quoteHint(v *value) string {
	switch v.kind {
	case boolValue, intValue, floatValue, dateValue:
		return "; put it in quotes"
	case nullValue:
		return "; give a value or remove the line"
	}
	return ""
}

// assignList sets a list of texts. The items are arguments of a command and may
// be secrets, so none is ever shown.
func assignList(v *value, field reflect.Value) (problem string) {
	if v.kind != listValue {
		kind := "a text"
		if v.kind != textValue {
			kind = v.describe()
		}
		return `must be a list of texts such as ["program", "argument"], but is ` + kind
	}
	items := make([]string, 0, len(v.items))
	for i, item := range v.items {
		if item.kind != textValue {
			return fmt.Sprintf("item %d must be text, but is not; put it in quotes", i)
		}
		items = append(items, item.text)
	}
	field.Set(reflect.ValueOf(items))
	return ""
}

// asBool reads a boolean, also from the texts and numbers that sf2loki takes.
func (v *value) asBool() (truth, ok bool) {
	switch v.kind {
	case boolValue:
		return v.truth, true
	case intValue, floatValue:
		if v.number != nil && v.number.Cmp(big.NewRat(1, 1)) == 0 {
			return true, true
		}
		return false, v.number != nil && v.number.Sign() == 0
	case textValue:
		switch strings.ToLower(v.text) {
		case "1", "on", "t", "true", "y", "yes":
			return true, true
		case "0", "off", "f", "false", "n", "no":
			return false, true
		}
	}
	return false, false
}

// asDuration reads a duration: a number is seconds.
func (v *value) asDuration() (time.Duration, error) {
	switch v.kind {
	case intValue, floatValue:
		return fromSeconds(v.number)
	case textValue:
		return parseDuration(v.text)
	}
	return 0, fmt.Errorf("must be a duration, but is %s; %s", v.describe(), durationHelp)
}
