package config

import (
	"math"
	"math/big"
	"regexp"
	"strconv"
	"strings"
)

// The implicit types of plain YAML 1.1 scalars, which sf2loki's parser follows:
// yes is a boolean, 1:30 is 90, 0123 is 83. The YAML library follows 1.2 here,
// which would make one file mean two things.
var (
	yamlNull  = regexp.MustCompile(`^(?:~|null|Null|NULL|)$`)
	yamlTrue  = regexp.MustCompile(`^(?:yes|Yes|YES|true|True|TRUE|on|On|ON)$`)
	yamlFalse = regexp.MustCompile(`^(?:no|No|NO|false|False|FALSE|off|Off|OFF)$`)
	yamlInt   = regexp.MustCompile(`^[-+]?(?:0b[01_]+|0x[0-9a-fA-F_]+|0[0-7_]*|[1-9][0-9_]*(?::[0-5]?[0-9])*)$`)
	yamlFloat = regexp.MustCompile(`^(?:[-+]?[0-9][0-9_]*\.[0-9_]*(?:[eE][-+][0-9]+)?|[-+]?\.[0-9][0-9_]*(?:[eE][-+][0-9]+)?|[-+]?[0-9][0-9_]*(?::[0-5]?[0-9])+\.[0-9_]*|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN))$`)
	yamlDate  = regexp.MustCompile(`^[0-9]{4}-[0-9]{2}-[0-9]{2}$|^[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}(?:[Tt]|[ \t]+)[0-9]{1,2}:[0-9]{2}:[0-9]{2}(?:\.[0-9]*)?(?:[ \t]*(?:Z|[-+][0-9]{1,2}(?::?[0-9]{2})?))?$`)
)

// maxNumberText bounds the digits that are worked on; a longer number is out of
// every range here.
const maxNumberText = 64

// plainScalar gives a scalar without quotes and tag its type.
func plainScalar(text string, at origin) *value {
	v := &value{kind: textValue, text: text, at: at}
	switch {
	case yamlNull.MatchString(text):
		v.kind = nullValue
	case yamlTrue.MatchString(text):
		v.kind, v.truth = boolValue, true
	case yamlFalse.MatchString(text):
		v.kind = boolValue
	case yamlInt.MatchString(text):
		v.kind, v.number = intValue, yamlInteger(text)
	case yamlFloat.MatchString(text):
		v.kind, v.number = floatValue, yamlFraction(text)
	case yamlDate.MatchString(text):
		v.kind = dateValue
	}
	return v
}

func yamlInteger(text string) *big.Rat {
	sign, digits := cutSign(text)
	if len(digits) > maxNumberText {
		return nil
	}
	base := 10
	switch {
	case strings.HasPrefix(digits, "0b"):
		base, digits = 2, digits[2:]
	case strings.HasPrefix(digits, "0x"):
		base, digits = 16, digits[2:]
	case strings.HasPrefix(digits, "0") && len(digits) > 1:
		base, digits = 8, digits[1:]
	case strings.Contains(digits, ":"):
		return base60(sign, digits)
	}
	n, ok := new(big.Int).SetString(digits, base)
	if !ok {
		return nil
	}
	return new(big.Rat).SetInt(n.Mul(n, big.NewInt(sign)))
}

func yamlFraction(text string) *big.Rat {
	sign, digits := cutSign(text)
	if strings.Contains(digits, ":") {
		return base60(sign, digits)
	}
	f, err := strconv.ParseFloat(digits, 64) // accepts .inf and .nan as errors: the dot is ours
	if err != nil || math.IsInf(f, 0) || math.IsNaN(f) {
		return nil
	}
	r := new(big.Rat).SetFloat64(f)
	return r.Mul(r, big.NewRat(sign, 1))
}

func base60(sign int64, digits string) *big.Rat {
	if len(digits) > maxNumberText {
		return nil
	}
	total := new(big.Rat)
	for part := range strings.SplitSeq(digits, ":") {
		n, ok := new(big.Rat).SetString(part)
		if !ok {
			return nil
		}
		total.Add(total.Mul(total, big.NewRat(60, 1)), n)
	}
	return total.Mul(total, big.NewRat(sign, 1))
}

func cutSign(text string) (sign int64, digits string) {
	digits = strings.ReplaceAll(text, "_", "")
	switch {
	case strings.HasPrefix(digits, "-"):
		return -1, digits[1:]
	case strings.HasPrefix(digits, "+"):
		return 1, digits[1:]
	}
	return 1, digits
}
