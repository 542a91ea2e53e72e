package config

import "regexp"

// reference is the only form that is replaced: no $NAME, no default, no escape.
var reference = regexp.MustCompile(`\$\{([A-Za-z_][A-Za-z0-9_]*)\}`)

// interpolate replaces ${NAME} in the text values of the file, once: what was
// put in is not scanned again. Keys, sf2loki's sections and values from the
// environment are left alone. A name that is not set is an error even if the
// environment overrides the key, as in sf2loki.
func (l *loader) interpolate(v *value, path string) {
	switch v.kind {
	case textValue:
		v.text = reference.ReplaceAllStringFunc(v.text, func(ref string) string {
			name := ref[2 : len(ref)-1]
			text, ok := l.env.get(name)
			if !ok {
				l.fail(v.at, path, "the environment variable of %s is not set; set it, or write the value here", ref)
				v.kind = brokenValue
			}
			return text
		})
	case listValue:
		for _, item := range v.items {
			l.interpolate(item, path)
			if item.kind == brokenValue {
				v.kind = brokenValue
			}
		}
	case mapValue:
		for _, e := range v.entries {
			l.interpolate(e.value, join(path, keyName(e.key)))
		}
	}
}
