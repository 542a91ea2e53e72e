package linkfile

import (
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"

	"github.com/sf2loki/sf2loki-ha/cas"
)

const tempSuffix = ".tmp"

// tempDigits is the length of the random part of a temporary name.
const tempDigits = 16

// slot is the name of version n.
func (r *register) slot(n int64) string { return r.path + "." + strconv.FormatInt(n, 10) }

// temp is a name that nobody else uses.
func (r *register) temp() string {
	b := make([]byte, tempDigits/2)
	_, _ = rand.Read(b)
	return r.path + "." + hex.EncodeToString(b) + tempSuffix
}

// number reads the suffix of a slot, such as ".17". There is one way to write a
// number, so that two names never mean one version.
func number(suffix string) (int64, bool) {
	digits, ok := strings.CutPrefix(suffix, ".")
	n, err := strconv.ParseInt(digits, 10, 64)
	return n, ok && err == nil && n > 0 && strconv.FormatInt(n, 10) == digits
}

// isTemp tells whether the suffix is one of temp.
func isTemp(suffix string) bool {
	random, ok := strings.CutSuffix(suffix, tempSuffix)
	return ok && len(random) == 1+tempDigits && random[0] == '.' && strings.Trim(random[1:], "0123456789abcdef") == ""
}

// version names one state of the object.
type version struct {
	seq  int64  // the highest number; 0 if there is none
	sum  string // the hash of that file, "" if there is none
	copy string // the identity of the file at path, where that is the object
}

// text is "<seq>-<sum>", or "copy.<copy>@<seq>-<sum>". The number of the last
// version is part of the second, so that each version is replaced by exactly one
// number and therefore once.
func (v version) text() cas.Version {
	slot := "0"
	if v.seq > 0 {
		slot = fmt.Sprintf("%d-%s", v.seq, v.sum)
	}
	if v.copy == "" {
		return cas.Version(slot)
	}
	return cas.Version("copy." + v.copy + "@" + slot)
}

// parse is the inverse of text. What text does not make is no version.
func parse(text cas.Version) (version, bool) {
	var v version
	slot := string(text)
	if rest, ok := strings.CutPrefix(slot, "copy."); ok {
		v.copy, slot, _ = strings.Cut(rest, "@")
	}
	if slot != "0" {
		digits, sum, _ := strings.Cut(slot, "-")
		v.seq, _ = number("." + digits)
		v.sum = sum
	}
	return v, v.text() == text && (v.seq > 0 || v.copy != "")
}
