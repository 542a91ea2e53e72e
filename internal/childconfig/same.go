package childconfig

import (
	"regexp"

	"go.yaml.in/yaml/v3"
)

const notPlain = yaml.SingleQuotedStyle | yaml.DoubleQuotedStyle | yaml.LiteralStyle | yaml.FoldedStyle

// same tells whether two documents read the same for any parser. The library
// quotes some plain texts, and does not know that sf2loki reads YAML 1.1, where
// a plain yes is a boolean and a plain 12:30 a number: those have to stay plain.
func same(a, b *yaml.Node, seen map[[2]*yaml.Node]bool) bool {
	a, b = follow(a), follow(b)
	if seen[[2]*yaml.Node{a, b}] {
		return true
	}
	seen[[2]*yaml.Node{a, b}] = true
	if a.Kind != b.Kind || a.Value != b.Value || a.ShortTag() != b.ShortTag() || len(a.Content) != len(b.Content) {
		return false
	}
	if a.Kind == yaml.ScalarNode && isText(a) != isText(b) {
		return false
	}
	for i := range a.Content {
		if !same(a.Content[i], b.Content[i], seen) {
			return false
		}
	}
	return true
}

// special is what YAML 1.1 may read as something else than a text.
var special = regexp.MustCompile(`^(?i:y|n|yes|no|on|off|true|false|null|~|=|<<)?$` +
	`|^[-+]?[.0-9][-+0-9a-fA-F_.oxX]*$|^[-+]?[0-9][0-9_]*(:[0-5]?[0-9])+(\.[0-9_]*)?$|^[0-9]{4}-|^(?i:[-+]?\.(inf|nan))$`)

// isText tells whether every parser reads the scalar as a text.
func isText(n *yaml.Node) bool {
	return n.ShortTag() == "!!str" && (n.Style&(notPlain|yaml.TaggedStyle) != 0 || !special.MatchString(n.Value))
}
