package childconfig

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"time"

	"go.yaml.in/yaml/v3"
)

// maxNodes bounds what merges and copies stand for.
const maxNodes = 100_000

var (
	errNotOne  = errors.New("the configuration file is not one YAML mapping")
	errTwice   = errors.New("a section or a key of the configuration file is given twice; remove one")
	errNesting = errors.New("merges in the configuration file form a circle or stand for too much")
	errChanged = errors.New("the configuration file cannot be written again without a change of meaning; write its anchors and multi-line texts in a simpler way")
)

// Settings is what only the parent knows.
type Settings struct {
	// HealthAddr is a free loopback address.
	HealthAddr string
	// Drain is the time from a requested stop to the kill of the work.
	Drain time.Duration
}

// grace is the child's own grace: sf2loki needs 5 s more to close, and 1 s is
// kept. Whole seconds, rounded down: a shorter grace ends before the kill.
func (s Settings) grace() time.Duration {
	return max(s.Drain-6*time.Second, time.Second).Truncate(time.Second)
}

// Document returns the child's document for ours, which may be empty.
func Document(data []byte, s Settings) ([]byte, error) {
	doc, err := parse(data)
	if err != nil {
		return nil, err
	}
	e := &editor{left: maxNodes}
	if err := e.edit(doc.Content[0], s); err != nil {
		return nil, err
	}
	if err := e.anchors(doc, map[*yaml.Node]bool{}); err != nil {
		return nil, err
	}
	var out bytes.Buffer
	encoder := yaml.NewEncoder(&out)
	encoder.SetIndent(2)
	if encoder.Encode(doc) != nil || encoder.Close() != nil {
		return nil, errChanged
	}
	again, err := parse(out.Bytes())
	if err != nil || !same(doc, again, map[[2]*yaml.Node]bool{}) {
		return nil, errChanged
	}
	return out.Bytes(), nil
}

// parse returns a document whose only content is a mapping.
func parse(data []byte) (*yaml.Node, error) {
	decoder := yaml.NewDecoder(bytes.NewReader(data))
	var doc, second yaml.Node
	err := decoder.Decode(&doc)
	empty := errors.Is(err, io.EOF)
	if err == nil {
		err = decoder.Decode(&second)
	}
	if !errors.Is(err, io.EOF) {
		return nil, errNotOne // the library's text could repeat a value
	}
	if empty || len(doc.Content) == 0 || doc.Content[0].ShortTag() == "!!null" {
		doc.Kind, doc.Content = yaml.DocumentNode, []*yaml.Node{{Kind: yaml.MappingNode}}
	}
	if doc.Content[0].Kind != yaml.MappingNode {
		return nil, errNotOne
	}
	return &doc, nil
}

// editor changes a document.
type editor struct{ left int }

func (e *editor) edit(root *yaml.Node, s Settings) error {
	if err := e.strip(root, ""); err != nil {
		return err
	}
	root.Content = append(root.Content, text("coordinate"), mapping(text("type"), text("noop")))
	set := []*yaml.Node{
		text("health_addr"), quoted(s.HealthAddr),
		text("shutdown_grace"), text(fmt.Sprintf("%ds", s.grace()/time.Second)),
	}
	for i := 0; i < len(root.Content); i += 2 {
		if root.Content[i].Value != "service" {
			continue
		}
		v := root.Content[i+1]
		if v.ShortTag() == "!!null" {
			v = mapping()
			root.Content[i+1] = v
		}
		if v.Kind != yaml.MappingNode {
			return errNotOne
		}
		v.Content = append(v.Content, set...)
		return nil
	}
	root.Content = append(root.Content, text("service"), mapping(set...))
	return nil
}

// strip drops our keys of a mapping. The sections on the way to one become
// copies with aliases followed and merges applied: what they share with others
// must not change there, and a key must not come back through a merge.
func (e *editor) strip(m *yaml.Node, path string) error {
	pairs, err := e.pairs(m, 0)
	if err != nil {
		return err
	}
	m.Content = nil
	for i := 0; i < len(pairs); i += 2 {
		key := join(path, pairs[i].Value)
		if dropped[key] {
			continue
		}
		if v := follow(pairs[i+1]); holdsDropped(key) && v.Kind == yaml.MappingNode {
			if pairs[i+1], err = e.copied(v); err != nil {
				return err
			}
			if err := e.strip(pairs[i+1], key); err != nil {
				return err
			}
		} else if holdsDropped(key) && v != pairs[i+1] {
			if pairs[i+1], err = e.copied(v); err != nil {
				return err
			}
		}
		m.Content = append(m.Content, pairs[i], pairs[i+1])
	}
	return nil
}

// pairs lists keys and values with merges applied: a mapping's own first.
func (e *editor) pairs(m *yaml.Node, depth int) ([]*yaml.Node, error) {
	if e.left -= 1 + len(m.Content); e.left < 0 || depth > 50 {
		return nil, errNesting
	}
	var list, merges []*yaml.Node
	seen := map[string]bool{}
	for i := 0; i+1 < len(m.Content); i += 2 {
		k := m.Content[i]
		if k.ShortTag() == "!!merge" {
			merges = append(merges, m.Content[i+1])
			continue
		}
		name := follow(k)
		if name.Kind != yaml.ScalarNode {
			return nil, errNotOne
		}
		if seen[name.Value] {
			return nil, errTwice
		}
		seen[name.Value] = true
		if name != k {
			k = text(name.Value)
		}
		list = append(list, k, m.Content[i+1])
	}
	if len(merges) > 1 {
		return nil, errTwice
	}
	for _, merge := range merges {
		sources := []*yaml.Node{follow(merge)}
		if sources[0].Kind == yaml.SequenceNode {
			sources = sources[0].Content
		}
		for _, source := range sources {
			source = follow(source)
			if source.Kind != yaml.MappingNode {
				return nil, errNotOne
			}
			merged, err := e.pairs(source, depth+1)
			if err != nil {
				return nil, err
			}
			for i := 0; i < len(merged); i += 2 {
				if seen[merged[i].Value] {
					continue
				}
				seen[merged[i].Value] = true
				v, err := e.copied(merged[i+1])
				if err != nil {
					return nil, err
				}
				list = append(list, text(merged[i].Value), v)
			}
		}
	}
	return list, nil
}

// copied returns a copy without anchors. Aliases keep their targets.
func (e *editor) copied(n *yaml.Node) (*yaml.Node, error) {
	if e.left--; e.left < 0 {
		return nil, errNesting
	}
	c := *n
	c.Content = nil
	if n.Kind != yaml.AliasNode {
		c.Anchor = ""
	}
	for _, child := range n.Content {
		inner, err := e.copied(child)
		if err != nil {
			return nil, err
		}
		c.Content = append(c.Content, inner)
	}
	return &c, nil
}

// anchors puts what an alias stands for in its place if the anchor went with a
// section that was dropped.
func (e *editor) anchors(n *yaml.Node, defined map[*yaml.Node]bool) error {
	if e.left--; e.left < 0 {
		return errNesting
	}
	if n.Anchor != "" {
		defined[n] = true
	}
	for i, child := range n.Content {
		if child.Kind == yaml.AliasNode {
			if defined[child.Alias] {
				continue
			}
			child = child.Alias
			n.Content[i] = child
		}
		if err := e.anchors(child, defined); err != nil {
			return err
		}
	}
	return nil
}

func follow(n *yaml.Node) *yaml.Node {
	for n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	return n
}

func text(s string) *yaml.Node { return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: s} }

func quoted(s string) *yaml.Node {
	n := text(s)
	n.Style = yaml.DoubleQuotedStyle
	return n
}

func mapping(content ...*yaml.Node) *yaml.Node {
	return &yaml.Node{Kind: yaml.MappingNode, Content: content}
}
