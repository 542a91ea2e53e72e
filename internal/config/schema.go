package config

import (
	"reflect"
	"strings"
	"time"
)

// fieldKind is what a key expects.
type fieldKind uint8

const (
	sectionField fieldKind = iota
	textField
	boolField
	durationField
	listField
	opaqueField
)

// schemaNode describes one key. The tree is derived from the Config type, so
// that no key can exist in one and not in the other.
type schemaNode struct {
	name, path string
	kind       fieldKind
	optional   bool // null is the same as absent
	field      int  // index in the parent struct
	children   []*schemaNode
}

// schema is the root: the sections that are ours.
var schema = buildSchema("", reflect.TypeFor[Config]())

// sf2lokiSections are top-level sections that only sf2loki reads.
var sf2lokiSections = []string{"salesforce", "orgs", "sources", "sink"}

func buildSchema(path string, t reflect.Type) *schemaNode {
	n := &schemaNode{path: path, kind: kindOf(t)}
	if n.kind != sectionField {
		return n
	}
	for i := range t.NumField() {
		tag, ok := t.Field(i).Tag.Lookup("key")
		if !ok {
			continue
		}
		name, option, _ := strings.Cut(tag, ",")
		child := buildSchema(join(path, name), t.Field(i).Type)
		child.name, child.field, child.optional = name, i, option == "optional"
		n.children = append(n.children, child)
	}
	return n
}

func kindOf(t reflect.Type) fieldKind {
	switch t {
	case reflect.TypeFor[string]():
		return textField
	case reflect.TypeFor[bool]():
		return boolField
	case reflect.TypeFor[time.Duration]():
		return durationField
	case reflect.TypeFor[[]string]():
		return listField
	case reflect.TypeFor[Opaque]():
		return opaqueField
	}
	if t.Kind() != reflect.Struct {
		panic("config: no rule for a field of type " + t.String())
	}
	return sectionField
}

func (n *schemaNode) child(name string) *schemaNode {
	for _, c := range n.children {
		if c.name == name {
			return c
		}
	}
	return nil
}

// names lists the keys that are valid in the section, in the order of the
// struct. At the top that includes sf2loki's own sections.
func (n *schemaNode) names() []string {
	var names []string
	for _, c := range n.children {
		names = append(names, c.name)
	}
	if n.path == "" {
		names = append(names, sf2lokiSections...)
	}
	return names
}

// each calls f for every node below n, parents first.
func (n *schemaNode) each(f func(*schemaNode)) {
	for _, c := range n.children {
		f(c)
		c.each(f)
	}
}

func join(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}

// parent is the dotted key of the section that holds key, or "".
func parent(key string) string {
	if i := strings.LastIndexByte(key, '.'); i >= 0 {
		return key[:i]
	}
	return ""
}

// find returns the node of a dotted key, or nil.
func (n *schemaNode) find(path string) *schemaNode {
	for name := range strings.SplitSeq(path, ".") {
		if n = n.child(name); n == nil {
			return nil
		}
	}
	return n
}
