package checkpoint

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"unicode/utf8"
)

// Document is the checkpoint document: strings by key, in a fixed order. The
// zero value is an empty document. It is not safe for concurrent use.
type Document struct {
	keys   []string
	values map[string]string
	// size is the length of the encoded form, to allocate once.
	size int
}

// ParseDocument reads a document. Whatever is not a flat JSON object of strings
// is an error, and so are a key that occurs twice and half a surrogate pair:
// both would have to be guessed at, and a wrong guess loses records.
func ParseDocument(data []byte) (*Document, error) {
	if !utf8.Valid(data) {
		return nil, errors.New("not UTF-8")
	}
	// 1. The syntax as a whole, so that the walk below meets only valid tokens.
	var raw json.RawMessage
	if err := json.Unmarshal(data, &raw); err != nil {
		var syntax *json.SyntaxError
		if errors.As(err, &syntax) {
			return nil, fmt.Errorf("not JSON at byte %d of %d: %w", syntax.Offset, len(data), err)
		}
		return nil, fmt.Errorf("not JSON: %w", err)
	}
	if trimmed := bytes.TrimLeft(data, " \t\r\n"); trimmed[0] != '{' {
		return nil, fmt.Errorf("not a JSON object, but %s", kindOf(trimmed[0]))
	}
	// 2. Key by key. json.Decoder turns half a surrogate pair into U+FFFD
	// without a word, so the source text of every string is looked at too.
	dec := json.NewDecoder(bytes.NewReader(data))
	if _, err := dec.Token(); err != nil {
		return nil, fmt.Errorf("not JSON: %w", err)
	}
	d := &Document{values: make(map[string]string)}
	for {
		key, err := stringToken(dec, data)
		if errors.Is(err, io.EOF) {
			return d, nil
		}
		if err != nil {
			return nil, fmt.Errorf("key %d: %w", len(d.keys)+1, err)
		}
		value, err := stringToken(dec, data)
		if err != nil {
			return nil, fmt.Errorf("value of key %.80q: %w", key, err)
		}
		if _, twice := d.values[key]; twice {
			return nil, fmt.Errorf("key %.80q occurs twice", key)
		}
		d.Set(key, value)
	}
}

// stringToken reads the next token, which has to be a string. At the end of the
// object it returns io.EOF.
func stringToken(dec *json.Decoder, data []byte) (string, error) {
	from := dec.InputOffset()
	token, err := dec.Token()
	if err != nil {
		return "", err
	}
	text, ok := token.(string)
	if !ok {
		if token == json.Delim('}') {
			return "", io.EOF
		}
		source := bytes.TrimLeft(data[from:dec.InputOffset()], " \t\r\n:,")
		return "", fmt.Errorf("not a string, but %s", kindOf(source[0]))
	}
	if halfSurrogate(data[from:dec.InputOffset()]) {
		return "", errors.New("half a surrogate pair")
	}
	return text, nil
}

func kindOf(first byte) string {
	switch first {
	case '{':
		return "an object"
	case '[':
		return "a list"
	case '"':
		return "a string"
	case 't', 'f':
		return "a boolean"
	case 'n':
		return "null"
	}
	return "a number"
}

// Encode writes the document as Python's json.dumps does by default: one line,
// ", " and ": " as separators, everything outside printable ASCII escaped.
func (d *Document) Encode() []byte {
	b := make([]byte, 0, d.size+2)
	b = append(b, '{')
	for i, key := range d.keys {
		if i > 0 {
			b = append(b, ", "...)
		}
		b = appendPython(b, key)
		b = append(b, ": "...)
		b = appendPython(b, d.values[key])
	}
	return append(b, '}')
}

// Get returns the value of key.
func (d *Document) Get(key string) (string, bool) {
	value, ok := d.values[key]
	return value, ok
}

// Set stores value. A key that is there keeps its place, a new one goes last.
func (d *Document) Set(key, value string) {
	if d.values == nil {
		d.values = make(map[string]string)
	}
	old, ok := d.values[key]
	if !ok {
		d.keys = append(d.keys, key)
		d.size += pythonLen(key) + len(`: , `)
	} else {
		d.size -= pythonLen(old)
	}
	d.size += pythonLen(value)
	d.values[key] = value
}

// Delete removes key and reports whether it was there.
func (d *Document) Delete(key string) bool {
	old, ok := d.values[key]
	if !ok {
		return false
	}
	delete(d.values, key)
	d.keys = slices.DeleteFunc(d.keys, func(k string) bool { return k == key })
	d.size -= pythonLen(key) + pythonLen(old) + len(`: , `)
	return true
}

// Keys returns the keys in order, the reserved ones included.
func (d *Document) Keys() []string { return slices.Clone(d.keys) }

// Len is the number of keys, the reserved ones included.
func (d *Document) Len() int { return len(d.keys) }

// Clone returns an independent copy.
func (d *Document) Clone() *Document {
	c := &Document{keys: slices.Clone(d.keys), values: make(map[string]string, len(d.values)+2), size: d.size}
	for k, v := range d.values {
		c.values[k] = v
	}
	return c
}
