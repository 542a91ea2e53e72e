package statecmd

// glob reports whether text as a whole matches a pattern of Python's fnmatch, which
// sf2loki uses: * is any run of characters, / included, ? is one character, [seq]
// and [!seq] one that is or is not in seq, and a [ that is not closed is itself.
func glob(pattern, text string) bool { return globRunes([]rune(pattern), []rune(text)) }

func globRunes(p, t []rune) bool {
	// star is where to go on after the last *, from is how far it has eaten.
	star, from := -1, 0
	i, j := 0, 0
	for j < len(t) {
		if i < len(p) && p[i] == '*' {
			i++
			star, from = i, j
			continue
		}
		if n := globOne(p[i:], t[j]); n > 0 {
			i, j = i+n, j+1
			continue
		}
		if star < 0 {
			return false
		}
		from++
		i, j = star, from
	}
	for i < len(p) && p[i] == '*' {
		i++
	}
	return i == len(p)
}

// globOne matches one character with the front of a pattern. It returns how much
// of the pattern that took, 0 for no match.
func globOne(p []rune, r rune) int {
	switch {
	case len(p) == 0:
		return 0
	case p[0] == '?':
		return 1
	case p[0] == '[':
		if end, in := globSet(p, r); end > 0 {
			if in {
				return end
			}
			return 0
		}
	}
	if p[0] == r {
		return 1
	}
	return 0
}

// globSet matches a character with a [seq] at the front of a pattern. end is 0 if
// the bracket is not closed.
func globSet(p []rune, r rune) (end int, in bool) {
	first := 1
	negated := first < len(p) && p[first] == '!'
	if negated {
		first++
	}
	// A ] in the first place is one of the set.
	last := first
	if last < len(p) && p[last] == ']' {
		last++
	}
	for last < len(p) && p[last] != ']' {
		last++
	}
	if last >= len(p) {
		return 0, false
	}
	for k := first; k < last; k++ {
		if k+2 < last && p[k+1] == '-' {
			in = in || p[k] <= r && r <= p[k+2]
			k += 2
			continue
		}
		in = in || p[k] == r
	}
	return last + 1, in != negated
}
