package config

import (
	"fmt"
	"strings"
)

// unknownKey words the error for a key that does not exist in section, and
// returns the dotted key that was probably meant, or "".
func unknownKey(section *schemaNode, name string) (message, meant string) {
	const unknown = "unknown configuration key"
	if strings.Contains(name, ".") && schema.find(join(section.path, name)) != nil {
		return unknown + "; write it as nested sections, one name a line", join(section.path, name)
	}
	// 1. A neighbour that reads almost the same.
	if near := nearest(name, section.names()); near != "" {
		meant = join(section.path, near)
		return fmt.Sprintf("%s; did you mean %s?", unknown, meant), meant
	}
	// 2. The same name in another section: usually a wrong indentation.
	valid := strings.Join(section.names(), ", ")
	if homes := homesOf(section.path, name); len(homes) > 0 {
		return fmt.Sprintf("%s; there is %s; valid here: %s", unknown, strings.Join(homes, " and "), valid), ""
	}
	return fmt.Sprintf("%s; valid here: %s", unknown, valid), ""
}

// homesOf lists the dotted keys with that last name, only those that share the
// longest path with the section in which it was found.
func homesOf(section, name string) []string {
	var homes []string
	best := -1
	schema.each(func(n *schemaNode) {
		if n.name != name {
			return
		}
		shared := sharedParts(section, n.path)
		if shared > best {
			best, homes = shared, nil
		}
		if shared == best {
			homes = append(homes, n.path)
		}
	})
	return homes
}

func sharedParts(a, b string) int {
	if a == "" {
		return 0
	}
	as, bs := strings.Split(a, "."), strings.Split(b, ".")
	n := 0
	for n < len(as) && n < len(bs) && as[n] == bs[n] {
		n++
	}
	return n
}

// nearest returns the candidate that name was probably meant to be, or "".
func nearest(name string, candidates []string) string {
	// 1. Another spelling of the same words: renewInterval, renew-interval.
	flat := flatten(name)
	if flat == "" || len(name) > 64 {
		return ""
	}
	for _, c := range candidates {
		if flatten(c) == flat {
			return c
		}
	}
	// 2. A few typing errors, fewer in short names.
	best, bestDistance := "", (len(name)+2)/3+1
	for _, c := range candidates {
		if d := distance(flat, flatten(c)); d < bestDistance {
			best, bestDistance = c, d
		}
	}
	if best != "" {
		return best
	}
	// 3. The beginning of exactly one name: renew, s3.
	for _, c := range candidates {
		if len(flat) >= 2 && strings.HasPrefix(flatten(c), flat) {
			if best != "" {
				return ""
			}
			best = c
		}
	}
	return best
}

func flatten(s string) string {
	return strings.Map(func(r rune) rune {
		if r == '_' || r == '-' || r == ' ' || r == '.' {
			return -1
		}
		return r
	}, strings.ToLower(s))
}

// distance counts insertions, deletions, substitutions and swaps of neighbours.
func distance(a, b string) int {
	rows := make([][]int, len(a)+1)
	for i := range rows {
		rows[i] = make([]int, len(b)+1)
		rows[i][0] = i
	}
	for j := range rows[0] {
		rows[0][j] = j
	}
	for i := 1; i <= len(a); i++ {
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			rows[i][j] = min(rows[i-1][j]+1, rows[i][j-1]+1, rows[i-1][j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				rows[i][j] = min(rows[i][j], rows[i-2][j-2]+1)
			}
		}
	}
	return rows[len(a)][len(b)]
}
