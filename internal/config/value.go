package config

import "math/big"

// valueKind is the type of a value before anybody asked for a type.
type valueKind uint8

const (
	nullValue valueKind = iota
	boolValue
	intValue
	floatValue
	textValue
	dateValue
	listValue
	mapValue
	// opaqueValue belongs to sf2loki: it is there, and was not read.
	opaqueValue
	// strangeValue has a tag that means nothing here, such as !!binary.
	strangeValue
	// brokenValue has been reported already.
	brokenValue
)

// value is one value from the file or the environment. Both sources are turned
// into this one form, so that one decoder and one set of messages serve both.
type value struct {
	kind valueKind
	at   origin
	// text is the scalar as written; of a textValue, after interpolation.
	text string
	// truth is the content of a boolValue.
	truth bool
	// number is the content of an intValue or floatValue; nil if not finite.
	number *big.Rat
	// items are the elements of a listValue.
	items []*value
	// entries are the pairs of a mapValue, in order, without duplicates.
	entries []*entry
}

type entry struct {
	key   string
	at    origin
	value *value
}

func (v *value) entry(key string) *entry {
	for _, e := range v.entries {
		if e.key == key {
			return e
		}
	}
	return nil
}

// put sets or replaces the pair of key.
func (v *value) put(key string, at origin, to *value) {
	if e := v.entry(key); e != nil {
		e.at, e.value = at, to
		return
	}
	v.entries = append(v.entries, &entry{key: key, at: at, value: to})
}

// describe names a value that has the wrong type, without showing more of it
// than is needed to find it.
func (v *value) describe() string {
	switch v.kind {
	case nullValue:
		return "empty or null"
	case boolValue:
		return "the boolean " + quote(v.text)
	case intValue, floatValue:
		return "the number " + quote(v.text)
	case textValue:
		return "the text " + quote(v.text)
	case dateValue:
		return "the date " + quote(v.text)
	case listValue:
		return "a list"
	case mapValue:
		return "a mapping"
	}
	return "a value of a type that is not used here"
}
