package statecmd

import (
	"encoding/base64"
	"encoding/json"
	"regexp"
	"strings"
	"time"
	"unicode"
)

// orgPrefix is in front of the keys of one organisation of several.
var orgPrefix = regexp.MustCompile(`^org=[A-Za-z0-9_-]+:`)

// shapeProblem says how a value differs from what sf2loki stores under such a key,
// or "". It is a warning, never a refusal: other work has keys of its own.
func shapeProblem(key, value string) string {
	bare := orgPrefix.ReplaceAllString(key, "")
	family, _, _ := strings.Cut(bare, ":")
	switch {
	case family == "pubsub" && bare != family:
		id, err := base64.StdEncoding.DecodeString(value)
		if err != nil || len(id) == 0 || base64.StdEncoding.EncodeToString(id) != value {
			return "sf2loki stores a replay id here, in base64 with padding, such as AAAAAAAAAqc=; anything else makes it start at its configured preset"
		}
	case family == "eventlogfile" && bare != family:
		var v struct {
			IDs         []json.RawMessage `json:"ids"`
			LastCreated *string           `json:"last_created"`
		}
		if json.Unmarshal([]byte(value), &v) != nil || v.LastCreated == nil || !timestamp(*v.LastCreated) {
			return `sf2loki stores a JSON object here, such as {"ids": [], "last_created": "2026-07-01T00:00:00.000+0000"}, and some versions end on anything else, a bare time included`
		}
	case family == "eventlog_objects" && bare != family, bare == "apexlog":
		var v struct {
			IDs    []json.RawMessage `json:"ids"`
			LastTS *string           `json:"last_ts"`
		}
		if !timestamp(value) && (json.Unmarshal([]byte(value), &v) != nil || v.LastTS == nil || !timestamp(*v.LastTS)) {
			return `sf2loki stores a JSON object here, such as {"ids": [], "last_ts": "2026-07-01T00:00:00.000+0000"}; anything else makes it look back by its configured time`
		}
	case bare == "egress:budget":
		var v struct {
			Date  string `json:"date"`
			Bytes *int64 `json:"bytes"`
		}
		bad := json.Unmarshal([]byte(value), &v) != nil || v.Bytes == nil
		if _, err := time.Parse(time.DateOnly, v.Date); bad || err != nil {
			return `sf2loki stores a JSON object here, such as {"date": "2026-07-01", "bytes": 150}; anything else counts as an unused budget`
		}
	}
	return ""
}

// timestamp reports whether text is a time as Salesforce writes it.
func timestamp(text string) bool {
	for _, layout := range []string{"2006-01-02T15:04:05.999999999-0700", time.RFC3339Nano} {
		if _, err := time.Parse(layout, text); err == nil {
			return true
		}
	}
	return false
}

// unprintable reports whether a character does something to a terminal other than
// showing itself.
func unprintable(r rune) bool { return r == unicode.ReplacementChar || !unicode.IsPrint(r) }
