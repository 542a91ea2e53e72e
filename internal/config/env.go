package config

import (
	"cmp"
	"slices"
	"strings"
)

const (
	envPrefix = "sf2loki_"
	// ownPrefix begins the variables that the supervisor hands to the command,
	// such as SF2LOKI_HA_EPOCH. A supervisor inside a supervisor sees them, so
	// they can never be configuration.
	ownPrefix = "sf2loki_ha_"
	envNest   = "__"
)

// environment is a process environment in the form of os.Environ.
type environment []string

// get returns the value of a name, which is case-sensitive; the last wins.
func (e environment) get(name string) (string, bool) {
	for _, kv := range slices.Backward(e) {
		if k, v, ok := strings.Cut(kv, "="); ok && k == name {
			return v, true
		}
	}
	return "", false
}

// override is one variable that names a key.
type override struct {
	name  string   // as it is spelled in the environment
	path  []string // lower case
	value string
}

// overrides lists the variables that name something below a section, sections
// before what is inside them.
func (l *loader) overrides() []override {
	byName := map[string]override{}
	for _, kv := range l.env {
		name, text, ok := strings.Cut(kv, "=")
		lower := strings.ToLower(name)
		rest, ours := strings.CutPrefix(lower, envPrefix)
		if !ok || !ours || strings.HasPrefix(lower, ownPrefix) {
			continue
		}
		o := override{name: name, path: strings.Split(rest, envNest), value: text}
		if before, ok := byName[lower]; ok && schema.child(o.path[0]) != nil && before.name != name && before.value != text {
			// Which of them wins would depend on their order in the environment.
			l.fail(origin{env: max(name, before.name)}, strings.Join(o.path, "."), "is also given by %s; names differ only in case, keep one", min(name, before.name))
			continue
		}
		byName[lower] = o
	}
	list := make([]override, 0, len(byName))
	for _, o := range byName {
		list = append(list, o)
	}
	slices.SortFunc(list, func(a, b override) int {
		return cmp.Or(cmp.Compare(len(a.path), len(b.path)), cmp.Compare(a.name, b.name))
	})
	return list
}

// overlay lays the environment over the values of the file. Mappings are
// merged, everything else is replaced.
func (l *loader) overlay(root *value) {
	for _, o := range l.overrides() {
		at := origin{env: o.name}
		top := o.path[0]
		switch {
		case isSF2loki(top):
			l.others[top] = at
		case misspelt(o.path) != nil:
			meant := misspelt(o.path)
			l.fail(at, meant.path, "sections are separated by two underscores; rename the variable to %s", envName(meant.path))
			// It is taken as it was meant, so that the rest can be judged.
			o.path = strings.Split(meant.path, ".")
			l.lay(root, schema, o, at)
		case schema.child(top) == nil:
			// As in sf2loki: SF2LOKI_FOO may be anybody's.
		default:
			l.lay(root, schema, o, at)
		}
	}
}

// misspelt returns the key whose variable has the same words but other
// underscores between them, or nil: SF2LOKI_COORDINATE_TYPE. sf2loki ignores
// that as the name of something else, and a replica without its type would lead
// beside the other. Only whole keys count, because Kubernetes gives every
// container SF2LOKI_SERVICE_HOST and SF2LOKI_STATE_PORT for Services so named.
func misspelt(path []string) *schemaNode {
	words := func(s string) string {
		for strings.Contains(s, "__") {
			s = strings.ReplaceAll(s, "__", "_")
		}
		return s
	}
	given, name := words(strings.Join(path, "_")), strings.Join(path, ".")
	var meant *schemaNode
	schema.each(func(n *schemaNode) {
		if n.path != name && strings.ReplaceAll(n.path, ".", "_") == given {
			meant = n
		}
	})
	return meant
}

// lay puts one variable where its name points.
func (l *loader) lay(into *value, section *schemaNode, o override, at origin) {
	for i, name := range o.path {
		node := section.child(name)
		dotted := join(section.path, keyName(name))
		switch {
		case node == nil:
			message, meant := unknownKey(section, name)
			if meant != "" {
				message = "unknown configuration key; did you mean " + envName(meant) + "?"
				l.bad[meant] = true
			}
			l.fail(at, dotted, "%s", message)
			return
		case node.kind == opaqueField:
			into.put(name, at, &value{kind: opaqueValue, at: at})
			return
		case i == len(o.path)-1:
			if v := l.envValue(node, o.value, at); v != nil {
				merge(into, name, at, v)
			}
			return
		case node.kind != sectionField:
			l.fail(at, node.path, "is a value, not a section; the variable is %s", envName(node.path))
			return
		}
		// Down into a section, which the file may have left out or empty.
		e := into.entry(name)
		if e == nil || e.value.kind == nullValue {
			into.put(name, at, &value{kind: mapValue, at: at})
			e = into.entry(name)
		}
		if e.value.kind != mapValue {
			return // the file's value has the wrong type, and that is reported
		}
		into, section = e.value, node
	}
}

// envValue reads the text of a variable for a key: JSON for lists and sections,
// the text itself for the rest.
func (l *loader) envValue(node *schemaNode, text string, at origin) *value {
	if node.kind != sectionField && node.kind != listField {
		return &value{kind: textValue, text: text, at: at}
	}
	v, err := parseJSON(text, at)
	if err != nil {
		example := `{"` + firstChild(node) + `": ...}`
		if node.kind == listField {
			example = `["first", "second"]`
		}
		l.fail(at, node.path, "%v; the value has to be JSON, such as %s", err, example)
		l.bad[node.path] = true
		return nil
	}
	return v
}

func firstChild(n *schemaNode) string {
	if len(n.children) == 0 {
		return ""
	}
	return n.children[0].name
}

// merge puts v under name: two mappings become one, in depth.
func merge(into *value, name string, at origin, v *value) {
	e := into.entry(name)
	if e == nil || e.value.kind != mapValue || v.kind != mapValue {
		into.put(name, at, v)
		return
	}
	for _, inner := range v.entries {
		merge(e.value, inner.key, inner.at, inner.value)
	}
}

// envName is the variable of a dotted key.
func envName(key string) string {
	return strings.ToUpper(envPrefix + strings.ReplaceAll(key, ".", envNest))
}
