package config

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
)

// maxNodes bounds the values of our sections after aliases are followed. A
// real file has about fifty; a file of a few hundred bytes can stand for
// millions.
const maxNodes = 10_000

// reader turns YAML into values and collects problems on the way.
type reader struct {
	file     string
	problems []Problem
	left     int                 // nodes that may still be visited
	active   map[*yaml.Node]bool // nodes being visited: an alias to one is a circle
}

// document is what parseYAML read.
type document struct {
	root     *value            // our sections, a mapping
	others   map[string]origin // places of sf2loki's own sections
	problems []Problem
	// unusable: there is no document of which anything could be judged.
	unusable bool
}

// parseYAML reads one document. It does not look into sf2loki's own sections.
func parseYAML(file string, data []byte) document {
	r := &reader{file: file, left: maxNodes, active: map[*yaml.Node]bool{}}
	doc := document{root: &value{kind: mapValue, at: origin{file: file}}, others: map[string]origin{}}
	unusable := func(p Problem) document {
		return document{problems: []Problem{p}, unusable: true}
	}

	// 1. Text at all? The library's own message for this has no place.
	if p, bad := notText(file, data); bad {
		return unusable(p)
	}
	// 2. Exactly one document. None is an empty one.
	top, problem := oneDocument(file, data)
	if problem != nil {
		return unusable(*problem)
	}
	if top == nil || (top.Kind == yaml.ScalarNode && r.scalar(top).kind == nullValue) {
		return doc
	}
	if top.Kind != yaml.MappingNode {
		v := r.shallow(top)
		return unusable(v.at.problem(rootKey, "must be a mapping with sections such as coordinate and state, but is %s", v.describe()))
	}
	// 3. Our sections are read, sf2loki's are only noticed.
	for _, p := range r.pairs(top, "") {
		if isSF2loki(p.key) {
			doc.others[p.key] = p.at
			continue
		}
		doc.root.entries = append(doc.root.entries, &entry{key: p.key, at: p.at, value: r.convert(p.node, keyName(p.key))})
	}
	// An explosion was cut off somewhere: what was read is not what is meant.
	doc.problems, doc.unusable = r.problems, r.left < 0
	return doc
}

func isSF2loki(key string) bool {
	for _, s := range sf2lokiSections {
		if s == key {
			return true
		}
	}
	return false
}

// notText finds the first byte that YAML does not allow.
func notText(file string, data []byte) (Problem, bool) {
	line, column := 1, 1
	for i := 0; i < len(data); {
		r, size := utf8.DecodeRune(data[i:])
		at := origin{file: file, line: line, column: column}
		if r == utf8.RuneError && size <= 1 {
			return at.problem(rootKey, "the file is not UTF-8 text (byte 0x%02x at offset %d); save it as UTF-8", data[i], i), true
		}
		if (r < ' ' && r != '\t' && r != '\n' && r != '\r') || (r >= 0x7f && r < 0xa0 && r != 0x85) || r == 0xfffe || r == 0xffff {
			return at.problem(rootKey, "the file has a control character (U+%04X) that YAML does not allow; remove it", r), true
		}
		i += size
		if column++; r == '\n' {
			line, column = line+1, 1
		}
	}
	return Problem{}, false
}

// oneDocument parses data and returns the content of its only document.
func oneDocument(file string, data []byte) (*yaml.Node, *Problem) {
	decoder := yaml.NewDecoder(bytes.NewReader(data))
	var first, second yaml.Node
	err := decoder.Decode(&first)
	if errors.Is(err, io.EOF) {
		return nil, nil
	}
	if err == nil {
		err = decoder.Decode(&second)
		if err == nil {
			p := origin{file: file, line: second.Line, column: second.Column}.problem(rootKey,
				"the file has more than one YAML document; remove the one that begins here")
			return nil, &p
		}
	}
	if !errors.Is(err, io.EOF) {
		at, context := syntaxPlace(decoder, file, err)
		if tabIndents(data, at) {
			p := at.problem(rootKey, "YAML syntax error: a tab is used for indentation, where YAML takes only spaces; replace the tab with spaces")
			return nil, &p
		}
		p := at.problem(rootKey, "YAML syntax error: %s%s", hideUserinfo(libraryText(err)), context)
		return nil, &p
	}
	if len(first.Content) == 0 {
		return nil, nil
	}
	return first.Content[0], nil
}

// tabIndents tells whether the place is a tab with nothing but white space
// before it on its line. The library has three messages for that, and the most
// frequent one speaks of a character that nobody can see.
func tabIndents(data []byte, at origin) bool {
	lines := strings.Split(strings.TrimPrefix(string(data), "\ufeff"), "\n")
	if at.line < 1 || at.line > len(lines) || at.column < 1 || at.column > len(lines[at.line-1]) {
		return false
	}
	indent := lines[at.line-1][:at.column]
	return strings.HasSuffix(indent, "\t") && strings.Trim(indent, " \t") == ""
}

// libraryText is the library's message without its prefix and its line, which
// is often one off.
func libraryText(err error) string {
	text := strings.TrimPrefix(err.Error(), "yaml: ")
	if rest, ok := strings.CutPrefix(text, "line "); ok {
		if _, after, ok := strings.Cut(rest, ": "); ok {
			return after
		}
	}
	return text
}

// pair is one key of a mapping node with merges applied.
type pair struct {
	key  string
	at   origin
	node *yaml.Node
}

// pairs lists the pairs of a mapping: its own, then those merged in with <<
// that it does not have.
func (r *reader) pairs(n *yaml.Node, path string) []pair {
	var own []pair
	var merge *yaml.Node
	first := map[string]origin{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		keyNode, valueNode := n.Content[i], n.Content[i+1]
		at := r.place(keyNode)
		for keyNode.Kind == yaml.AliasNode {
			keyNode = keyNode.Alias
		}
		if keyNode.Kind != yaml.ScalarNode {
			r.fail(at, path, "a key must be a plain name, but is a list or a mapping")
			continue
		}
		key := keyNode.Value
		// sf2loki's parser lets the last of two equal keys win. Whoever wrote
		// both does not know that, so for us it is an error.
		if before, ok := first[key]; ok {
			r.fail(at, join(path, keyName(key)), "is given twice, on line %d and on line %d; remove one", before.line, at.line)
			continue
		}
		first[key] = at
		if keyNode.ShortTag() == "!!merge" {
			merge = valueNode
			continue
		}
		own = append(own, pair{key: key, at: at, node: valueNode})
	}
	if merge == nil {
		return own
	}
	for _, p := range r.merged(merge, path) {
		if _, ok := first[p.key]; !ok {
			first[p.key] = p.at
			own = append(own, p)
		}
	}
	return own
}

// merged lists the pairs that the value of a << key stands for.
func (r *reader) merged(n *yaml.Node, path string) []pair {
	at := r.place(n)
	for n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	if !r.enter(n, at, path) {
		return nil
	}
	defer delete(r.active, n)
	switch n.Kind {
	case yaml.MappingNode:
		return r.pairs(n, path)
	case yaml.SequenceNode:
		var all []pair
		for _, item := range n.Content {
			all = append(all, r.merged(item, path)...)
		}
		return all
	}
	r.fail(at, path, "the merge key << needs a mapping or a list of mappings")
	return nil
}

// convert turns a node into a value, following aliases.
func (r *reader) convert(n *yaml.Node, path string) *value {
	at := r.place(n)
	if s := schema.find(path); s != nil && s.kind == opaqueField {
		return &value{kind: opaqueValue, at: at}
	}
	for n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	if !r.enter(n, at, path) {
		return &value{kind: brokenValue, at: at}
	}
	defer delete(r.active, n)
	v := r.shallow(n)
	v.at = at
	switch v.kind {
	case listValue:
		for _, item := range n.Content {
			converted := r.convert(item, path)
			if v.items = append(v.items, converted); converted.kind == brokenValue {
				v.kind = brokenValue
			}
		}
	case mapValue:
		for _, p := range r.pairs(n, path) {
			v.entries = append(v.entries, &entry{key: p.key, at: p.at, value: r.convert(p.node, join(path, keyName(p.key)))})
		}
	}
	return v
}

// enter counts a visit and refuses circles and explosions.
func (r *reader) enter(n *yaml.Node, at origin, path string) bool {
	if r.active[n] {
		r.fail(at, path, "contains itself through an alias")
		return false
	}
	if r.left--; r.left < 0 {
		if r.left == -1 {
			r.fail(at, path, "stands for more than %d values once aliases are followed", maxNodes)
		}
		return false
	}
	r.active[n] = true
	return true
}

// shallow gives a node its kind, without its content.
func (r *reader) shallow(n *yaml.Node) *value {
	switch n.Kind {
	case yaml.ScalarNode:
		return r.scalar(n)
	case yaml.SequenceNode:
		return &value{kind: listValue, at: r.place(n)}
	case yaml.MappingNode:
		return &value{kind: mapValue, at: r.place(n)}
	}
	return &value{kind: strangeValue, at: r.place(n)}
}

func (r *reader) scalar(n *yaml.Node) *value {
	at := r.place(n)
	if n.Style&(yaml.SingleQuotedStyle|yaml.DoubleQuotedStyle|yaml.LiteralStyle|yaml.FoldedStyle) != 0 && n.Style&yaml.TaggedStyle == 0 {
		return &value{kind: textValue, text: n.Value, at: at}
	}
	if n.Style&yaml.TaggedStyle == 0 {
		return plainScalar(n.Value, at)
	}
	if n.ShortTag() == "!!str" {
		return &value{kind: textValue, text: n.Value, at: at}
	}
	v := plainScalar(n.Value, at)
	tags := map[valueKind]string{nullValue: "!!null", boolValue: "!!bool", intValue: "!!int", floatValue: "!!float", dateValue: "!!timestamp"}
	if tags[v.kind] != n.ShortTag() {
		v.kind = strangeValue
	}
	return v
}

func (r *reader) place(n *yaml.Node) origin {
	return origin{file: r.file, line: n.Line, column: n.Column}
}

func (r *reader) fail(at origin, path, format string, args ...any) {
	if path == "" {
		path = rootKey
	}
	r.problems = append(r.problems, at.problem(path, format, args...))
}
