package config

import (
	"errors"
	"fmt"
	"math/big"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// Lengths that cannot be mistaken for something else, in seconds.
const (
	day   = 24 * 60 * 60
	week  = 7 * day
	month = 30 * day
	year  = 365 * day
)

// maxDurationText bounds the work for one value.
const maxDurationText = 64

const durationHelp = "write it as 30s, 1m30s or 500ms; the units are ms, s, m, h, d and w"

var (
	shorthand     = regexp.MustCompile(`^(?:[0-9]+(?:\.[0-9]+)?(?:ms|[smhdw]))+$`)
	shorthandPart = regexp.MustCompile(`([0-9]+(?:\.[0-9]+)?)(ms|[smhdw])`)
	isoDuration   = regexp.MustCompile(`^([+-]?)P((?:[0-9]+(?:\.[0-9]+)?[YMWD])*)(?:T((?:[0-9]+(?:\.[0-9]+)?[HMS])+))?$`)
	isoPart       = regexp.MustCompile(`([0-9]+(?:\.[0-9]+)?)([A-Z])`)
	clockText     = regexp.MustCompile(`^([0-9]{2}):([0-5][0-9])(?::([0-5][0-9](?:\.[0-9]{1,6})?))?$`)
	dayText       = regexp.MustCompile(`^(?i)([+-]?)(?:([0-9]+) ?d(?:ays?)?)?(?:(?:, ?| )?([0-9]{2}:.*))?$`)
	numberText    = regexp.MustCompile(`^\s*[+-]?[0-9]+(\.[0-9]*)?\s*$`)
)

// shorthandUnit and the two ISO tables are seconds a unit.
var (
	shorthandUnit = map[string]*big.Rat{
		"ms": big.NewRat(1, 1000), "s": seconds(1), "m": seconds(60), "h": seconds(3600), "d": seconds(day), "w": seconds(week),
	}
	isoDateUnit = map[string]*big.Rat{"Y": seconds(year), "M": seconds(month), "W": seconds(week), "D": seconds(day)}
	isoTimeUnit = map[string]*big.Rat{"H": seconds(3600), "M": seconds(60), "S": seconds(1)}
)

func seconds(n int64) *big.Rat { return big.NewRat(n, 1) }

// parseDuration reads the texts that sf2loki reads, tried in its order. A
// number without a unit is refused as a text, because nobody can tell what it
// means; as a YAML number it is seconds.
func parseDuration(text string) (time.Duration, error) {
	if len(text) > maxDurationText {
		return 0, errors.New("is not a duration; " + durationHelp)
	}
	// 1. Shorthand: 1h30m.
	if shorthand.MatchString(text) {
		return fromSeconds(sum(shorthandPart, text, shorthandUnit))
	}
	// 2. ISO 8601: PT5M. A fraction only on the last quantity.
	if m := isoDuration.FindStringSubmatch(text); m != nil && m[2]+m[3] != "" && fractionLast(m[2]+m[3]) {
		total := sum(isoPart, m[2], isoDateUnit)
		return signed(m[1], total.Add(total, sum(isoPart, m[3], isoTimeUnit)))
	}
	// 3. Clock text, days, or both: 00:05, 1 day, 00:05.
	if m := dayText.FindStringSubmatch(text); m != nil && m[2]+m[3] != "" {
		clock := clockText.FindStringSubmatch(m[3])
		if m[3] == "" || clock != nil {
			parts := zeroIfEmpty(m[2]) + "d"
			if clock != nil {
				parts += clock[1] + "h" + clock[2] + "m" + zeroIfEmpty(clock[3]) + "s"
			}
			return signed(m[1], sum(shorthandPart, parts, shorthandUnit))
		}
	}
	if numberText.MatchString(text) {
		n := strings.TrimSpace(text)
		return 0, fmt.Errorf("%q is a number without a unit; write %ss for seconds", n, strings.TrimRight(n, "."))
	}
	return 0, fmt.Errorf("%s is not a duration; %s", quote(text), durationHelp)
}

func sum(part *regexp.Regexp, text string, units map[string]*big.Rat) *big.Rat {
	total := new(big.Rat)
	for _, m := range part.FindAllStringSubmatch(text, -1) {
		n, ok := new(big.Rat).SetString(m[1])
		if !ok {
			continue
		}
		total.Add(total, n.Mul(n, units[m[2]]))
	}
	return total
}

func fractionLast(parts string) bool {
	dot := strings.IndexByte(parts, '.')
	return dot < 0 || !strings.ContainsAny(parts[dot:len(parts)-1], "YMWDHS")
}

func zeroIfEmpty(s string) string {
	if s == "" {
		return "0"
	}
	return s
}

func signed(sign string, r *big.Rat) (time.Duration, error) {
	if sign == "-" {
		r.Neg(r)
	}
	return fromSeconds(r)
}

// fromSeconds rounds to microseconds, the resolution that sf2loki has.
func fromSeconds(r *big.Rat) (time.Duration, error) {
	if r == nil {
		return 0, errors.New("is not a finite number of seconds; " + durationHelp)
	}
	// Far below what a Duration holds, so that sums and doubles of two fit.
	if new(big.Rat).Abs(r).Cmp(seconds(100*year)) > 0 {
		return 0, errors.New("is longer than 100 years; " + durationHelp)
	}
	micros, err := strconv.ParseInt(new(big.Rat).Mul(r, seconds(1_000_000)).FloatString(0), 10, 64)
	if err != nil {
		return 0, fmt.Errorf("is not a duration: %w", err)
	}
	return time.Duration(micros) * time.Microsecond, nil
}
