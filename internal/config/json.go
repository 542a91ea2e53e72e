package config

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"math/big"
	"strconv"
	"strings"
)

// maxJSONDepth is deeper than any value here.
const maxJSONDepth = 32

// parseJSON reads the value of an environment variable that stands for a list
// or a section. Its errors never repeat more than one character of the text.
func parseJSON(text string, at origin) (*value, error) {
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	v, err := jsonValue(d, at, 0)
	if err != nil {
		var syntax *json.SyntaxError
		switch {
		case errors.As(err, &syntax):
			return nil, fmt.Errorf("is not JSON: %w at byte %d", err, syntax.Offset)
		case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
			return nil, errors.New("is not JSON: it ends too early")
		}
		return nil, err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("is not JSON: more text follows the value")
	}
	return v, nil
}

func jsonValue(d *json.Decoder, at origin, depth int) (*value, error) {
	if depth > maxJSONDepth {
		return nil, fmt.Errorf("is nested deeper than %d levels", maxJSONDepth)
	}
	token, err := d.Token()
	if err != nil {
		return nil, err
	}
	switch t := token.(type) {
	case nil:
		return &value{kind: nullValue, at: at}, nil
	case bool:
		return &value{kind: boolValue, truth: t, text: strconv.FormatBool(t), at: at}, nil
	case string:
		return &value{kind: textValue, text: t, at: at}, nil
	case json.Number:
		return jsonNumber(string(t), at), nil
	case json.Delim:
		if t == '[' {
			return jsonList(d, at, depth)
		}
		return jsonMap(d, at, depth)
	}
	return nil, errors.New("is not JSON")
}

func jsonNumber(text string, at origin) *value {
	if !strings.ContainsAny(text, ".eE") {
		v := &value{kind: intValue, text: text, at: at}
		if n, ok := new(big.Int).SetString(text, 10); ok && len(text) <= maxNumberText {
			v.number = new(big.Rat).SetInt(n)
		}
		return v
	}
	v := &value{kind: floatValue, text: text, at: at}
	if f, err := strconv.ParseFloat(text, 64); err == nil && !math.IsInf(f, 0) {
		v.number = new(big.Rat).SetFloat64(f)
	}
	return v
}

func jsonList(d *json.Decoder, at origin, depth int) (*value, error) {
	v := &value{kind: listValue, at: at}
	for d.More() {
		item, err := jsonValue(d, at, depth+1)
		if err != nil {
			return nil, err
		}
		v.items = append(v.items, item)
	}
	_, err := d.Token()
	return v, err
}

func jsonMap(d *json.Decoder, at origin, depth int) (*value, error) {
	v := &value{kind: mapValue, at: at}
	for d.More() {
		token, err := d.Token()
		if err != nil {
			return nil, err
		}
		key, _ := token.(string)
		item, err := jsonValue(d, at, depth+1)
		if err != nil {
			return nil, err
		}
		if v.entry(key) != nil {
			return nil, fmt.Errorf("has the key %q twice; remove one", keyName(key))
		}
		v.put(key, at, item)
	}
	_, err := d.Token()
	return v, err
}
