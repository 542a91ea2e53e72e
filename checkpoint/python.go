package checkpoint

import (
	"unicode/utf16"
	"unicode/utf8"
)

const hexDigits = "0123456789abcdef"

// shortEscape returns the letter of a two-character escape, or 0.
func shortEscape(c byte) byte {
	switch c {
	case '"', '\\':
		return c
	case '\n':
		return 'n'
	case '\r':
		return 'r'
	case '\t':
		return 't'
	case '\f':
		return 'f'
	case '\b':
		return 'b'
	}
	return 0
}

// plain reports whether json.dumps writes the byte as it is: printable ASCII
// without quote and backslash. DEL is not printable.
func plain(c byte) bool { return c >= ' ' && c <= '~' && c != '"' && c != '\\' }

// appendPython appends s as a JSON string the way Python's json.dumps writes it.
// Every byte sequence that is not UTF-8 becomes U+FFFD; sessions refuse such
// strings before they come here.
func appendPython(b []byte, s string) []byte {
	b = append(b, '"')
	for i := 0; i < len(s); {
		// 1. The long runs that need nothing.
		start := i
		for i < len(s) && plain(s[i]) {
			i++
		}
		b = append(b, s[start:i]...)
		if i == len(s) {
			break
		}
		// 2. One character that does.
		if letter := shortEscape(s[i]); letter != 0 {
			b = append(b, '\\', letter)
			i++
			continue
		}
		r, size := utf8.DecodeRuneInString(s[i:])
		if high, low := utf16.EncodeRune(r); high != utf8.RuneError {
			b = appendEscape(appendEscape(b, high), low)
		} else {
			b = appendEscape(b, r)
		}
		i += size
	}
	return append(b, '"')
}

func appendEscape(b []byte, r rune) []byte {
	return append(b, '\\', 'u', hexDigits[r>>12&15], hexDigits[r>>8&15], hexDigits[r>>4&15], hexDigits[r&15])
}

// pythonLen is the length of what appendPython appends.
func pythonLen(s string) int {
	n := 2
	for i := 0; i < len(s); {
		c := s[i]
		switch {
		case plain(c):
			n, i = n+1, i+1
		case shortEscape(c) != 0:
			n, i = n+2, i+1
		default:
			r, size := utf8.DecodeRuneInString(s[i:])
			n, i = n+6, i+size
			if r > 0xFFFF {
				n += 6
			}
		}
	}
	return n
}

// halfSurrogate reports whether the source text of valid JSON strings contains
// a \u escape of one half of a surrogate pair without the other half. Python
// keeps such a thing; a Go string cannot.
func halfSurrogate(source []byte) bool {
	for i := 0; i < len(source); {
		if source[i] != '\\' {
			i++
			continue
		}
		unit, ok := escapeUnit(source[i:])
		if !ok {
			i += 2
			continue
		}
		i += 6
		if !utf16.IsSurrogate(unit) {
			continue
		}
		low, ok := escapeUnit(source[min(i, len(source)):])
		if !ok || utf16.DecodeRune(unit, low) == utf8.RuneError {
			return true
		}
		i += 6
	}
	return false
}

// escapeUnit reads a \uXXXX escape at the start of source.
func escapeUnit(source []byte) (rune, bool) {
	if len(source) < 6 || source[0] != '\\' || source[1] != 'u' {
		return 0, false
	}
	var unit rune
	for _, c := range source[2:6] {
		unit <<= 4
		switch {
		case c >= '0' && c <= '9':
			unit |= rune(c - '0')
		case c >= 'a' && c <= 'f':
			unit |= rune(c-'a') + 10
		default:
			unit |= rune(c-'A') + 10
		}
	}
	return unit, true
}
